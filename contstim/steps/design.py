"""The trials of an experiment, and what it would find."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.experiments.analysis import SMALLEST_EFFECT
from contstim.experiments.design.golan2023 import SECONDS_PER_TRIAL
from contstim.options import Help
from contstim.reviews import ItemKind, undecided
from contstim.scale import Scale
from contstim.steps.watching import SILENT
from contstim.tables import listed
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contstim.experiments.design.building import Design
    from contstim.experiments.design.calibration import MeasuredPeople
    from contstim.experiments.design.design_power import DesignPower
    from contstim.frequencies import WordFrequencies
    from contstim.reviews import ReviewedItem
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.steps.watching import Watcher
    from contstim.stimuli import Trial


@dataclass(frozen=True, kw_only=True)
class DesignSettings:
    """Options of making trials and assigning them to groups."""

    groups: Annotated[int, Help("Groups of participants; each sees its own trials.")] = 10
    random_per_group: Annotated[int, Help("Random natural pairs for a group.")] = 9
    catch_per_group: Annotated[
        int, Help("Catch trials for a group: natural against its own words shuffled.")
    ] = 12
    scale: Annotated[
        Scale,
        Help(
            "What people answer: confidence, 1 (very confident in sentence_1) to 6 (very confident "
            "in sentence_2); or choice, 1 or 2."
        ),
    ] = Scale.CONFIDENCE
    seconds: Annotated[
        float, Help("How long the search for an allocation may take.", at_least=0.0)
    ] = 60.0
    seconds_per_trial: Annotated[
        float, Help("What a trial takes; by default the median of the 2023 study.")
    ] = SECONDS_PER_TRIAL
    text: Annotated[
        Path | None,
        Help(
            "Where word frequencies (Zipf scale) come from: a text, a table with the columns "
            "word and count, or a trained model of words; by default --sentences, or else the "
            "trials themselves."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class PowerSettings:
    """Options of simulating the experiment, with new people and new items."""

    participants: Annotated[int, Help("With --power: participants in a group.")] = 10
    power_groups: Annotated[
        int | None, Help("With --power: groups, if other than --groups.", at_least=1)
    ] = None
    ceiling: Annotated[
        float | None,
        Help(
            "With --power: how often a person agrees with the majority of the others on "
            "random natural pairs; by default as in the 2023 study, or --pilot."
        ),
    ] = None
    pilot: Annotated[
        Path | None,
        Help(
            "With --power: the folder that analyze wrote of a pilot or an earlier study. "
            "Simulated people agree, and each model predicts them, as often as there; by default "
            "as in the 2023 study, with each model in turn planted as the best, and rates are "
            "ranges for close and for distant rivals."
        ),
    ] = None
    smallest_effect: Annotated[
        float,
        Help(
            "With --power: the smallest difference of accuracies that matters. How often would "
            "it be found if it is there, and ruled out if it is not?"
        ),
    ] = SMALLEST_EFFECT
    simulations: Annotated[
        int,
        Help(
            "With --power: experiments to simulate for each planted model, with close and with "
            "distant rivals."
        ),
    ] = 1000

    def measured(self) -> MeasuredPeople:
        """Measurements to which simulated participants are calibrated.

        Raises:
            InputError: the folder lacks a table, or has a damaged one.
        """
        from contstim.experiments.design.calibration import MeasuredPeople, read_measured

        # What is stated counts before what a pilot measured, and that before the 2023 study.
        measured = MeasuredPeople() if self.pilot is None else read_measured(self.pilot)
        return measured if self.ceiling is None else measured.with_random(self.ceiling)

    @property
    def files(self) -> list[Path]:
        """The tables of the pilot."""
        if self.pilot is None:
            return []
        return [self.pilot / "tables" / f"{name}.csv" for name in ("models", "groups")]


def make_design(
    out: Path,
    *,
    pairs: Path | None = None,
    triplets: Path | None = None,
    sentences: Path | None = None,
    settings: DesignSettings,
    scores: Path | None = None,
    power: PowerSettings | None = None,
    seed: int = 0,
    review: Sequence[Path] = (),
    earlier: Sequence[Path] = (),
    watch: Watcher = SILENT,
) -> Design:
    """Turn pairs and triplets into the trials of an experiment, shared out to groups.

    Beside the table stand a summary (`….summary.md`, `….summary.png`) and a certificate, and with
    `power` what `simulate_power` writes. Nothing is written before the simulation has ended: it may
    refuse its scores.

    Args:
        out: the table of trials to write.
        pairs: natural pairs.
        triplets: triplets.
        sentences: natural sentences for random pairs and catch trials.
        settings: how trials are made and shared out.
        scores: with `power`: a table of the scores of all sentences of the trials, nats.
        power: how the experiment is simulated; None: it is not.
        seed: decides what is drawn, and what simulated participants answer.
        review: reviews of trials made before: as many as possible stay in their groups.
        earlier: the table of these trials: whether a review holds them or not, they stay in their
            groups and rows, and new ones stand in the rows of what is gone.
        watch: told what is done.

    Raises:
        InputError: a file cannot be read or written, or trials cannot be made or simulated.
    """
    from contstim.experiments.design.building import build_design
    from contstim.experiments.design.summary import draw_summary, summarise, summary_report
    from contstim.files import write_text
    from contstim.records import write_record
    from contstim.steps.earlier import Earlier, trials_in_place
    from contstim.stimuli import Trial, read_pairs, read_stimuli, read_triplets, write_trials

    if sentences is None and (settings.random_per_group or settings.catch_per_group):
        raise InputError(
            "Random pairs and catch trials are made of natural sentences: give --sentences, or "
            "--random-per-group 0 --catch-per-group 0."
        )
    table = None if scores is None else _read_log_probs(scores)
    natural = [] if sentences is None else read_stimuli(sentences)
    stood = Earlier.read(review, earlier)
    reviewed = stood.review()
    if reviewed is not None:
        before = undecided(stood.stimuli) or reviewed.of_kind(ItemKind.TRIAL).values()
        _warn_of_other_numbers(before, settings, watch)
    design = build_design(
        () if pairs is None else read_pairs(pairs),
        () if triplets is None else read_triplets(triplets),
        natural,
        groups=settings.groups,
        random_per_group=settings.random_per_group,
        catch_per_group=settings.catch_per_group,
        seed=seed,
        seconds=settings.seconds,
        review=reviewed,
        scale=settings.scale,
    )
    before_trials = stood.of_kind(Trial)
    rows = trials_in_place(before_trials, design.trials)
    design = replace(design, trials=tuple(rows))
    changes = _changes(before_trials, rows)
    frequencies = word_frequencies(settings.text, natural, design.trials)
    summary = summarise(design, frequencies, seconds_per_trial=settings.seconds_per_trial)
    simulated = None
    inputs = [pairs, triplets, sentences, settings.text, *review]
    if power is not None and table is not None:
        simulated = _simulate(design.trials, table, power, seed, watch)
        inputs += [scores, *power.files]
    write_trials(out, design.trials)
    certificate = design.certificate
    outputs = [Path(f"{out}.{end}") for end in ("certificate.json", "summary.md", "summary.png")]
    certificate.save(outputs[0])
    write_text(outputs[1], summary_report(summary).markdown())
    draw_summary(summary, outputs[2])
    if simulated is not None:
        outputs += _write_power(simulated, out)
    text = None if settings.text is None else str(settings.text)
    facts = {
        "groups": settings.groups,
        "scale": str(settings.scale),
        "seed": seed,
        "text": text,
        "earlier": stood.files,
    }
    write_record(out, inputs, outputs, **facts, changed=changes)
    for caution in dict.fromkeys((simulated or summary).cautions):
        watch.warn(caution)
    minutes = max(1, round(max(summary.minutes)))
    watch.remark(
        f"{out}: {counted(certificate.trials, 'trial')} for {counted(settings.groups, 'group')}, "
        f"{certificate.trials_per_group:,} for each participant, about "
        f"{counted(minutes, 'minute')}; {certificate.method}, "
        f"{certificate.status}. Read {out}.summary.md before you preregister."
    )
    if certificate.reviewed:
        watch.remark(
            f"  {certificate.kept:,} of {counted(certificate.reviewed, 'reviewed trial')} stay in "
            f"their groups, {certificate.rejected:,} rejected (or of a rejected pair or triplet); "
            f"more than {certificate.kept_bound:,} cannot stay (proven)."
        )
    if stood.stimuli:
        watch.remark(f"  {counted(len(changes), 'row')} changed: {_rows_text(changes)}.")
    for note in (*summary.shared, *summary.catch):
        watch.remark(note)
    return design


def _changes(before: Sequence[Trial], now: Sequence[Trial]) -> list[dict[str, object]]:
    """Changed rows of a table of trials, each before and now; row 1 is the first trial's."""
    changes: list[dict[str, object]] = []
    for row, (old, new) in enumerate(zip_longest(before, now), start=1):
        if old != new:
            group = (new or old).group
            shown = [
                "" if trial is None else f"{trial.sentence_1.text} / {trial.sentence_2.text}"
                for trial in (old, new)
            ]
            changes.append({"row": row, "group": group, "before": shown[0], "now": shown[1]})
    return changes if before else []


