"""Scores of judged sentences, from models or from published tables."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import ScoreError, SentenceError
from contstim.evaluation.acceptability import (
    ACCEPTABILITY,
    JUDGEMENT,
    AcceptabilitySettings,
    is_missing,
    number_or_nan,
)
from contstim.evaluation.scores import LeftOut, score_readable
from contstim.files.documents import shortened
from contstim.files.tables import join_names, parsed, read_table
from contstim.items.scores import MOST_MODELS, ScoreTable
from contstim.wording import find_duplicates
from contstim.words.sentence import Sentence, is_end, normalise_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.evaluation.acceptability import Judgements, Table
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.models.base import Scorer
    from contstim.store import Store


# Numeric columns that are not scores; pandas writes row numbers under the first two names
_NOT_SCORES = frozenset(
    {"", "unnamed: 0", "index", "row", "length", "sent_length", "n_tokens"}
    | {"id", "sentence", "judgement", "item", "label", "phenomenon"}
    | {"gramm_id", "ungramm_id", "discard", "participant", *JUDGEMENT}
)


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """Scores of judged sentences, in the order of `Judgements.sentences`.

    Attributes:
        models: names of the models, all different.
        values: scores, (n_sentences, n_models); nan if a sentence has no score.
        left_out: sentences without a score, with model and reason.
        files: tables from which the scores were read.
    """

    models: tuple[str, ...]
    values: FloatArray
    left_out: tuple[LeftOut, ...] = ()
    files: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if duplicates := sorted(find_duplicates(self.models)):
            raise ScoreError(
                f"Several models or columns of scores have the name {join_names(duplicates)}. "
                "Rename them."
            )
        if not self.models:
            raise ScoreError("There are no scores. Name models, or tables of scores.")

    @classmethod
    def join(cls, parts: Sequence[JudgedScores]) -> JudgedScores:
        """Join the columns of several sets of scores.

        Raises:
            ScoreError: if two columns have the same name, or there are no columns.
        """
        return cls(
            tuple(model for part in parts for model in part.models),
            np.concatenate([part.values for part in parts], axis=1) if parts else np.empty((0, 0)),
            tuple(omission for part in parts for omission in part.left_out),
            tuple(file for part in parts for file in part.files),
        )


@dataclass(frozen=True, eq=False)
class ScoredJudgements:
    """Judged sentences and their scores, as read and as evaluated (for example, as z-scores).

    Attributes:
        judgements: judgements as read.
        scores: scores as read or computed.
        sentence_scores: evaluated scores of the sentences, (n_sentences, n_models); nan if missing.
        sentence_judgements: evaluated judgements, (n_sentences,); nan if missing.
    """

    judgements: Judgements
    scores: JudgedScores
    sentence_scores: FloatArray
    sentence_judgements: FloatArray

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return self.scores.models

    @property
    def files(self) -> tuple[Path, ...]:
        """Files of judgements and scores."""
        return (*self.judgements.files, *self.scores.files)


def model_scores(
    judgements: Judgements,
    models: Sequence[Scorer],
    *,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> JudgedScores:
    """Score judged sentences.

    If one model cannot read a sentence, the scores of this sentence are nan for all models. A score
    is also nan if the model gives the sentence probability zero.

    Raises:
        ModelError, ScoreError, StoreError: see `score_sentences`.
    """
    table, left_out = score_readable(models, judgements.texts, store=store, progress=progress)
    # Unreadable sentences have no row in the table; their index -1 selects the appended row of nan
    rows = [table.rows.get(sentence, -1) for sentence in judgements.texts]
    values = np.vstack([table.log_probs, np.full(len(models), np.nan)])[rows]
    return _without_infinite(judgements, JudgedScores(table.models, values, tuple(left_out)))


def published_scores(
    judgements: Judgements, path: Path | str, settings: AcceptabilitySettings = ACCEPTABILITY
) -> JudgedScores:
    """Read the scores of judged sentences from a table with a column for each model.

    Rows of the table are matched with judged sentences by identifier or by text. They are matched
    by the column `id` if this column contains at least one identifier of a judged sentence (see
    `Judgements.has_ids`). In this case, a text in the column `sentence` must equal the judged
    sentence with the same identifier, except for white space and end marks. In all other cases,
    rows are matched by the column `sentence`.

    Scores of -inf count as missing. The table may also have the format of the published data set
    LI-Adger: a row for each pair, with the columns `gramm_id`, `ungramm_id`, `NAME_gramm` and
    `NAME_ungramm`.

    By default, all numeric columns are read except row numbers, lengths, labels and columns of the
    judgements. If there is a column `NAME`, the column `NAME_zscores` is not read.

    Args:
        judgements: judged sentences.
        path: path of the table: .csv, .tsv, .parquet, .jsonl, or .npz (see `ScoreTable`).
        settings: `column` names the columns to read; `allow_missing` permits missing scores.

    Raises:
        ScoreError: if a column is missing; if a sentence has two different scores; if a score is
            +inf; if a judged sentence lacks a score and `allow_missing` is not set; or if an
            identifier has different sentences in the table and in the judgements.
        InputError: if the file cannot be read, or a value is not a number.
    """
    path = Path(path)
    table = _read_columns(path)
    names = settings.column or _numeric_columns(table)
    if len(names) > MOST_MODELS:
        raise ScoreError(
            f"{path} has {len(names):,} numeric columns, more than {MOST_MODELS:,}. Name the "
            "columns of scores (`column`)."
        )
    missing = [name for name in names if name not in table]
    if missing or not names:
        described = f"columns {', '.join(map(repr, missing))}" if missing else "columns of scores"
        raise ScoreError(f"{path} has no {described}; its columns are {join_names(table)}.")
    # A key is an identifier or a text; keys may be repeated
    keys, keys_of_judged = _matching_keys(path, table, judgements)
    scores = [_scores_by_key(path, name, keys, table[name]) for name in names]
    values = np.array([[by_key.get(key, np.nan) for by_key in scores] for key in keys_of_judged])
    missing_scores = _omissions(judgements, names, np.isnan(values), f"not in {path.name}")
    if missing_scores and not settings.allow_missing:
        texts = list(dict.fromkeys(omission.sentence for omission in missing_scores))
        raise ScoreError(
            f"{path} lacks scores of {len(texts):,} of {len(judgements.texts):,} sentences: "
            f"{join_names(map(repr, texts), 5)}. To exclude them and their pairs, set "
            "`allow_missing`."
        )
    scores_of_table = JudgedScores(tuple(names), values, tuple(missing_scores), (path,))
    return _without_infinite(judgements, scores_of_table)


def _without_infinite(judgements: Judgements, scores: JudgedScores) -> JudgedScores:
    """Replace scores of -inf by nan, because z-scores of a column with -inf are undefined."""
    is_zero = np.isneginf(scores.values)
    omissions = _omissions(judgements, scores.models, is_zero, "its probability is zero")
    values = np.where(is_zero, np.nan, scores.values)
    return replace(scores, values=values, left_out=(*scores.left_out, *omissions))


def _omissions(
    judgements: Judgements, models: Sequence[str], where: BoolArray, reason: str
) -> list[LeftOut]:
    texts = judgements.texts
    return [LeftOut(texts[row].text, models[column], reason) for row, column in np.argwhere(where)]


def _read_columns(path: Path) -> Table:
    """Read the columns of a table, and convert LI-Adger's rows of pairs to rows of sentences."""
    if path.suffix.lower() == ".npz":
        return ScoreTable.from_file(path).columns
    table = read_table(path)
    if not {"gramm_id", "ungramm_id"} <= table.keys():
        return table
    # Each new column joins two columns of the table: the cells of all acceptable sentences, then
    # the cells of all unacceptable sentences. `names` maps each new name to a template of the two
    # old names; "gramm" or "ungramm" replaces {}
    names = {"id": "{}_id", "sentence": "{}_sentence"}
    for name in table:
        if name.endswith("_gramm"):
            names[name.removesuffix("_gramm")] = name.removesuffix("gramm") + "{}"
    return {
        name: [*table[both.format("gramm")], *table[both.format("ungramm")]]
        for name, both in names.items()
        if both.format("gramm") in table and both.format("ungramm") in table
    }


