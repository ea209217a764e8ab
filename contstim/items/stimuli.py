"""Stimuli of experiments: pairs, triplets, minimal pairs and trials.

A model prefers the sentence with the higher score, and rejects the sentence with the lower score.
A triplet has a natural sentence and two synthetic sentences. model_1 prefers the natural sentence
and rejects synthetic_1. model_2 prefers the natural sentence and rejects synthetic_2.
"""

from __future__ import annotations

import hashlib
from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from contstim.errors import InputError
from contstim.files.documents import shortened
from contstim.files.tables import (
    TABLE_KINDS,
    columns_of,
    join_names,
    number,
    read_rows,
    read_table,
    text,
    whole_number,
)
from contstim.items.scale import Scale
from contstim.wording import find_duplicates
from contstim.words.corpus import read_lines
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.files.tables import Reader
    from contstim.words.corpus import TextNotes


class Condition(StrEnum):
    """Condition of a trial: the kinds of sentences that the trial compares."""

    NATURAL_CONTROVERSIAL = "natural-controversial"
    NATURAL_SYNTHETIC = "natural-synthetic"
    SYNTHETIC_SYNTHETIC = "synthetic-synthetic"
    MINIMAL_PAIR = "minimal-pair"
    RANDOM_NATURAL = "random-natural"
    CATCH = "catch"


FILLERS = (Condition.RANDOM_NATURAL, Condition.CATCH)
"""Conditions that do not compare two models."""
CONTROVERSIAL = tuple(condition for condition in Condition if condition not in FILLERS)
"""Conditions that compare two models."""


class Kind(StrEnum):
    """Origin of a trial's sentence."""

    NATURAL = "natural"
    SYNTHETIC_1 = "synthetic_1"
    SYNTHETIC_2 = "synthetic_2"
    ACCEPTABLE = "acceptable"
    UNACCEPTABLE = "unacceptable"
    CHANGED = "changed"
    SHUFFLED = "shuffled"
    INSTRUCTION = "instruction"


SYNTHETIC = (Kind.SYNTHETIC_1, Kind.SYNTHETIC_2)


def optional_text(cell: Any) -> str:
    """Return the text of a cell; an empty text for an empty cell."""
    return "" if cell is None else text(cell)


def _parse_sentence(cell: Any) -> Sentence:
    return Sentence.parse(optional_text(cell))


CELL_READERS: dict[str, Reader] = {
    "str": (optional_text, "text"),
    "int": (whole_number, "whole number"),
    "float": (number, "number"),
    "float | None": (lambda cell: number(cell) if optional_text(cell) else None, "number"),
    "Sentence": (_parse_sentence, "sentence"),
    "Sentence | None": (
        lambda cell: _parse_sentence(cell) if optional_text(cell) else None,
        "sentence",
    ),
    "Condition": (Condition, f"condition ({', '.join(Condition)})"),
    "Scale": (
        lambda cell: Scale(optional_text(cell) or Scale.CONFIDENCE),
        f"scale ({', '.join(Scale)})",
    ),
    "Kind": (Kind, f"kind of sentence ({', '.join(Kind)})"),
}
"""Annotation of a field → parser of a cell, and name of the expected value; for `read_rows`."""


def content_id(kind: str, *parts: object) -> str:
    """Return a short identifier that depends only on the kind and the parts."""
    # The separator distinguishes ("ab", "c") from ("a", "bc")
    content = "\x1f".join(map(str, (kind, *parts)))
    # With 48 bits, two of 5,000 stimuli have equal identifiers with probability 4e-8
    return f"{kind}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Pair:
    """Two natural sentences: model_1 rejects sentence_1, and model_2 rejects sentence_2.

    Fields are the columns of pairs.csv. `row_1` and `row_2` are the 0-based rows of the sentences
    in the score table. Ranks are in (0, 1], see `ScoreTable.ranks`. `rank_1_model_2` is the rank of
    sentence_1 under model_2. If only scores were published, the sentences are None (empty cells).
    """

    trial_id: str
    model_1: str
    model_2: str
    sentence_1: Sentence | None
    sentence_2: Sentence | None
    row_1: int
    row_2: int
    rank_1_model_1: float
    rank_1_model_2: float
    rank_2_model_1: float
    rank_2_model_2: float

    def _repr_html_(self) -> str:
        models = (self.model_1, self.model_2)
        labels = [f"{model} rejects" if self.controversial else "" for model in models]
        sentences = [escape(str(s or "")) for s in (self.sentence_1, self.sentence_2)]
        return _html_table(
            ("", "sentence", *(f"rank under {model}" for model in models)),
            (labels[0], sentences[0], self.rank_1_model_1, self.rank_1_model_2),
            (labels[1], sentences[1], self.rank_2_model_1, self.rank_2_model_2),
        )

    @property
    def controversial(self) -> bool:
        """True if each model prefers the sentence that the other model rejects."""
        model_1_prefers_2 = self.rank_1_model_1 < self.rank_2_model_1
        return model_1_prefers_2 and self.rank_2_model_2 < self.rank_1_model_2


