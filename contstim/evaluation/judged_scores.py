"""Scores of judged sentences, from models or from published tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import ScoreError, SentenceError
from contstim.evaluation.acceptability import JUDGEMENT, is_missing, number_or_nan
from contstim.evaluation.scores import LeftOut, score_readable
from contstim.evaluation.settings import ACCEPTABILITY, AcceptabilitySettings
from contstim.files.documents import shortened
from contstim.files.tables import listed, parsed, read_table
from contstim.items.scores import MOST_MODELS, ScoreTable
from contstim.wording import repeated
from contstim.words.sentence import Sentence, is_end, normalise_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contstim.evaluation.acceptability import Judgements
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.models.base import Scorer
    from contstim.store import Store

    Table = Mapping[str, Sequence[Any]]

# columns of numbers that published tables have beside the scores; the first two are row numbers as
# pandas writes them
_NO_SCORES = frozenset(
    {"", "unnamed: 0", "index", "row", "length", "sent_length", "n_tokens"}
    | {"id", "sentence", "judgement", "item", "label", "phenomenon"}
    | {"gramm_id", "ungramm_id", "discard", "participant", *JUDGEMENT}
)


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """Scores of judged sentences, in the order of `Judgements.sentences`.

    Attributes:
        models: distinct names, one a column.
        values: (n_sentences, n_models); nan where there is none.
        left_out: the sentences without a score and why, one for each model that lacks it.
        files: tables that scores were read from.
    """

    models: tuple[str, ...]
    values: FloatArray
    left_out: tuple[LeftOut, ...] = ()
    files: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if twice := sorted(repeated(self.models)):
            raise ScoreError(f"Scores under these names are given twice: {listed(twice)}.")
        if not self.models:
            raise ScoreError("There are no scores: give models, or tables of scores.")

    @classmethod
    def joined(cls, parts: Sequence[JudgedScores]) -> JudgedScores:
        """The columns of several sets of scores side by side.

        Raises:
            ScoreError: two columns have the same name, or there are none.
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
    """Scores under models; sentences that one cannot score, or to which it gives -inf, have none.

    Raises:
        ModelError, ScoreError, StoreError: see `score_sentences`.
    """
    table, left_out = score_readable(models, judgements.texts, store=store, progress=progress)
    # the table has each sentence once; judged ones may repeat, and unreadable ones have no row
    rows = [table.rows.get(sentence, -1) for sentence in judgements.texts]
    values = np.vstack([table.log_probs, np.full(len(models), np.nan)])[rows]
    return _without_infinite(judgements, table.models, values, left_out)


def published_scores(
    judgements: Judgements, path: Path | str, settings: AcceptabilitySettings = ACCEPTABILITY
) -> JudgedScores:
    """Scores from a table, each column a model.

    Sentences are matched by the column `id` where the judged sentences have identifiers of their
    own and it knows them, else by the column `sentence`. Where a table has both, they must agree,
    up to white space and stops. A sentence whose score is -inf is left out. A table of pairs with
    the columns `gramm_id`, `ungramm_id`, `NAME_gramm` and `NAME_ungramm`, as LI-Adger's authors
    published, is read too.

    Args:
        judgements: the sentences to find.
        path: the table: .csv, .tsv, .parquet, .jsonl, or an .npz as of `ScoreTable`.
        settings: the columns to take, by default all that hold numbers, without indices, lengths,
            labels, columns of the judged sentences, and z-scores of another column; whether
            sentences may lack a score.

    Raises:
        ScoreError: a column is missing, a sentence has two scores or +inf, an identifier stands for
            another sentence (names the first), or sentences lack a score (lists the first).
        InputError: the file cannot be read, or a value is not a number.
    """
    path = Path(path)
    table = _read_columns(path)
    names = settings.column or _numeric_columns(table)
    if len(names) > MOST_MODELS:
        raise ScoreError(
            f"{path} has {len(names):,} columns of numbers: name those that are scores (`column`)."
        )
    missing = [name for name in names if name not in table]
    if missing or not names:
        what = ", ".join(map(repr, missing)) or "any name"
        raise ScoreError(f"{path} has no scores under {what}; its columns are {listed(table)}.")
    # The same sentence may stand in several rows of the table, and several times among the judged
    # ones: rows are joined by a key, which is the identifier or the text.
    keys, keys_of_judged = _matching_keys(path, table, judgements)
    scores = [_scores_by_key(path, name, keys, table[name]) for name in names]
    values = np.array([[of.get(key, np.nan) for of in scores] for key in keys_of_judged])
    lacking = _left_out(judgements, names, np.isnan(values), f"not in {path.name}")
    if lacking and not settings.allow_missing:
        texts = list(dict.fromkeys(omission.sentence for omission in lacking))
        raise ScoreError(
            f"{path} lacks scores of {len(texts):,} of {len(judgements.texts):,} sentences: "
            f"{listed(map(repr, texts), 5)}. To leave them and their pairs out: `allow_missing`."
        )
    # after the check of what is lacking: -inf is a score, though not one that can be standardized
    return _without_infinite(judgements, names, values, lacking, (path,))


