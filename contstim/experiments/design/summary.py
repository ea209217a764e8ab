"""What a person checks before ethics and preregistration: a design in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.inference import (
    FALSE_DISCOVERY_RATE,
    THESE_ITEMS,
    every_contrast,
    reach,
)
from contstim.experiments.design.golan2023 import SECONDS_PER_TRIAL
from contstim.experiments.responses.admission import DEFAULT_RULE, LAPSES
from contstim.reporting.markdown import markdown_table
from contstim.stimuli import Condition, Kind
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contstim.arrays import FloatArray
    from contstim.experiments.design.building import Design
    from contstim.frequencies import WordFrequencies
    from contstim.sentence import Sentence
    from contstim.stimuli import Trial

MEASURES = ("words", "characters", "mean word frequency (Zipf)")


@dataclass(frozen=True)
class DesignSummary:
    """A design in numbers.

    Attributes:
        groups: how many groups there are.
        counts: condition → trials in each group.
        roles: (condition, role) → model pairs, and fewest and most trials of a model pair in a
            group.
        minutes: expected duration for each group, pauses and instructions left out.
        sources: kind of sentence, in which condition → distinct sentences.
        balance: condition → (3, 2): words, characters and mean word frequency (Zipf scale) of
            sentence_1 and sentence_2, averaged over its trials.
        notes: sentences about how the design came about.
        catch: sentences about whom the catch trials leave out.
        cautions: sentences about what tests of its groups cannot show.
    """

    groups: int
    counts: Mapping[Condition, tuple[int, ...]]
    roles: Mapping[tuple[Condition, str], tuple[int, int, int]]
    minutes: tuple[float, ...]
    sources: Mapping[tuple[Condition, Kind], int]
    balance: Mapping[Condition, FloatArray]
    notes: tuple[str, ...]
    catch: tuple[str, ...]
    cautions: tuple[str, ...]


def summarise(
    design: Design,
    frequencies: WordFrequencies,
    *,
    seconds_per_trial: float = SECONDS_PER_TRIAL,
) -> DesignSummary:
    """Count a design's trials and sentences, and compare the sentences that stand against another.

    Raises:
        InputError: a trial takes no time, or less.
    """
    if not 0 < seconds_per_trial < np.inf:
        raise InputError(f"A trial takes more than 0 seconds, not {seconds_per_trial}.")
    trials, groups = design.trials, design.certificate.groups
    present = [c for c in Condition if any(trial.condition == c for trial in trials)]
    found = Counter((trial.condition, trial.group) for trial in trials)
    counts = {c: tuple(found[c, g] for g in range(1, groups + 1)) for c in present}
    per_group = np.sum(list(counts.values()), axis=0)
    certificate = design.certificate
    return DesignSummary(
        groups=groups,
        counts=counts,
        roles=_roles(trials, groups),
        minutes=tuple((per_group * seconds_per_trial / 60).tolist()),
        sources=_sources(trials),
        balance={
            c: _balance([t for t in trials if t.condition == c], frequencies) for c in present
        },
        notes=(
            f"{certificate.trials:,} trials, {certificate.trials_per_group} for each participant; "
            f"allocation {certificate.method}, seed {certificate.seed}.",
            "Checked on the finished trials: every comparison is made once; no group sees a "
            "sentence twice; every group has the same number of each condition, model pair and "
            "role; sentences of random and catch trials are used nowhere else.",
            f"Duration at {seconds_per_trial:g} s a trial, without instructions and pauses.",
        ),
        catch=tuple(_catch_notes(counts.get(Condition.CATCH, ()))),
        cautions=tuple(_cautions(trials, groups)),
    )


def _catch_notes(shown: tuple[int, ...]) -> Iterator[str]:
    for number in sorted(set(shown) - {0}):
        honest, guessing = (100 * DEFAULT_RULE.dropped(number, share) for share in (LAPSES, 1.0))
        needed = DEFAULT_RULE.required(number)
        yield (
            f"Unless told otherwise, `analyze` leaves out who has fewer than {needed} of "
            f"{counted(number, 'catch trial')} right: {honest:.1f} of 100 people who lapse in "
            f"{LAPSES:.0%} of trials, {guessing:.1f} of 100 who guess."
        )


def _cautions(trials: Iterable[Trial], groups: int) -> Iterator[str]:
    models = sorted({m for trial in trials for m in (trial.model_1, trial.model_2)} - {""})
    if groups == 1:
        yield THESE_ITEMS
    elif len(models) > 1:
        family = reach([groups] * len(every_contrast(models)), FALSE_DISCOVERY_RATE)
        yield from filter(None, [family.caution("groups", FALSE_DISCOVERY_RATE)])


def _roles(
    trials: Iterable[Trial], groups: int
) -> dict[tuple[Condition, str], tuple[int, int, int]]:
    found: Counter[tuple[Condition, str, tuple[str, str], int]] = Counter()
    for trial in trials:
        role = f"{trial.kind_1} – {trial.kind_2}"
        found[trial.condition, role, (trial.model_1, trial.model_2), trial.group] += 1
    roles = {}
    for condition in Condition:
        for role in sorted({key[1] for key in found if key[0] == condition}):
            pairs = {key[2] for key in found if key[:2] == (condition, role)}
            each = [found[condition, role, p, g] for p in pairs for g in range(1, groups + 1)]
            roles[condition, role] = (len(pairs - {("", "")}), min(each), max(each))
    return roles


def _sources(trials: Iterable[Trial]) -> dict[tuple[Condition, Kind], int]:
    sentences: dict[tuple[Condition, Kind], set[Sentence]] = {}
    for trial in trials:
        for kind, shown in ((trial.kind_1, trial.sentence_1), (trial.kind_2, trial.sentence_2)):
            sentences.setdefault((trial.condition, kind), set()).add(shown)
    return {key: len(sentences[key]) for key in sorted(sentences)}


def _balance(trials: Sequence[Trial], frequencies: WordFrequencies) -> FloatArray:
    measured = np.array(
        [
            [_measure(s, frequencies) for s in (trial.sentence_1, trial.sentence_2)]
            for trial in trials
        ]
    )  # (n_trials, 2, 3)
    means: FloatArray = measured.mean(axis=0).T
    return means


def _measure(sentence: Sentence, frequencies: WordFrequencies) -> tuple[float, float, float]:
    frequency = frequencies.mean_zipf(sentence)
    return float(len(sentence)), float(len(sentence.bare)), frequency


def summary_markdown(summary: DesignSummary) -> str:
    """The summary as a Markdown page."""
    groups = range(1, summary.groups + 1)
    counts = [
        *([condition, *numbers] for condition, numbers in summary.counts.items()),
        ["all", *(sum(column) for column in zip(*summary.counts.values(), strict=True))],
        ["expected minutes", *(f"{minutes:.1f}" for minutes in summary.minutes)],
    ]
    roles = [
        [condition, role, pairs or "none", least if least == most else f"{least}–{most}"]
        for (condition, role), (pairs, least, most) in summary.roles.items()
    ]
    balance = [
        [condition, measure, float(first), float(second), float(second - first)]
        for condition, table in summary.balance.items()
        for measure, (first, second) in zip(MEASURES, table, strict=True)
    ]
    sources = [[condition, kind, n] for (condition, kind), n in summary.sources.items()]
    return "\n".join(
        [
            "# Design of the experiment\n",
            *(f"**{caution}**\n" for caution in summary.cautions),
            *(f"{note}\n" for note in (*summary.notes, *summary.catch)),
            "## Trials by group\n",
            markdown_table(["condition", *map(str, groups)], counts),
            "## What each group sees of a model pair\n",
            markdown_table(
                ["condition", "sentence_1 – sentence_2", "model pairs", "trials of each"], roles
            ),
            "## Distinct sentences by source\n",
            markdown_table(["condition", "kind", "sentences"], sources),
            "## Balance between the two sentences of a trial\n",
            "Means over trials; word frequency is the mean over a sentence's words on the Zipf "
            "scale (log10 of the frequency in a thousand million words). Which sentence stands "
            "left is balanced for each participant.\n",
            markdown_table(
                ["condition", "measure", "sentence_1", "sentence_2", "difference"], balance
            ),
        ]
    )