def _html_table(heads: Iterable[str], *rows: tuple[Any, ...]) -> str:
    # A row is a label, a sentence in HTML, and two numbers
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    lines = "".join(
        f"<tr><th>{escape(label)}</th><td>{sentence}</td>"
        f"<td>{first:.2f}</td><td>{second:.2f}</td></tr>"
        for label, sentence, first, second in rows
    )
    return f"<table><tr>{head}</tr>{lines}</table>"


def _mark_changes(sentence: Sentence, natural: Sentence) -> str:
    counterparts = natural.words if len(natural) == len(sentence) else sentence.words
    words = (
        escape(word) if word == counterpart else f"<mark>{escape(word)}</mark>"
        for word, counterpart in zip(sentence.words, counterparts, strict=True)
    )
    return " ".join(words) + escape(sentence.end)


@dataclass(frozen=True)
class Triplet:
    """A natural sentence and two synthetic sentences.

    model_1 rejects synthetic_1, and model_2 rejects synthetic_2. Fields are the columns of
    triplets.csv; log-probabilities are in nats. Judges are models that the study does not compare.
    `judge_drop_1` is log p(natural) - log p(synthetic_1), averaged over the judges; None without
    judges. `judge_drop_2` is log p(natural) - log p(synthetic_2), averaged over the judges.

    `controversiality` is the sum of the two values of `drops`.

    If the unit of a model's scores is not nats, the fields `log_prob_…` of this model contain the
    scores. `unit_1` and `unit_2` then name the units of model_1 and model_2, and `sd_1` and `sd_2`
    are the standard deviations of the two models' scores over natural sentences.
    """

    triplet_id: str
    model_1: str
    model_2: str
    natural: Sentence
    synthetic_1: Sentence
    synthetic_2: Sentence
    log_prob_natural_model_1: float
    log_prob_natural_model_2: float
    log_prob_synthetic_1_model_1: float
    log_prob_synthetic_1_model_2: float
    log_prob_synthetic_2_model_1: float
    log_prob_synthetic_2_model_2: float
    controversiality: float
    judge_drop_1: float | None = None
    judge_drop_2: float | None = None
    _: KW_ONLY
    sd_1: float | None = None
    sd_2: float | None = None
    unit_1: str = ""
    unit_2: str = ""

    @property
    def in_nats(self) -> bool:
        """True if the scores of both models are log-probabilities in nats."""
        return self.sd_1 is None

    @property
    def drop_unit(self) -> str:
        """Unit of `drops` and of the controversiality."""
        return "nats" if self.in_nats else "standard deviations"

    @property
    def sentences(self) -> tuple[Sentence, Sentence, Sentence]:
        """The natural sentence, synthetic_1 and synthetic_2."""
        return self.natural, self.synthetic_1, self.synthetic_2

    @property
    def labelled(self) -> list[tuple[str, Sentence, list[float]]]:
        """For each sentence: label, sentence, and log-probabilities under both models, nats."""
        labels = ("natural", f"{self.model_1} rejects", f"{self.model_2} rejects")
        names = (Kind.NATURAL, *SYNTHETIC)
        return [
            (label, sentence, [getattr(self, f"log_prob_{name}_model_{n}") for n in (1, 2)])
            for label, name, sentence in zip(labels, names, self.sentences, strict=True)
        ]

    @property
    def drops(self) -> tuple[float, float]:
        """For each model: log p(natural sentence) minus log p(rejected sentence), nats.

        With n = natural, s = synthetic and m = model, the drops are log [p(n|m1) / p(s1|m1)] and
        log [p(n|m2) / p(s2|m2)], the terms of Eq. 4 of Golan et al. (2023). If scores are not in
        nats, the first drop is divided by `sd_1`, and the second drop by `sd_2`.
        """
        first = self.log_prob_natural_model_1 - self.log_prob_synthetic_1_model_1
        second = self.log_prob_natural_model_2 - self.log_prob_synthetic_2_model_2
        return first / (self.sd_1 or 1.0), second / (self.sd_2 or 1.0)

    @property
    def distinct(self) -> bool:
        """True if no two of the three sentences are equal."""
        return len({*self.sentences}) == 3

    def _repr_html_(self) -> str:
        natural = self.natural
        rows = ((label, _mark_changes(s, natural), *scores) for label, s, scores in self.labelled)
        return _html_table(("", "sentence", self.model_1, self.model_2), *rows)

    @property
    def equality_note(self) -> str:
        """Text that states which of the three sentences are equal; empty if all differ."""
        searches = ((self.model_1, self.synthetic_1), (self.model_2, self.synthetic_2))
        notes = [
            f"the sentence that {model} should reject is the natural sentence"
            for model, synthetic in searches
            if synthetic == self.natural
        ]
        if notes or self.distinct:
            return ", and ".join(notes)
        return "both models should reject the same sentence"


