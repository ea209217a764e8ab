"""Summary of a design in numbers, for checks before ethics approval and preregistration.

`sentences_needed` counts the natural sentences that a study needs. It requires no scores.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis import families
from contstim.experiments.design.population import SECONDS_PER_TRIAL
from contstim.experiments.responses.admission import LAPSES, excluded_share, required_catch
from contstim.items.stimuli import Condition, Kind, Trial
from contstim.reporting.canvas import BLUE, ORANGE, new_figure
from contstim.reporting.report import Heading, Paragraph, Report, Table, strong
from contstim.reporting.templates import passages
from contstim.wording import grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.figure import Figure

    from contstim.experiments.design.building import Design
    from contstim.files.arrays import FloatArray
    from contstim.words.frequencies import WordFrequencies

MEASURES = ("words", "characters", "word frequency (mean Zipf)")


@dataclass(frozen=True)
class DesignSummary:
    """A design in numbers.

    Attributes:
        counts: condition → number of trials in each group.
        roles: (condition, kinds of both sentences) → three numbers: the number of model pairs with
            such trials, and the minimum and maximum number of such trials that a group has for a
            model pair.
        minutes: expected duration for each group, without pauses and instructions.
        sources: (condition, kind of sentence) → number of distinct sentences.
        balance: condition → means over the condition's trials, (3, 2): number of words, number of
            characters and word frequency (Zipf scale), each for sentence_1 and sentence_2.
        notes: topic → text about the design, possibly empty. The topics are the sections of
            summary.md.jinja, and `tests`. The text of `tests` is empty if there are enough groups
            for tests over groups. Otherwise, it says that the analysis uses crossed tests (of
            people and items).
    """

    groups: int
    counts: Mapping[Condition, tuple[int, ...]]
    roles: Mapping[tuple[Condition, str], tuple[int, int, int]]
    minutes: tuple[float, ...]
    sources: Mapping[tuple[Condition, Kind], int]
    balance: Mapping[Condition, FloatArray]
    notes: Mapping[str, str]
    cautions: tuple[str, ...]
    figures: Table | None = None


def summarise(
    design: Design, frequencies: WordFrequencies, *, seconds_per_trial: float = SECONDS_PER_TRIAL
) -> DesignSummary:
    """Count a design's trials and sentences, and compare the two sentences of trials.

    Raises:
        InputError: if the time per trial is not positive.
    """
    if not 0 < seconds_per_trial < np.inf:
        raise InputError(f"`seconds_per_trial` must be above 0, got {seconds_per_trial}.")
    trials = design.trials
    groups = len({trial.group for trial in trials})
    by_group = Counter((trial.condition, trial.group) for trial in trials)
    present = [c for c in Condition if any(condition is c for condition, _ in by_group)]
    counts = {c: tuple(by_group[c, g] for g in range(1, groups + 1)) for c in present}
    per_group = np.sum(list(counts.values()), axis=0)
    # Pairs and triplets are selected separately, so both may contain the same sentence
    pairs = [t for t in trials if t.condition is Condition.NATURAL_CONTROVERSIAL]
    pair_sentences = {text for trial in pairs for text in trial.bare}
    triplet_sentences = {t.bare[0] for t in trials if t.condition is Condition.NATURAL_SYNTHETIC}
    models = sorted({m for trial in trials for m in (trial.model_1, trial.model_2)} - {""})
    contrasts = families.every_contrast(models) if len(models) > 1 else ()
    family = families.detectability([groups] * len(contrasts), families.FALSE_DISCOVERY_RATE)
    caution = family.caution("groups", families.FALSE_DISCOVERY_RATE)
    texts = {"tests": families.crossed_instead(groups) if family.hopeless else ""}
    texts |= passages(
        *(__package__, "summary.md.jinja"),
        certificate=design.certificate,
        seconds=seconds_per_trial,
        shared=len(pair_sentences & triplet_sentences),
        natural=len(pair_sentences | triplet_sentences),
        catch=max(counts.get(Condition.CATCH, (0,))),
        required=required_catch,
        excluded=excluded_share,
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
        notes=texts,
        cautions=(caution,) if caution and not family.hopeless else (),
    )


def _roles(
    trials: Iterable[Trial], groups: int
) -> dict[tuple[Condition, str], tuple[int, int, int]]:
    # The order of the two models varies in minimal pairs, so a pair of models is a set
    uses_by_role = grouped(
        ((t.condition, f"{t.kind_1} – {t.kind_2}"), (frozenset((t.model_1, t.model_2)), t.group))
        for t in trials
    )
    conditions, roles = [*Condition], {}
    for key in sorted(uses_by_role, key=lambda key: (conditions.index(key[0]), key[1])):
        uses = Counter(uses_by_role[key])
        pairs = {pair for pair, _ in uses}
        # In a correct design, minimum and maximum are equal
        numbers = [uses[pair, group] for pair in pairs for group in range(1, groups + 1)]
        # Trials without models do not count as a model pair
        roles[key] = (len(pairs - {frozenset([""])}), min(numbers), max(numbers))
    return roles


def _sources(trials: Iterable[Trial]) -> dict[tuple[Condition, Kind], int]:
    sentences = {
        (trial.condition, kind, sentence)
        for trial in trials
        for kind, sentence in ((trial.kind_1, trial.sentence_1), (trial.kind_2, trial.sentence_2))
    }
    return dict(sorted(Counter((condition, kind) for condition, kind, _ in sentences).items()))


def _balance(trials: Sequence[Trial], frequencies: WordFrequencies) -> FloatArray:
    """Return the mean of each of `MEASURES` for sentence_1 and sentence_2, (3, 2)."""
    sentences = [sentence for trial in trials for sentence in (trial.sentence_1, trial.sentence_2)]
    measured = [(len(s), len(s.bare), frequencies.mean_zipf(s)) for s in sentences]
    return np.asarray(np.reshape(measured, (-1, 2, 3)).mean(axis=0).T)


def summary_report(summary: DesignSummary) -> Report:
    """Build the page of the summary, which begins with warnings."""
    groups = range(1, summary.groups + 1)
    totals = [sum(column) for column in zip(*summary.counts.values(), strict=True)]
    counts = [
        *((condition, *numbers) for condition, numbers in summary.counts.items()),
        ("all", *totals),
        ("expected minutes", *(f"{minutes:.1f}" for minutes in summary.minutes)),
    ]
    roles = [
        (condition, role, pairs or "none", least if least == largest else f"{least}–{largest}")
        for (condition, role), (pairs, least, largest) in summary.roles.items()
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
            *(Paragraph(x) for name, x in summary.notes.items() if x and name != "balance"),
            Heading("Trials by group"),
            Table(("condition", *map(str, groups)), counts),
            Heading("Trials of each model pair in a group"),
            Table(roles_header, roles, texts=2),
            Heading("Distinct sentences by source"),
            Table(("condition", "kind", "sentences"), sources, texts=2),
            *([Heading("Triplets"), summary.figures] if summary.figures is not None else ()),
            Heading("Balance between the two sentences of a trial"),
            Paragraph(summary.notes["balance"]),
            Table(balance_header, balance, texts=2),
        ),
    )


def summary_figure(summary: DesignSummary) -> Figure:
    """Draw numbers of trials and of sentences, and the measures of sentence_1 and sentence_2."""
    from matplotlib.ticker import MaxNLocator

    height = 1.0 + 0.17 * len(summary.balance)
    figure = new_figure(7, 2.3 + height)
    upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=[2.3, height]).ravel()
    left_panel, right_panel = upper.subplots(1, 2)
    groups = np.arange(1, summary.groups + 1)
    bottom = np.zeros(summary.groups)
    for condition, counts in summary.counts.items():
        left_panel.bar(groups, counts, bottom=bottom, label=condition)
        bottom += counts
    left_panel.set(xlabel="group", ylabel="trials")
    left_panel.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
    left_panel.yaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    minutes = max(1, round(max(summary.minutes)))
    left_panel.set_title(f"{quantity(minutes, 'minute')} per participant")
    left_panel.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    names = [f"{condition}: {kind}" for condition, kind in summary.sources]
    bars = right_panel.barh(names, list(summary.sources.values()), color=BLUE)
    right_panel.bar_label(bars, padding=2, fontsize="small")
    right_panel.margins(x=0.12)
    right_panel.invert_yaxis()
    right_panel.set(xlabel="distinct sentences", title="sentences by source")
    right_panel.tick_params(axis="y", labelsize="small")
    # A panel for each measure, a row for each condition; a shift separates dots of equal values
    heights = np.arange(len(summary.balance))
    panels = lower.subplots(1, len(MEASURES), sharey=True)
    for axis, (row, measure) in zip(panels, enumerate(MEASURES), strict=True):
        for side, colour in enumerate((BLUE, ORANGE)):
            values = [table[row, side] for table in summary.balance.values()]
            shifted = heights + 0.3 * (side - 0.5)
            axis.plot(values, shifted, "o", ms=4, color=colour, label=f"sentence_{side + 1}")
        axis.margins(x=0.2)
        axis.set_title(measure.replace(" (", "\n("))
        constants = {table[row, side] for table in summary.balance.values() for side in (0, 1)}
        if len(constants) == 1:  # other ticks would be at values that no condition has
            (value,) = constants
            axis.set(xlim=(value - 1, value + 1), xticks=[value])
    panels[0].set_yticks(heights, list(summary.balance), fontsize="small")
    panels[0].set_ylim(len(heights) - 0.4, -0.6)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def sentences_needed(
    models: int,
    *,
    triplets_per_pair: int = 100,
    pairs_per_pair: int = 10,
    groups: int = 10,
    random_per_group: int = 3,
    catch_per_group: int = 12,
) -> tuple[int, list[tuple[str, int, int, int]]]:
    """Return the minimum number of natural sentences for a study that uses each sentence once.

    Also return a table with a row for each use of the sentences. A row has the use, the number of
    model pairs or groups, the number of sentences for each model pair or group, and the product of
    both numbers. The last row is the total; its use is `in all`.

    Each triplet and each catch trial uses one sentence. Each natural pair and each random pair uses
    two sentences. Pairs and triplets are selected separately and may share sentences. The summary
    of a design counts shared sentences. More sentences than this minimum give better triplets and
    natural pairs.
    """
    model_pairs = comb(models, 2)
    uses = (
        ("triplets", model_pairs, triplets_per_pair),
        ("natural pairs", model_pairs, 2 * pairs_per_pair),
        ("random pairs", groups, 2 * random_per_group),
        ("catch trials", groups, catch_per_group),
    )
    total = sum(times * n_each for _, times, n_each in uses)
    rows = [(use, times, n_each, times * n_each) for use, times, n_each in uses]
    return total, [*rows, ("in all", 1, total, total)]