def _rows_text(changes: Sequence[dict[str, object]]) -> str:
    return listed(f"{each['row']} (group {each['group']})" for each in changes) or "none"


def simulate_power(
    trials: Path,
    scores: Path,
    out: Path,
    *,
    settings: PowerSettings,
    seed: int = 0,
    watch: Watcher = SILENT,
) -> DesignPower:
    """Simulate experiments with new people and items: which models would they tell apart?

    Args:
        trials: a table of trials.
        scores: a table of the scores of all their sentences, nats.
        out: the stem of the report `….power.md`, the tables `….power.csv` and
            `….power-sizes.csv`, and the figure `….power.png`.
        settings: how the experiment is simulated.
        seed: decides what simulated participants answer.
        watch: told what is done.

    Raises:
        InputError: a file cannot be read or written, or the scores are not log-probabilities of
            all sentences under two models or more.
    """
    from contstim.records import write_record
    from contstim.stimuli import read_trials

    table = _read_log_probs(scores)
    power = _simulate(read_trials(trials), table, settings, seed, watch)
    written, *beside = _write_power(power, out)
    write_record(written, [trials, scores, *settings.files], beside, seed=seed)
    for caution in power.cautions:
        watch.warn(caution)
    return power


def _read_log_probs(scores: Path) -> ScoreTable:
    from contstim.models.scoring import require_log_probabilities
    from contstim.scores import ScoreTable

    table = ScoreTable.read(scores)
    require_log_probabilities(scores, table.models, "A simulation with noise in nats")
    return table