@dataclass(frozen=True)
class ControversialMinimalPair:
    """An acceptable sentence that model_1 rejects, and an unacceptable one that model_2 rejects.

    Fields are the columns of minimal_pairs.csv. Log-probabilities are in nats. The command
    `contstim near-pairs` writes pairs of a natural sentence (`good`) and a copy with one new word
    (`bad`). Their scores may have another unit; the fields `log_prob_…` then contain these scores.

    A `paradigm` is a set of pairs that test the same rule of grammar.
    """

    trial_id: str
    model_1: str
    model_2: str
    paradigm: str
    pair_id: str
    good: Sentence
    bad: Sentence
    log_prob_good_model_1: float
    log_prob_good_model_2: float
    log_prob_bad_model_1: float
    log_prob_bad_model_2: float
    kind_bad: Kind = Kind.UNACCEPTABLE  # or "changed" from `near-pairs`

    TABLE: ClassVar = "minimal pairs of 'contstim select minimal-pairs'"


_UNITS = ("sd_1", "sd_2", "unit_1", "unit_2")


@dataclass(frozen=True)
class Trial:
    """Two sentences that the participants of a group compare; fields are the columns of trials.csv.

    The condition determines which sentence is sentence_1, but not which sentence is displayed on
    the left. sentence_1 is:

        natural-synthetic        the natural sentence
        synthetic-synthetic      synthetic_1, which model_1 rejects
        natural-controversial    the sentence that model_1 rejects
        minimal-pair             the acceptable sentence, which model_1 rejects
        catch                    the unshuffled sentence; of two instructions, the one to choose
    """

    trial_id: str
    group: int  # from 1
    condition: Condition
    model_1: str  # model_1 and model_2 are empty for random-natural and catch
    model_2: str
    sentence_1: Sentence
    sentence_2: Sentence
    kind_1: Kind
    kind_2: Kind
    source_id: str  # identifier of the trial's pair or triplet; empty if it has none
    # Each of the columns below is written only if a trial has a value other than the default
    scale: Scale = Scale.CONFIDENCE
    source: Sentence | None = None  # natural sentence from which both synthetic sentences were made
    paradigm: str = ""  # paradigm of a minimal pair, see `ControversialMinimalPair`

    @property
    def displayed_texts(self) -> tuple[str, str]:
        """Texts that participants see; see `Sentence.displayed_text`."""
        return self.sentence_1.displayed_text, self.sentence_2.displayed_text

    @property
    def bare(self) -> tuple[str, str]:
        """Both sentences without end marks."""
        return self.sentence_1.bare, self.sentence_2.bare


