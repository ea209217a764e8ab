"""Summary of a design in numbers, to be checked before ethics and preregistration."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.families import (
    FALSE_DISCOVERY_RATE,
    crossed_instead,
    detectability,
    every_contrast,
)
from contstim.experiments.design.golan2023 import SECONDS_PER_TRIAL
from contstim.experiments.responses.admission import DEFAULT_RULE, LAPSES
from contstim.items.stimuli import Condition, Kind
from contstim.reporting.canvas import new_figure
from contstim.reporting.report import Heading, Paragraph, Report, Table, strong
from contstim.reporting.templates import passages
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.figure import Figure

    from contstim.experiments.analysis.families import Detectability
    from contstim.experiments.design.building import Design
    from contstim.files.arrays import FloatArray
    from contstim.items.stimuli import Trial
    from contstim.words.frequencies import WordFrequencies
    from contstim.words.sentence import Sentence

_SIDES = ("sentence_1", "sentence_2")
MEASURES = ("words", "characters", "word frequency (mean Zipf)")


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
        told: sentences about the design, by what they are about: `shared`, of natural sentences
            that stand both in pairs and in triplets, `catch`, of whom the catch trials leave out,
            and `tests`, of those in place of tests over so few groups, may be empty.
        cautions: sentences about what tests of its groups cannot show.
        figures: of its triplets; None where they are not given.
    """

    groups: int
    counts: Mapping[Condition, tuple[int, ...]]
    roles: Mapping[tuple[Condition, str], tuple[int, int, int]]
    minutes: tuple[float, ...]
    sources: Mapping[tuple[Condition, Kind], int]
    balance: Mapping[Condition, FloatArray]
    told: Mapping[str, str]
    cautions: tuple[str, ...]
    figures: Table | None = None


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
        raise InputError(f"`seconds_per_trial` must be more than 0, not {seconds_per_trial}.")
    trials, groups = design.trials, design.certificate.groups
    by_group = Counter((trial.condition, trial.group) for trial in trials)
    present = [c for c in Condition if any(condition is c for condition, _ in by_group)]
    counts = {c: tuple(by_group[c, g] for g in range(1, groups + 1)) for c in present}
    per_group = np.sum(list(counts.values()), axis=0)
    # Pairs and triplets are chosen apart, of the same sentences
    of_pairs, of_triplets = (
        {
            text
            for t in trials
            if t.condition is c
            for kind, text in zip((t.kind_1, t.kind_2), t.bare, strict=True)
            if kind is Kind.NATURAL
        }
        for c in (Condition.NATURAL_CONTROVERSIAL, Condition.NATURAL_SYNTHETIC)
    )
    family = _family(trials, groups)
    caution = family.caution("groups", FALSE_DISCOVERY_RATE)
    told = {"tests": crossed_instead(groups) if family.hopeless else ""}
    told |= passages(
        *(__package__, "summary.md.jinja"),
        certificate=design.certificate,
        seconds=seconds_per_trial,
        shared=len(of_pairs & of_triplets),
        natural=len(of_pairs | of_triplets),
        catch=max(counts.get(Condition.CATCH, (0,))),
        rule=DEFAULT_RULE,
        lapses=LAPSES,
        counted_in=frequencies.source,
    )
    return DesignSummary(
        groups=groups,
        counts=counts,
        roles=_roles(trials, groups),
        minutes=tuple((per_group * seconds_per_trial / 60).tolist()),
        sources=_sources(trials),
        balance={
            c: _balance([t for t in trials if t.condition == c], frequencies) for c in present
        },
        told=told,
        cautions=(caution,) if caution and not family.hopeless else (),
    )


def _family(trials: Iterable[Trial], groups: int) -> Detectability:
    """Limits of the tests over groups that `analyze` makes by default."""
    models = sorted({m for trial in trials for m in (trial.model_1, trial.model_2)} - {""})
    contrasts = every_contrast(models) if len(models) > 1 else ()
    return detectability([groups] * len(contrasts), FALSE_DISCOVERY_RATE)


def _roles(
    trials: Iterable[Trial], groups: int
) -> dict[tuple[Condition, str], tuple[int, int, int]]:
    times: Counter[tuple[Condition, str, tuple[str, str], int]] = Counter()
    for trial in trials:
        role = f"{trial.kind_1} – {trial.kind_2}"
        first, second = sorted((trial.model_1, trial.model_2))  # of minimal pairs either is right
        times[trial.condition, role, (first, second), trial.group] += 1
    roles = {}
    # In a sound design all model pairs have as many trials of a role in every group; fewest and
    # most over pairs and groups show whether they do. Trials without models are not a model pair.
    for condition in Condition:
        for role in sorted({key[1] for key in times if key[0] == condition}):
            pairs = {key[2] for key in times if key[:2] == (condition, role)}
            each = [times[condition, role, p, g] for p in pairs for g in range(1, groups + 1)]
            roles[condition, role] = (len(pairs - {("", "")}), min(each), max(each))
    return roles


