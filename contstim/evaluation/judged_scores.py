"""Scores of judged sentences, from models or from published tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contstim.evaluation.acceptability import Judgements
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.models.base import Scorer
    from contstim.store import Store

    Table = Mapping[str, Sequence[Any]]

# Numeric columns of published tables that are not scores; the first two are row numbers written by
# pandas
_NOT_SCORES = frozenset(
    {"", "unnamed: 0", "index", "row", "length", "sent_length", "n_tokens"}
    | {"id", "sentence", "judgement", "item", "label", "phenomenon"}
    | {"gramm_id", "ungramm_id", "discard", "participant", *JUDGEMENT}
)


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """Scores of judged sentences, in the order of `Judgements.sentences`.

    Attributes:
        models: distinct names of the columns.
        values: scores, (n_sentences, n_models); nan if there is none.
        left_out: sentences without a score, with the reason, for each model that lacks it.
        files: tables from which scores were read.
    """

    models: tuple[str, ...]
    values: FloatArray
    left_out: tuple[LeftOut, ...] = ()
    files: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if duplicates := sorted(find_duplicates(self.models)):
            raise ScoreError(f"Duplicate names of scores: {join_names(duplicates)}. Rename them.")
        if not self.models:
            raise ScoreError("There are no scores. Name models, or tables of scores.")

    @classmethod
    def join(cls, parts: Sequence[JudgedScores]) -> JudgedScores:
        """Join the columns of several sets of scores.

        Raises:
            ScoreError: if two columns have the same name, or there are none.
        """
        return cls(
            tuple(model for part in parts for model in part.models),
            np.concatenate([part.values for part in parts], axis=1) if parts else np.empty((0, 0)),
            tuple(omission for part in parts for omission in part.left_out),
            tuple(file for part in parts for file in part.files),
        )


def model_scores(
    judgements: Judgements,
    models: Sequence[Scorer],
    *,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> JudgedScores:
    """Score sentences by models; unreadable sentences and scores of -inf become missing.

    Raises:
        ModelError, ScoreError, StoreError: see `score_sentences`.
    """
    table, left_out = score_readable(models, judgements.texts, store=store, progress=progress)
    # The table has distinct sentences; judged ones may repeat, and unreadable ones have no row
    rows = [table.rows.get(sentence, -1) for sentence in judgements.texts]
    values = np.vstack([table.log_probs, np.full(len(models), np.nan)])[rows]
    return _without_infinite(judgements, table.models, values, left_out)


def published_scores(
    judgements: Judgements, path: Path | str, settings: AcceptabilitySettings = ACCEPTABILITY
) -> JudgedScores:
    """Read scores from a table with a column for each model.

    Sentences are matched by the column `id` if the judged sentences have identifiers and share some
    with the table, else by the column `sentence`. If a table has both, they must agree except for
    white space and end marks. A sentence whose score is -inf is left out. The format of LI-Adger's
    authors, a table of pairs with the columns `gramm_id`, `ungramm_id`, `NAME_gramm` and
    `NAME_ungramm`, is supported, too.

    Args:
        judgements: sentences to find.
        path: path of the table: .csv, .tsv, .parquet, .jsonl, or .npz (see `ScoreTable`).
        settings: columns to read, by default all numeric ones except indices, lengths, labels,
            columns of the judged sentences, and z-scores of another column; whether sentences may
            lack a score.

    Raises:
        ScoreError: if a column is missing, a sentence has two scores or +inf, an identifier belongs
            to another sentence (names the first), or sentences lack a score (lists the first).
        InputError: if the file cannot be read, or a value is not a number.
    """
    path = Path(path)
    table = _read_columns(path)
    names = settings.column or _numeric_columns(table)
    if len(names) > MOST_MODELS:
        raise ScoreError(
            f"{path} has {len(names):,} columns of numbers. Name the columns of scores (`column`)."
        )
    missing = [name for name in names if name not in table]
    if missing or not names:
        listed_names = ", ".join(map(repr, missing)) or "any name"
        raise ScoreError(
            f"{path} has no columns of scores named {listed_names}; its columns are "
            f"{join_names(table)}."
        )
    # A sentence may be in several rows of the table, and several times among the judged ones. So
    # rows are joined by a key, which is the identifier or the text
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
    # -inf is not a missing score, but it cannot be standardized
    return _without_infinite(judgements, names, values, missing_scores, (path,))


def _without_infinite(
    judgements: Judgements,
    models: Sequence[str],
    values: FloatArray,
    left_out: Iterable[LeftOut],
    files: tuple[Path, ...] = (),
) -> JudgedScores:
    """Replace scores of -inf by nan, because they have no z-scores."""
    is_zero = np.isneginf(values)
    left_out = (*left_out, *_omissions(judgements, models, is_zero, "its probability is zero"))
    return JudgedScores(tuple(models), np.where(is_zero, np.nan, values), left_out, files)


def _omissions(
    judgements: Judgements, models: Sequence[str], where: BoolArray, reason: str
) -> list[LeftOut]:
    """List omitted sentences with the reason, from a mask (n_sentences, n_models)."""
    texts = judgements.texts
    return [LeftOut(texts[row].text, models[column], reason) for row, column in np.argwhere(where)]


def _read_columns(path: Path) -> Table:
    """Read the columns of a file, with a row for each sentence."""
    if path.suffix.lower() == ".npz":
        return ScoreTable.from_file(path).columns
    table = read_table(path)
    if not {"gramm_id", "ungramm_id"} <= table.keys():
        return table
    # LI-Adger's authors have a row for each pair: append the unacceptable sentences to the
    # acceptable ones
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
    """Return the columns that may be scores; see `published_scores`."""

    def is_score(name: str) -> bool:
        scores = name.removesuffix("_zscores")
        # NAME_zscores next to NAME is the same model, standardized
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
    """Return the score of each key; repeated keys must have equal scores, up to rounding."""
    scores: dict[str, float] = {}
    numbers = parsed(path, name, values, number_or_nan, "number")
    for row, (key, score) in enumerate(zip(keys, numbers, strict=True)):
        if score == np.inf:
            cell = shortened(values[row])
            raise ScoreError(f"{path}, row {row}: {cell} under {name} is not a score.")
        # The first value is kept; nan equals nan, so that a missing score may be repeated
        if not np.isclose(scores.setdefault(key, score), score, rtol=1e-9, equal_nan=True):
            raise ScoreError(f"{path}, row {row}: {key!r} has two scores under {name}.")
    return scores


def _matching_keys(path: Path, table: Table, judgements: Judgements) -> tuple[list[str], list[str]]:
    """Return keys of the rows of a table, and matching keys of the judged sentences.

    Raises:
        ScoreError: if the table has no column to match sentences by, or an identifier belongs to
            another sentence (names the first).
    """
    judged = judgements.sentences
    row_ids = [str(value) for value in table.get("id", ())]
    if judgements.has_ids and set(row_ids) & set(judged):
        # Identifiers may match by chance if a table numbers its rows, so texts must agree, too
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
    """Return the text of a sentence; empty if the cell is invalid."""
    try:
        return Sentence.parse(cell).text
    except SentenceError:
        return ""


def _words_without_stops(text: str) -> list[str]:
    """Return a text's words without end marks, which differ between published files."""
    return "".join(sign for sign in normalise_text(text) if not is_end(sign)).split()