_Named: TypeAlias = Pair | Triplet | ControversialMinimalPair | Trial

KINDS = {
    Condition.NATURAL_CONTROVERSIAL: ((Kind.NATURAL, Kind.NATURAL),),
    Condition.NATURAL_SYNTHETIC: (
        (Kind.NATURAL, Kind.SYNTHETIC_1),
        (Kind.NATURAL, Kind.SYNTHETIC_2),
    ),
    Condition.SYNTHETIC_SYNTHETIC: (SYNTHETIC,),
    Condition.MINIMAL_PAIR: ((Kind.ACCEPTABLE, Kind.UNACCEPTABLE), (Kind.NATURAL, Kind.CHANGED)),
    Condition.RANDOM_NATURAL: ((Kind.NATURAL, Kind.NATURAL),),
    Condition.CATCH: ((Kind.NATURAL, Kind.SHUFFLED), (Kind.INSTRUCTION, Kind.INSTRUCTION)),
}
"""Allowed kinds of sentence_1 and sentence_2, by condition."""


def check_trials(trials: Iterable[Trial]) -> None:
    """Check that each trial has the models and kinds of sentences that its condition requires.

    Raises:
        InputError: if `KINDS` does not allow the kinds of sentences; if a trial with a condition of
            `FILLERS` names a model; or if any other trial does not name two different models.
    """
    for trial in trials:
        where = f"The trial {trial.trial_id!r} is {trial.condition}"
        _check_models(where, trial)
        allowed, kinds = KINDS[trial.condition], (trial.kind_1, trial.kind_2)
        if kinds not in allowed:
            raise InputError(
                f"{where}, so it compares {' or '.join(map(' with '.join, allowed))}, in "
                f"this order, but kind_1 and kind_2 are {trial.kind_1} and {trial.kind_2}. "
                "Correct the kinds, or swap the sentences and their kinds. After a swap, also "
                "change the responses to this trial: replace each rating by "
                f"{2 * trial.scale.middle:g} - rating, and exchange 1 and 2 in the column `left`."
            )


_OTHER_TABLES = (".xls", ".xlsx", ".ods", ".npz", ".npy", ".json")
SENTENCE_COLUMNS = ("sentence", "sentence_1", "sentence_2", "natural", "synthetic_1", "synthetic_2")


def read_stimuli(path: Path | str, notes: TextNotes | None = None) -> list[Sentence]:
    """Read the sentences of a text, one per line, or the distinct sentences of a table.

    In a table (.csv, .tsv, .parquet, .jsonl), sentences are in the columns `SENTENCE_COLUMNS`. If a
    table has none of these columns, sentences are in the columns `good` and `bad`.

    Raises:
        InputError: if the file cannot be read; if a line has no word; if a cell has no text; or if
            the table has no column of sentences.
    """
    kind = Path(path).suffix.lower()
    if kind in _OTHER_TABLES:
        raise InputError(
            f"{path} has an unsupported table format. Save it as one of "
            f"{', '.join(TABLE_KINDS)}, or use a text with one sentence per line."
        )
    if kind not in TABLE_KINDS:
        return [Sentence.parse(line) for line in read_lines(path, notes)]
    table = read_table(path)
    columns = [table[name] for name in SENTENCE_COLUMNS if name in table]
    if not columns and "good" in table and "bad" in table:
        columns = [table["good"], table["bad"]]
    if not columns:
        raise InputError(
            f"{path} has no column of sentences ({', '.join(SENTENCE_COLUMNS)}, or both good and "
            f"bad); its columns are {join_names(table)}."
        )
    cells = list(chain.from_iterable(columns))
    if not all(isinstance(cell, str) and cell.strip() for cell in cells):
        raise InputError(f"{path} has empty cells or numbers where sentences are expected.")
    # Omit repetitions, because a natural sentence may be in many triplets
    texts = dict.fromkeys(cells)
    return [Sentence.parse(notes.normalise(text) if notes else text) for text in texts]