def _without_infinite(
    judgements: Judgements,
    models: Sequence[str],
    values: FloatArray,
    left_out: Iterable[LeftOut],
    files: tuple[Path, ...] = (),
) -> JudgedScores:
    """Scores without those of -inf, which have no z-scores."""
    zero = np.isneginf(values)
    left_out = (*left_out, *_left_out(judgements, models, zero, "its probability is zero"))
    return JudgedScores(tuple(models), np.where(zero, np.nan, values), left_out, files)


def _left_out(
    judgements: Judgements, models: Sequence[str], where: BoolArray, reason: str
) -> list[LeftOut]:
    """Sentences left out of scores, with the reason, from a mask (n_sentences, n_models)."""
    texts = judgements.texts
    return [LeftOut(texts[row].text, models[column], reason) for row, column in np.argwhere(where)]


def _read_columns(path: Path) -> Table:
    """The columns of a file, a row for each sentence."""
    if path.suffix.lower() == ".npz":
        return ScoreTable.read(path).columns
    table = read_table(path)
    if not {"gramm_id", "ungramm_id"} <= table.keys():
        return table
    # LI-Adger's authors write a row for each pair. Here the acceptable sentences come first, then
    # the others.
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
    """The columns that may be scores; see `published_scores`."""

    def is_score(name: str) -> bool:
        scores = name.removesuffix("_zscores")
        # NAME_zscores beside NAME is the same model again, standardised
        if name.lower() in _NO_SCORES or (scores != name and scores in table):
            return False
        try:
            numbers = [number_or_nan(cell) for cell in table[name]]
        except ValueError:  # some cell holds a text
            return False
        return not all(map(math.isnan, numbers))

    return [name for name in table if is_score(name)]


def _scores_by_key(
    path: Path, name: str, keys: Sequence[str], values: Sequence[Any]
) -> dict[str, float]:
    """The score of each key; repetitions must be equal, up to rounding."""
    scores: dict[str, float] = {}
    numbers = parsed(path, name, values, number_or_nan, "number")
    for row, (key, score) in enumerate(zip(keys, numbers, strict=True)):
        if score == np.inf:
            what = shortened(values[row])
            raise ScoreError(f"{path}, row {row}: {what} under {name} is not a score.")
        # the first value stays; nan equals nan, so that a gap may repeat too
        if not np.isclose(scores.setdefault(key, score), score, rtol=1e-9, equal_nan=True):
            raise ScoreError(f"{path}, row {row}: {key!r} has two scores under {name}.")
    return scores


def _matching_keys(path: Path, table: Table, judgements: Judgements) -> tuple[list[str], list[str]]:
    """Keys of the rows of a table, and keys of the judged sentences that match them.

    Raises:
        ScoreError: the table names sentences in no way that the judged sentences share, or an
            identifier stands for another sentence (names the first).
    """
    judged = judgements.sentences
    row_ids = [str(value) for value in table.get("id", ())]
    if judgements.named and set(row_ids) & set(judged):
        # A table that numbers its rows in its own way would match by chance: texts must agree.
        for name, text in zip(row_ids, table.get("sentence", [None] * len(row_ids)), strict=True):
            if is_missing(text) or name not in judged:
                continue
            if _words_without_stops(str(text)) != _words_without_stops(judged[name].text):
                raise ScoreError(
                    f"{path}: the sentence with the id {name!r} is {str(text)!r}, and "
                    f"{judged[name].text!r} among the judged ones. Without a column 'id', texts "
                    f"are matched."
                )
        return row_ids, list(judged)
    if "sentence" not in table:
        raise ScoreError(f"{path} tells neither by 'id' nor by 'sentence' whose scores it holds.")
    return [_text(cell) for cell in table["sentence"]], [s.text for s in judgements.texts]


def _text(cell: Any) -> str:
    """The text of a sentence; empty where there is none."""
    try:
        return Sentence.parse(cell).text
    except SentenceError:
        return ""


def _words_without_stops(text: str) -> list[str]:
    """A text's words without end marks, which differ between published files."""
    return "".join(sign for sign in normalise_text(text) if not is_end(sign)).split()