def _sources(trials: Iterable[Trial]) -> dict[tuple[Condition, Kind], int]:
    sentences: dict[tuple[Condition, Kind], set[Sentence]] = {}
    for trial in trials:
        for kind, shown in ((trial.kind_1, trial.sentence_1), (trial.kind_2, trial.sentence_2)):
            sentences.setdefault((trial.condition, kind), set()).add(shown)
    return {key: len(shown) for key, shown in sorted(sentences.items(), key=lambda each: each[0])}


def _balance(trials: Sequence[Trial], frequencies: WordFrequencies) -> FloatArray:
    """Means over trials of each of `MEASURES`, for sentence_1 and sentence_2, (3, 2)."""
    measured = [
        [
            [float(len(sentence)), float(len(sentence.bare)), frequencies.mean_zipf(sentence)]
            for sentence in (trial.sentence_1, trial.sentence_2)
        ]
        for trial in trials
    ]  # (n_trials, 2 sentences, 3 measures)
    means: FloatArray = np.array(measured).mean(axis=0).T
    return means


def summary_report(summary: DesignSummary) -> Report:
    """The summary as a page; what tests of its groups cannot show comes first."""
    groups = range(1, summary.groups + 1)
    totals = [sum(column) for column in zip(*summary.counts.values(), strict=True)]
    counts = [
        *((condition, *numbers) for condition, numbers in summary.counts.items()),
        ("all", *totals),
        ("expected minutes", *(f"{minutes:.1f}" for minutes in summary.minutes)),
    ]
    roles = [
        (condition, role, pairs or "none", least if least == most else f"{least}–{most}")
        for (condition, role), (pairs, least, most) in summary.roles.items()
    ]
    sources = [(condition, kind, n) for (condition, kind), n in summary.sources.items()]
    balance = [
        (condition, measure, float(first), float(second), float(second - first))
        for condition, means in summary.balance.items()
        for measure, (first, second) in zip(MEASURES, means, strict=True)
    ]
    roles_header = ("condition", "sentence_1 – sentence_2", "model pairs", "trials of each")
    balance_header = ("condition", "measure", "sentence_1", "sentence_2", "difference")
    return Report(
        "Design of the experiment",
        (
            *(Paragraph((strong(caution),)) for caution in summary.cautions),
            *(Paragraph(text) for name, text in summary.told.items() if text and name != "balance"),
            Heading("Trials by group"),
            Table(("condition", *map(str, groups)), counts),
            Heading("What each group sees of a model pair"),
            Table(roles_header, roles, texts=2),
            Heading("Distinct sentences by source"),
            Table(("condition", "kind", "sentences"), sources, texts=2),
            *([Heading("Triplets"), summary.figures] if summary.figures is not None else ()),
            Heading("Balance between the two sentences of a trial"),
            Paragraph(summary.told["balance"]),
            Table(balance_header, balance, texts=2),
        ),
    )


def summary_figure(summary: DesignSummary) -> Figure:
    """Trials by group and condition, sentences by source, and the balance between sides."""
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(9, 6)
    upper, lower = figure.subfigures(2, 1, squeeze=False).ravel()
    left, right = upper.subplots(1, 2)
    # A bar a group, the conditions' trials on top of one another.
    groups = np.arange(1, summary.groups + 1)
    bottom = np.zeros(summary.groups)
    for condition, counts in summary.counts.items():
        left.bar(groups, counts, bottom=bottom, label=condition)
        bottom += counts
    left.set(xlabel="group", ylabel="trials")
    left.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
    left.set_title(f"{counted(max(1, round(max(summary.minutes))), 'minute')} for a participant")
    left.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    names = [f"{condition}: {kind}" for condition, kind in summary.sources]
    bars = right.barh(names, list(summary.sources.values()))
    right.bar_label(bars, padding=2, fontsize="small")
    right.margins(x=0.12)
    right.invert_yaxis()
    right.set(xlabel="distinct sentences", title="sentences by source")
    right.tick_params(axis="y", labelsize="small")
    # A panel a measure, a row a condition, and in it a dot for each of a trial's two sentences, a
    # little apart, since balanced ones would hide one another.
    places = np.arange(len(summary.balance))
    panels = lower.subplots(1, 3)
    for axis, (row, measure) in zip(panels, enumerate(MEASURES), strict=True):
        for side, name in enumerate(_SIDES):
            values = [table[row, side] for table in summary.balance.values()]
            axis.plot(values, places + 0.15 * (side - 0.5), "o", label=name)
        axis.set_yticks(places, list(summary.balance), fontsize="small")
        axis.invert_yaxis()
        axis.margins(x=0.2, y=0.2)
        axis.set_title(measure)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure
