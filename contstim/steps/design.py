"""The trials of an experiment, and what it would find."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from contstim.errors import InputError
from contstim.experiments.analysis import SMALLEST_EFFECT
from contstim.experiments.design.golan2023 import SECONDS_PER_TRIAL
from contstim.options import Aside, Help, Reads, Seed, Stem, Writes
from contstim.reviews import ItemKind, undecided
from contstim.scale import Scale
from contstim.steps.fields import Earlier, Reviews
from contstim.steps.step import Outcome, Step
from contstim.tables import listed
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contstim.experiments.design.building import Design
    from contstim.experiments.design.calibration import MeasuredPeople
    from contstim.experiments.design.power import DesignPower
    from contstim.frequencies import WordFrequencies
    from contstim.reporter import Reporter
    from contstim.reviews import ReviewedItem
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.stimuli import Trial


@dataclass(frozen=True, kw_only=True)
class DesignSettings:
    """Options of making trials and assigning them to groups."""

    groups: Annotated[
        int, Help("Groups of participants; each sees its own trials.", at_least=1)
    ] = 10
    random_per_group: Annotated[int, Help("Random natural pairs for a group.", at_least=0)] = 9
    catch_per_group: Annotated[
        int,
        Help("Catch trials for a group: natural against its own words shuffled.", at_least=0),
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
        float,
        Help("What a trial takes; by default the median of the 2023 study.", at_least=0),
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

    PANEL: ClassVar[str] = "Simulation of the experiment (with --power)"

    participants: Annotated[int, Help("Participants in a group.", at_least=1)] = 10
    power_groups: Annotated[int | None, Help("Groups, if other than --groups.", at_least=1)] = None
    ceiling: Annotated[
        float | None,
        Help(
            "How often a person agrees with the majority of the others on "
            "random natural pairs; by default as in the 2023 study, or --pilot."
        ),
    ] = None
    pilot: Annotated[
        Path | None,
        Aside(
            "The folder that analyze wrote of a pilot or an earlier study. "
            "Simulated people agree, and each model predicts them, as often as there; by default "
            "as in the 2023 study, with each model in turn planted as the best, and rates are "
            "ranges for close and for distant rivals."
        ),
    ] = None
    smallest_effect: Annotated[
        float,
        Help(
            "The smallest difference of accuracies that matters. How often would "
            "it be found if it is there, and ruled out if it is not?",
            at_least=0,
            at_most=1,
        ),
    ] = SMALLEST_EFFECT
    simulations: Annotated[
        int,
        Help(
            "Experiments to simulate for each planted model, with close and with distant rivals.",
            at_least=1,
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


_DESIGN, _POWER = DesignSettings(), PowerSettings()
_POWER_ENDINGS = (".power.csv", ".power-sizes.csv", ".power.md", ".power.png")


class MakeDesign(Step["Design"], name="design"):
    """Turn pairs and triplets into the trials of an experiment, shared out to groups.

    No group sees a sentence twice, and every group has the same number of trials of each condition,
    model pair and role. The finished table is checked independently. Beside it stand a summary to
    read before ethics and preregistration (`….summary.md`, `….summary.png`) and a certificate.

    After a review of trials, as many as possible stay in their groups. Rejected random and catch
    trials are drawn anew; for rejected pairs and triplets run `select natural` and `select
    triplets` with the same review first.

    Examples: `contstim design --pairs pairs.csv --triplets selected.csv --sentences natural.txt
    --groups 10 --random-per-group 9 --catch-per-group 12 --out trials.csv`

    `contstim design --pairs pairs-2.csv --triplets selected-2.csv --sentences natural.txt
    --groups 10 --random-per-group 9 --catch-per-group 12 --review review.csv --earlier trials.csv
    --out trials-2.csv`
    """

    out: Annotated[
        Path,
        Writes(
            "The table of trials to write.",
            beside=(".certificate.json", ".summary.md", ".summary.png"),
        ),
    ]
    pairs: Annotated[Path | None, Reads("Natural pairs, from select natural.")] = None
    triplets: Annotated[Path | None, Reads("Triplets, from select triplets.")] = None
    sentences: Annotated[
        Path | None, Reads("Natural sentences for random pairs and catch trials.")
    ] = None
    settings: DesignSettings = _DESIGN
    seed: Seed = 0
    power: Annotated[
        bool,
        Help(
            "Also simulate the experiment, with new people and items; needs --scores, and "
            "writes ….power.md, ….power.png and two tables."
        ),
    ] = False
    scores: Annotated[Path | None, Reads("Scores of all sentences of the trials.")] = None
    simulation: PowerSettings = _POWER
    review: Reviews = ()
    earlier: Earlier = ()

    def further_reads(self) -> list[Path]:
        """The tables of a pilot."""
        return self.simulation.files if self.power else []

    def work(self, reporter: Reporter) -> Outcome[Design]:
        """Make the design; nothing is written before a simulation, which may refuse its scores."""
        if self.power != (self.scores is not None):
            raise InputError("`power` simulates participants from `scores`: give both.")
        if self.simulation.pilot is not None and not self.power:
            raise InputError("`pilot` says how often people agree, for `power`: give both.")
        from contstim.experiments.design.building import build_design
        from contstim.experiments.design.summary import summarise, summary_figure, summary_report
        from contstim.files import write_text
        from contstim.reporting.canvas import write_figure
        from contstim.steps.earlier import EarlierStimuli, trials_in_place
        from contstim.stimuli import Trial, read_pairs, read_stimuli, read_triplets, write_trials

        if self.sentences is None and (
            self.settings.random_per_group or self.settings.catch_per_group
        ):
            raise InputError(
                "Random pairs and catch trials are made of natural sentences: give `sentences`, or "
                "0 for `random_per_group` and `catch_per_group`."
            )
        table = None if self.scores is None else _read_log_probs(self.scores)
        natural = [] if self.sentences is None else read_stimuli(self.sentences)
        stood = EarlierStimuli.read(self.review, self.earlier)
        reviewed = stood.review()
        if reviewed is not None:
            before = undecided(stood.stimuli) or reviewed.of_kind(ItemKind.TRIAL).values()
            _warn_of_other_numbers(before, self.settings, reporter)
        design = build_design(
            () if self.pairs is None else read_pairs(self.pairs),
            () if self.triplets is None else read_triplets(self.triplets),
            natural,
            groups=self.settings.groups,
            random_per_group=self.settings.random_per_group,
            catch_per_group=self.settings.catch_per_group,
            seed=self.seed,
            seconds=self.settings.seconds,
            review=reviewed,
            scale=self.settings.scale,
        )
        before_trials = stood.of_kind(Trial)
        rows = trials_in_place(before_trials, design.trials)
        design = replace(design, trials=tuple(rows))
        changes = _changes(before_trials, rows)
        frequencies = word_frequencies(self.settings.text, natural, design.trials)
        summary = summarise(design, frequencies, seconds_per_trial=self.settings.seconds_per_trial)
        simulated = None
        if table is not None:
            simulated = _simulate(design.trials, table, self.simulation, self.seed, reporter)
        write_trials(self.out, design.trials)
        certificate = design.certificate
        certificate.save(Path(f"{self.out}.certificate.json"))
        write_text(Path(f"{self.out}.summary.md"), summary_report(summary).markdown())
        write_figure(partial(summary_figure, summary), Path(f"{self.out}.summary.png"))
        further = () if simulated is None else tuple(_write_power(simulated, self.out))
        facts = {
            "groups": self.settings.groups,
            "scale": str(self.settings.scale),
            "seed": self.seed,
            "text": None if self.settings.text is None else str(self.settings.text),
            "earlier": stood.files,
            "changed": changes,
        }
        for caution in dict.fromkeys((simulated or summary).cautions):
            reporter.warn(caution)
        minutes = max(1, round(max(summary.minutes)))
        reporter.say(
            f"{self.out}: {counted(certificate.trials, 'trial')} for "
            f"{counted(self.settings.groups, 'group')}, "
            f"{certificate.trials_per_group:,} for each participant, about "
            f"{counted(minutes, 'minute')}; {certificate.method}, "
            f"{certificate.status}. Read {self.out}.summary.md before you preregister."
        )
        if certificate.reviewed:
            reporter.say(
                f"  {certificate.kept:,} of {counted(certificate.reviewed, 'reviewed trial')} "
                f"stay in "
                f"their groups, {certificate.rejected:,} rejected (or of a rejected pair or "
                f"triplet); "
                f"more than {certificate.kept_bound:,} cannot stay (proven)."
            )
        if stood.stimuli:
            reporter.say(f"  {counted(len(changes), 'row')} changed: {_rows_text(changes)}.")
        for note in (*summary.shared, *summary.catch):
            reporter.say(note)
        return Outcome(design, facts, writes=further)


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


class SimulatePower(Step["DesignPower"], name="power"):
    """Simulate an experiment with new people and items, and say which models it would tell apart.

    Writes a report (`….power.md`), tables of rates and of sizes, and a figure. `contstim design
    --power` does the same with the design.

    Example: `contstim power --trials trials.csv --scores trial-scores.csv --out trials.csv`
    """

    trials: Annotated[Path, Reads("The table of trials, from `design`.")]
    scores: Annotated[Path, Reads("Scores of the trials' sentences, from `score`.")]
    out: Annotated[Path, Stem("Beginning of the names of what is written.", beside=_POWER_ENDINGS)]
    settings: PowerSettings = _POWER
    seed: Seed = 0

    def further_reads(self) -> list[Path]:
        """The tables of a pilot."""
        return self.settings.files

    def work(self, reporter: Reporter) -> Outcome[DesignPower]:
        """Simulate experiments, and write what they would find."""
        from contstim.stimuli import read_trials

        table = _read_log_probs(self.scores)
        power = _simulate(read_trials(self.trials), table, self.settings, self.seed, reporter)
        _write_power(power, self.out)
        for caution in power.cautions:
            reporter.warn(caution)
        return Outcome(power, {"seed": self.seed})


def _read_log_probs(scores: Path) -> ScoreTable:
    from contstim.models.scoring import require_log_probabilities
    from contstim.scores import ScoreTable

    table = ScoreTable.read(scores)
    require_log_probabilities(scores, table.models, "A simulation with noise in nats")
    return table


def _simulate(
    trials: Sequence[Trial],
    table: ScoreTable,
    settings: PowerSettings,
    seed: int,
    reporter: Reporter,
) -> DesignPower:
    from contstim.experiments.design.power import design_power

    measured = settings.measured()
    return design_power(
        trials,
        table,
        measured=measured,
        groups=settings.power_groups,
        participants=settings.participants,
        simulations=settings.simulations,
        smallest_effect=settings.smallest_effect,
        seed=seed,
        progress=partial(reporter.progress, "simulating"),
    )


def _write_power(power: DesignPower, out: Path) -> list[Path]:
    """Write the table and, beside it, that of sizes, the report and the figure; their paths."""
    from contstim.experiments.design.power_report import (
        ALTERNATIVE,
        power_figure,
        power_report,
        power_table,
        size_table,
    )
    from contstim.files import write_text
    from contstim.reporting.canvas import write_figure
    from contstim.reporting.report import Picture
    from contstim.tables import write_table

    table, sizes, report, figure = (Path(f"{out}{ending}") for ending in _POWER_ENDINGS)
    picture = Picture(figure.stem, b"", ALTERNATIVE)
    write_text(report, power_report(power, picture).markdown())
    write_table(table, power_table(power))
    write_table(sizes, size_table(power))
    write_figure(partial(power_figure, power), figure)
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
    trials: Collection[ReviewedItem], settings: DesignSettings, reporter: Reporter
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
        reporter.warn(
            f"the reviewed trials are of {before[0]} groups with {n_random} random and {n_catch} "
            f"catch trials each, these of {now[0]} with {now[1]} and {now[2]}. "
            f"To leave the design as it was: `groups` {before[0]}, `random_per_group` {n_random}, "
            f"`catch_per_group` {n_catch}."
        )