def read_pairs(path: Path | str) -> tuple[Pair, ...]:
    """Read pairs.csv (or `.tsv`, `.parquet`, `.jsonl`); ignore columns that `Pair` lacks.

    Raises:
        InputError: if the file cannot be read, lacks a column, or has an invalid or repeated row.
    """
    pairs = read_rows(path, Pair, CELL_READERS, may_be_empty=True)
    _check_ids(path, pairs, "trial_id")
    for row, pair in enumerate(pairs):
        _check_sentences(path, row, pair)
        ranks = (pair.rank_1_model_1, pair.rank_1_model_2, pair.rank_2_model_1, pair.rank_2_model_2)
        if min(pair.row_1, pair.row_2) < 0 or not all(0 < rank <= 1 for rank in ranks):
            raise InputError(
                f"{path}, row {row}: row_1 and row_2 must be at least 0, and ranks in (0, 1]."
            )
    return pairs


def read_triplets(path: Path | str) -> tuple[Triplet, ...]:
    """Read triplets.csv (or `.tsv`, `.parquet`, `.jsonl`); ignore columns that `Triplet` lacks.

    Raises:
        InputError: if the file cannot be read, lacks a column, or has an invalid or repeated row.
    """
    triplets = read_rows(path, Triplet, CELL_READERS, may_be_empty=True, field_of=_field_of)
    _check_ids(path, triplets, "triplet_id")
    return triplets


def triplet_columns(triplets: Iterable[Triplet]) -> dict[str, list[Any]]:
    """Return the columns of triplets.csv: the fields of `Triplet`.

    If all scores are in nats, `sd_…` and `unit_…` are omitted. Otherwise, the columns of scores are
    called `score_…`, not `log_prob_…`.
    """
    all_triplets = list(triplets)
    columns = columns_of(Triplet, all_triplets)
    if all(triplet.in_nats for triplet in all_triplets):
        return {name: column for name, column in columns.items() if name not in _UNITS}
    return _with_score_names(columns)


def minimal_pair_columns(
    pairs: Iterable[ControversialMinimalPair], *, in_nats: bool
) -> dict[str, list[Any]]:
    """Return the columns of minimal_pairs.csv.

    Unless `in_nats`, the columns of scores are called `score_…`, not `log_prob_…`.
    """
    columns = columns_of(ControversialMinimalPair, pairs)
    return columns if in_nats else _with_score_names(columns)


def _field_of(column: str) -> str:
    """Return the field of a column; the fields of all scores are called `log_prob_…`."""
    return column.replace("score_", "log_prob_")


def _with_score_names(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name.replace("log_prob_", "score_"): column for name, column in columns.items()}


def read_controversial_minimal_pairs(path: Path | str) -> tuple[ControversialMinimalPair, ...]:
    """Read minimal_pairs.csv, as `contstim select minimal-pairs` writes it.

    Raises:
        InputError: if the file cannot be read, lacks a column, or has an invalid or repeated row.
    """
    pairs = read_rows(
        path, ControversialMinimalPair, CELL_READERS, may_be_empty=True, field_of=_field_of
    )
    _check_ids(path, pairs, "trial_id")
    for row, pair in enumerate(pairs):
        if pair.good.bare == pair.bad.bare:
            raise InputError(f"{path}, row {row}: good and bad must be different sentences.")
    return pairs


def trial_columns(trials: Iterable[Trial]) -> dict[str, list[Any]]:
    """Return the columns of trials.csv: the fields of `Trial`.

    The columns `scale`, `source` and `paradigm` are omitted if all their values are the default.
    """
    columns = columns_of(Trial, trials)
    for name, default in (("scale", Scale.CONFIDENCE), ("source", ""), ("paradigm", "")):
        if {*columns[name]} <= {default}:
            del columns[name]
    return columns


def read_trials(path: Path | str) -> tuple[Trial, ...]:
    """Read trials.csv (or `.tsv`, `.parquet`, `.jsonl`); ignore columns that `Trial` lacks.

    Raises:
        InputError: if the file cannot be read, lacks a column, or has no rows; if a row is invalid
            or repeated; or if trials have different scales.
    """
    trials = read_rows(path, Trial, CELL_READERS)
    _check_ids(path, trials, "trial_id")
    if len({trial.scale for trial in trials}) > 1:
        raise InputError(f"{path} has several scales. Use the same scale in every row.")
    for row, trial in enumerate(trials):
        if trial.group < 1:
            raise InputError(f"{path}, row {row}: group must be at least 1, got {trial.group}.")
        _check_sentences(path, row, trial)
    return trials


