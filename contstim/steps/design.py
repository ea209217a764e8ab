"""The trials of an experiment, assigned to groups of participants."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from contstim.errors import InputError
from contstim.experiments.design.building import Design, build_design, check_attention
from contstim.experiments.design.population import SECONDS_PER_TRIAL
from contstim.experiments.design.summary import summarise, summary_figure, summary_report
from contstim.files.documents import write_json
from contstim.files.files import write_text
from contstim.files.tables import parsed_columns, read_table, write_table
from contstim.items.matching import figures_of
from contstim.items.reviews import read_reviews
from contstim.items.scale import Scale
from contstim.items.stimuli import (
    Trial,
    read_controversial_minimal_pairs,
    read_pairs,
    read_triplets,
    trial_columns,
)
from contstim.options import Help, Seed, WritesTable, reads_kind
from contstim.reporting.canvas import write_figure
from contstim.reporting.stimuli_page import figures_table
from contstim.steps.fields import Reviews, read_sentence_file
from contstim.steps.review import flags_of, report_changes
from contstim.steps.step import Outcome, Step, Value
from contstim.wording import quantity
from contstim.words.frequencies import WordFrequencies, read_frequencies
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.experiments.design.summary import DesignSummary
    from contstim.items.stimuli import Triplet
    from contstim.reporter import Reporter


class TrialsStep(Step[Value], name=""):
    """Base of steps that write the trials of an experiment."""

    out: Any
    scale: Annotated[
        Scale, Help("Scale of answers: confidence (1-6), choice (1-2) or slider (0-100).")
    ] = Scale.CONFIDENCE
    seconds_per_trial: Annotated[float, Help("Duration of a trial, seconds.", at_least=0)] = (
        SECONDS_PER_TRIAL
    )
    sentences: Annotated[
        Path | None, reads_kind("Natural sentences for catch trials and random pairs.", "sentences")
    ] = None
    seed: Seed = 0
    review: Reviews = ()


class MakeDesign(TrialsStep[Design], name="design", version=5):
    """Turn stimuli into the trials of an experiment, and assign the trials to groups.

    Each triplet gives a trial of its two synthetic sentences. With `--twins`, it also gives two
    trials of the natural sentence and a synthetic sentence. Answers to these two trials are less
    informative: in experiment 1 of Golan et al. (2023), such an answer gave a quarter to a third of
    the evidence that an answer about two synthetic sentences gave.

    No group sees a sentence twice. All groups have the same number of trials of each condition,
    model pair and role. The role of a trial names the model that rejects the synthetic sentence, or
    the model that is right about a minimal pair. An independent check verifies the finished table.
    The command also writes the result of this check (a certificate), and a summary for ethics
    committees and the preregistration (`….summary.md`, `….summary.png`).

    After a review, as many trials as possible stay in their groups, and rejected random and catch
    trials are replaced. To replace rejected pairs, minimal pairs and triplets, first run `select
    natural`, `select minimal-pairs` and `select triplets` with the same file of `--review`.

    Examples: `contstim design --pairs pairs.csv --triplets selected.csv --sentences natural.txt
    --groups 10 --random-per-group 9 --catch-per-group 12 --out trials.csv`

    `contstim design --pairs pairs-2.csv --triplets selected-2.csv --sentences natural.txt
    --groups 10 --random-per-group 9 --catch-per-group 12 --review review.csv --out trials-2.csv`
    """

    out: Annotated[
        Path,
        WritesTable(
            "The table of trials to write.",
            beside=(".certificate.json", ".summary.md", ".summary.png"),
            kind="trials",
            name="trials.csv",
        ),
    ]
    pairs: Annotated[Path | None, reads_kind("Selected natural pairs.", "pairs")] = None
    triplets: Annotated[Path | None, reads_kind("Selected triplets.", "triplets")] = None
    minimal_pairs: Annotated[
        Path | None, reads_kind("Selected minimal pairs.", "minimal pairs")
    ] = None
    groups: Annotated[int, Help("Number of groups of participants.", at_least=1)] = 10
    random_per_group: Annotated[int, Help("Random natural pairs per group.", at_least=0)] = 3
    catch_per_group: Annotated[int, Help("Catch trials per group.", at_least=0)] = 12
    attention: Annotated[
        Path | None,
        Help(
            "Additional catch trials that are instructions: a table with the columns sentence_1 "
            "(the sentence to choose) and sentence_2.",
            content="attention",
        ),
    ] = None
    twins: Annotated[bool, Help("Add trials of a natural and a synthetic sentence.")] = False
    seconds: Annotated[
        float, Help("Time limit of the search for an assignment, seconds.", at_least=0.0)
    ] = 60.0
    text: Annotated[
        Path | None,
        Help("Source of word frequencies: a text, counts or a model.", kind="training text"),
    ] = None

    def check(self) -> None:
        """Check that random and catch trials have natural sentences."""
        if self.sentences is None and (self.random_per_group or self.catch_per_group):
            raise InputError(
                "Random pairs and catch trials need natural sentences. Set `sentences`, or "
                "set `random_per_group` and `catch_per_group` to 0."
            )

    def work(self, reporter: Reporter) -> Outcome[Design]:
        """Make the design, and write it with a certificate and a summary."""
        natural = [] if self.sentences is None else read_sentence_file(self.sentences, reporter)
        review = read_reviews(self.review) if self.review else None
        triplets = () if self.triplets is None else read_triplets(self.triplets)
        pairs = () if self.pairs is None else read_pairs(self.pairs)
        minimal = self.minimal_pairs
        design = build_design(
            [*pairs, *(() if minimal is None else read_controversial_minimal_pairs(minimal))],
            triplets,
            natural,
            groups=self.groups,
            random_per_group=self.random_per_group,
            catch_per_group=self.catch_per_group,
            twins=self.twins,
            seed=self.seed,
            seconds=self.seconds,
            review=review,
            scale=self.scale,
            attention=[] if self.attention is None else read_attention(self.attention),
        )
        summary = self._summary(design, natural, triplets)
        write_table(self.out, trial_columns(design.trials))
        write_json(f"{self.out}.certificate.json", design.certificate)
        write_text(Path(f"{self.out}.summary.md"), summary_report(summary).markdown())
        write_figure(partial(summary_figure, summary), Path(f"{self.out}.summary.png"))
        facts: dict[str, Any] = {
            "groups": self.groups,
            "scale": str(self.scale),
            "seed": self.seed,
            "text": None if self.text is None else str(self.text),
        }
        for caution in summary.cautions:
            reporter.warn(caution)
        minutes = max(1, round(max(summary.minutes)))
        reporter.say(
            f"{self.out}: {quantity(len(design.trials), 'trial')} for "
            f"{quantity(self.groups, 'group')}, {len(design.trials) // self.groups:,} for each "
            f"participant, about {quantity(minutes, 'minute')}; verified. "
            f"Read {self.out}.summary.md before you preregister."
        )
        facts |= report_changes(design.changed, "trial", reporter)
        for note in filter(None, (summary.notes["shared"], summary.notes["catch"])):
            reporter.say(note)
        return Outcome(design, facts)

    def _summary(
        self, design: Design, natural: Sequence[Sentence], triplets: Sequence[Triplet]
    ) -> DesignSummary:
        trials = design.trials
        frequencies = word_frequencies(self.text, natural, trials)
        summary = summarise(design, frequencies, seconds_per_trial=self.seconds_per_trial)
        if triplets:
            flags = flags_of(triplets, text=self.text)
            # `enough` is an option of the selection of triplets, and is not known here
            figures = figures_of(triplets, flags.share, flags.table, enough=None)
            summary = replace(summary, figures=figures_table(figures))
        flags_text = flags_of(trials, text=self.text).text
        return replace(summary, notes={**summary.notes, "flags": flags_text})


def read_attention(path: Path) -> list[tuple[Sentence, Sentence]]:
    """Read pairs of instructions: a sentence that participants should choose, and a second one.

    Args:
        path: a table with the columns sentence_1 and sentence_2. Both sentences ask participants to
            choose sentence_1, such as `Please choose this sentence to show that you read`.

    Raises:
        InputError: if the table cannot be read or lacks a column, or if the two sentences of a row
            are equal.
    """
    readers = {name: (Sentence.parse, name) for name in ("sentence_1", "sentence_2")}
    rows = list(zip(*parsed_columns(path, read_table(path), readers), strict=True))
    check_attention(rows, str(path))
    return rows


def word_frequencies(
    text: Path | None, natural: Sequence[Sentence], trials: Sequence[Trial]
) -> WordFrequencies:
    """Count words in the text.

    If there is no text, count words in the natural sentences. If there are no natural sentences
    either, count words in the trials.

    Raises:
        InputError: if the text cannot be read, or there are no words.
    """
    if text is not None:
        return read_frequencies(text)
    if natural:
        return WordFrequencies.of(natural, "the natural sentences")
    of_trials = [sentence for trial in trials for sentence in (trial.sentence_1, trial.sentence_2)]
    return WordFrequencies.of(of_trials, "the trials")