def _simulate(
    trials: Sequence[Trial], table: ScoreTable, settings: PowerSettings, seed: int, watch: Watcher
) -> DesignPower:
    from contstim.experiments.design.design_power import design_power

    measured = settings.measured()
    with watch.working("simulating") as progress:
        return design_power(
            trials,
            table,
            measured=measured,
            groups=settings.power_groups,
            participants=settings.participants,
            simulations=settings.simulations,
            smallest_effect=settings.smallest_effect,
            seed=seed,
            progress=progress,
        )


def _write_power(power: DesignPower, out: Path) -> list[Path]:
    """Write the table and, beside it, that of sizes, the report and the figure; their paths."""
    from contstim.experiments.design.design_power import power_table, size_table
    from contstim.experiments.design.power_figure import ALTERNATIVE, draw_power
    from contstim.experiments.design.power_report import power_report
    from contstim.files import write_text
    from contstim.reporting.report import Picture
    from contstim.tables import write_table

    endings = ("power.csv", "power-sizes.csv", "power.md", "power.png")
    table, sizes, report, figure = (Path(f"{out}.{ending}") for ending in endings)
    picture = Picture(figure.stem, b"", ALTERNATIVE)
    write_text(report, power_report(power, picture).markdown())
    write_table(table, power_table(power))
    write_table(sizes, size_table(power))
    draw_power(power, figure)
    return [table, sizes, report, figure]


def word_frequencies(
    text: Path | None, natural: Sequence[Sentence], trials: Sequence[Trial]
) -> WordFrequencies:
    """Of the largest text there is: the user's, all natural sentences, the trials.

    Raises:
        InputError: the text cannot be read, or there is no word anywhere.
    """
    from contstim.frequencies import WordFrequencies, read_frequencies

    if text is not None:
        return read_frequencies(text)
    if natural:
        return WordFrequencies.of(natural, "the natural sentences")
    of_trials = [sentence for trial in trials for sentence in (trial.sentence_1, trial.sentence_2)]
    return WordFrequencies.of(of_trials, "the trials")


def _warn_of_other_numbers(
    trials: Collection[ReviewedItem], settings: DesignSettings, watch: Watcher
) -> None:
    """A design of other numbers than the reviewed one is allowed, but seldom meant."""
    from contstim.stimuli import Condition

    if not trials:
        return
    of_group_1 = [trial.condition for trial in trials if trial.group == 1]
    n_random, n_catch = map(of_group_1.count, (Condition.RANDOM_NATURAL, Condition.CATCH))
    before = (max(trial.group for trial in trials), n_random, n_catch)
    now = (settings.groups, settings.random_per_group, settings.catch_per_group)
    if before != now:
        watch.warn(
            f"the reviewed trials are of {before[0]} groups with {n_random} random and {n_catch} "
            f"catch trials each, these of {now[0]} with {now[1]} and {now[2]}. "
            f"To leave the design as it was: --groups {before[0]} --random-per-group {n_random} "
            f"--catch-per-group {n_catch}."
        )