def on_scale(trials: Iterable[Trial], scale: Scale) -> tuple[Trial, ...]:
    """Set the scale of trials that have the default scale.

    Raises:
        InputError: if trials already have a scale that is neither `scale` nor the default.
    """
    trials = tuple(trials)
    if any(trial.scale not in (scale, Scale.CONFIDENCE) for trial in trials):
        raise InputError(
            f"The trials use the scale {trials[0].scale}, but `scale` is {scale}. Remove "
            "`scale`, or make the design with this scale."
        )
    return tuple(replace(trial, scale=scale) for trial in trials)


def read_stimulus_table(
    path: Path | str,
) -> tuple[Pair, ...] | tuple[Triplet, ...] | tuple[Trial, ...]:
    """Read a table of pairs, triplets or trials; recognise the kind by its columns.

    Raises:
        InputError: if the table contains no stimuli of these kinds; see also `read_pairs`,
            `read_triplets` and `read_trials`.
    """
    columns = read_table(path, may_be_empty=True)
    if "triplet_id" in columns:
        return read_triplets(path)
    if "kind_1" in columns:
        return read_trials(path)
    if "row_1" in columns:
        return read_pairs(path)
    raise InputError(
        f"{path} contains neither triplets (column triplet_id) nor trials (kind_1) nor pairs "
        f"(row_1); its columns are {join_names(columns)}."
    )


def repeated_item(stimuli: Iterable[_Named]) -> str:
    """Return the identifier of the first repeated item; empty if no item is repeated.

    An item is repeated if an earlier item of the same kind has the same identifier, or the same
    models, group and sentences.
    """
    seen: set[tuple[object, ...]] = set()
    for stimulus in stimuli:
        kind = type(stimulus)
        name = stimulus.triplet_id if isinstance(stimulus, Triplet) else stimulus.trial_id
        texts = [value.text for value in vars(stimulus).values() if isinstance(value, Sentence)]
        group = stimulus.group if isinstance(stimulus, Trial) else 0
        keys = {(kind, name), (kind, stimulus.model_1, stimulus.model_2, group, *(texts or [name]))}
        if not seen.isdisjoint(keys):
            return name
        seen |= keys
    return ""


def _check_ids(path: Path | str, stimuli: Sequence[_Named], name: str) -> None:
    """Check identifiers and models of stimuli."""
    ids = [getattr(stimulus, name) for stimulus in stimuli]
    if "" in ids:
        raise InputError(f"{path}, row {ids.index('')}: the {name} is empty.")
    if repeats := find_duplicates(ids):
        first, second, *_ = (row for row, identifier in enumerate(ids) if identifier == repeats[0])
        raise InputError(
            f"{path} has the {name} {shortened(repeats[0])} in rows {first} and {second}; each row "
            f"needs a unique {name}."
        )
    for row, stimulus in enumerate(stimuli):
        suffix = f" is {stimulus.condition}" if isinstance(stimulus, Trial) else ""
        _check_models(f"{path}, row {row}{suffix}", stimulus)


def _check_models(where: str, stimulus: _Named) -> None:
    first, second = stimulus.model_1, stimulus.model_2
    if isinstance(stimulus, Trial) and stimulus.condition in FILLERS:
        if first or second:
            raise InputError(f"{where}: leave model_1 and model_2 empty.")
    elif not first or not second or first == second:
        raise InputError(
            f"{where}: model_1 and model_2 must name two models, not {first!r} and {second!r}."
        )


def _check_sentences(path: Path | str, row: int, compared: Pair | Trial) -> None:
    first, second = compared.sentence_1, compared.sentence_2
    if (first is None) != (second is None):
        raise InputError(f"{path}, row {row} has one sentence; expected two, or none.")
    if first is not None and first == second:
        raise InputError(f"{path}, row {row} compares {first.text!r} with itself.")