def _numeric_columns(table: Table) -> list[str]:

    def is_score(name: str) -> bool:
        scores = name.removesuffix("_zscores")
        # The column NAME_zscores has the z-scores of the column NAME, not scores of another model
        if name.lower() in _NOT_SCORES or (scores != name and scores in table):
            return False
        try:
            numbers = [number_or_nan(cell) for cell in table[name]]
        except ValueError:  # a cell contains text
            return False
        return not all(map(math.isnan, numbers))

    return [name for name in table if is_score(name)]


def _scores_by_key(
    path: Path, name: str, keys: Sequence[str], values: Sequence[Any]
) -> dict[str, float]:
    """Return the score of each key; refuse scores of a key that differ by more than rounding."""
    scores: dict[str, float] = {}
    numbers = parsed(path, name, values, number_or_nan, "number")
    for row, (key, score) in enumerate(zip(keys, numbers, strict=True)):
        if score == np.inf:
            cell = shortened(values[row])
            raise ScoreError(f"{path}, row {row}: {cell} under {name} is not a score.")
        # `equal_nan`, because a key may lack a score in all of its rows
        if not np.isclose(scores.setdefault(key, score), score, rtol=1e-9, equal_nan=True):
            raise ScoreError(f"{path}, row {row}: {key!r} has two scores under {name}.")
    return scores


def _matching_keys(path: Path, table: Table, judgements: Judgements) -> tuple[list[str], list[str]]:
    """Return the keys of the rows of the table, and the keys of the judged sentences.

    The keys are identifiers if rows are matched by identifier; otherwise they are texts.
    """
    judged = judgements.sentences
    row_ids = [str(value) for value in table.get("id", ())]
    if judgements.has_ids and set(row_ids) & set(judged):
        # The column `id` may contain row numbers instead of identifiers, so compare the texts, too
        for name, text in zip(row_ids, table.get("sentence", [None] * len(row_ids)), strict=True):
            if is_missing(text) or name not in judged:
                continue
            if _words_without_stops(str(text)) != _words_without_stops(judged[name].text):
                raise ScoreError(
                    f"{path}: the sentence with the id {name!r} is {str(text)!r}, but "
                    f"{judged[name].text!r} in the judgements. Correct the ids, or remove "
                    "the column 'id' to match texts."
                )
        return row_ids, list(judged)
    if "sentence" not in table:
        raise ScoreError(f"{path} must have a column 'id' or 'sentence'.")
    return [_parse_text(cell) for cell in table["sentence"]], [s.text for s in judgements.texts]


def _parse_text(cell: Any) -> str:
    """Return the normalised sentence in a cell; empty if the cell is not a sentence."""
    try:
        return Sentence.parse(cell).text
    except SentenceError:
        return ""


def _words_without_stops(text: str) -> list[str]:
    """Split a text into words without end marks, which differ between published files."""
    return "".join(sign for sign in normalise_text(text) if not is_end(sign)).split()
