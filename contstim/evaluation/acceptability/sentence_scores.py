"""Scores of judged sentences, from models or from published tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.documents import shortened
from contstim.errors import ScoreError, SentenceError
from contstim.evaluation.acceptability.reading import COLUMNS, MISSING, number
from contstim.evaluation.benchmark_scores import LeftOut, score_readable
from contstim.scores import MOST_MODELS, ScoreTable
from contstim.sentence import END_MARKS, Sentence
from contstim.tables import listed, read_table
from contstim.tables import number as cell_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contstim.arrays import BoolArray, FloatArray
    from contstim.evaluation.acceptability.judgements import Judgements
    from contstim.evaluation.acceptability.reading import JudgementColumns
    from contstim.models.base import Scorer
    from contstim.store import Store

_SIDES = ("gramm", "ungramm")  # in the names of columns of LI-Adger's tables
# columns of numbers that published tables have beside the scores; the first two are row numbers as
# pandas writes them
_NO_SCORES = frozenset(
    {"", "unnamed: 0", "index", "row", "id", "item", "label", "judgement", "discard"}
    | {"length", "sent_length", "n_tokens"}
)
_STOPS = str.maketrans("", "", "".join(END_MARKS))
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class SentenceScores:
    """Scores of judged sentences, in the order of `Judgements.sentences`.

    Attributes:
        models: distinct names, one a column.
        values: (n_sentences, n_models); nan where there is none.
        left_out: the sentences without a score and why, one for each model that lacks it.
    """

    models: tuple[str, ...]
    values: FloatArray
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        twice = sorted(name for name, count in Counter(self.models).items() if count > 1)
        if twice:
            raise ScoreError(f"Scores under these names are given twice: {listed(twice)}.")
        if not self.models:
            raise ScoreError("There are no scores: give models, or tables of scores.")


def joined(parts: Sequence[SentenceScores]) -> SentenceScores:
    """The columns of several sets of scores side by side.

    Raises:
        ScoreError: two columns have the same name, or there are none.
    """
    return SentenceScores(
        tuple(model for part in parts for model in part.models),
        np.concatenate([part.values for part in parts], axis=1) if parts else np.empty((0, 0)),
        tuple(omission for part in parts for omission in part.left_out),
    )


def model_scores(
    judgements: Judgements,
    models: Sequence[Scorer],
    *,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> SentenceScores:
    """Scores under models; sentences that one cannot score, or to which it gives -inf, have none.

    Raises:
        ModelError, ScoreError, StoreError: see `score_sentences`.
    """
    sentences = [judged.sentence for judged in judgements.sentences]
    table, left_out = score_readable(models, sentences, store=store, progress=progress)
    values = np.full((len(sentences), len(models)), np.nan)
    # the table has each sentence once; judged ones may repeat, and unreadable ones have no row
    for row, sentence in enumerate(sentences):
        if sentence in table.rows:
            values[row] = table.log_probs[table.rows[sentence]]
    return _without_infinite(sentences, [model.name for model in models], values, left_out)


def published_scores(
    judgements: Judgements,
    path: Path | str,
    columns: Sequence[str] = (),
    *,
    allow_missing: bool = False,
    data_columns: JudgementColumns = COLUMNS,
) -> SentenceScores:
    """Scores from a table, each column a model.

    Sentences are matched by the column `id` where the judged sentences have identifiers of their
    own and it knows them, else by the column `sentence`. Where a table has both, they must agree,
    up to white space and stops. A sentence whose score is -inf is left out. A table of pairs with
    the columns `gramm_id`, `ungramm_id`, `NAME_gramm` and `NAME_ungramm`, as LI-Adger's authors
    published, is read too.

    Args:
        judgements: the sentences to find.
        path: the table: .csv, .parquet, .jsonl, or an .npz as of `ScoreTable`.
        columns: the columns to take; by default all that hold numbers, without indices, lengths,
            labels, columns of the judged sentences, and z-scores of another column.
        allow_missing: whether sentences may lack a score; they are left out then.
        data_columns: what the columns of the judged sentences are called.

    Raises:
        ScoreError: a column is missing, a sentence has two scores or +inf, an identifier stands for
            another sentence (names the first), or sentences lack a score (lists the first).
        InputError: the file cannot be read, or a value is not a number.
    """
    path = Path(path)
    table = _read_columns(path)
    names = list(columns) or _numeric_columns(table, data_columns)
    missing = [name for name in names if name not in table]
    if len(names) > MOST_MODELS:
        raise ScoreError(
            f"{path} has {len(names):,} columns of numbers; each is taken for a model, and there "
            f"may be {MOST_MODELS:,}. Name those that are (columns, --column)."
        )
    if missing or not names:
        raise ScoreError(
            f"{path} has no scores under {', '.join(map(repr, missing)) or 'any name'}; its "
            f"columns are {listed(table)}."
        )
    # The same sentence may stand in several rows of the table, and several times among the judged
    # ones: rows are joined by a key, which is the identifier or the text.
    keys, keys_of_judged = _matching_keys(path, table, judgements)
    values = np.full((len(keys_of_judged), len(names)), np.nan)
    for column, name in enumerate(names):
        scores = _scores_by_key(path, name, keys, table[name])
        values[:, column] = [scores.get(key, np.nan) for key in keys_of_judged]
    sentences = [judged.sentence for judged in judgements.sentences]
    lacking = _left_out(sentences, names, np.isnan(values), f"not in {path.name}")
    if lacking and not allow_missing:
        texts = list(dict.fromkeys(omission.sentence for omission in lacking))
        more = f" and {len(texts) - _SHOWN:,} more" if len(texts) > _SHOWN else ""
        raise ScoreError(
            f"{path} lacks scores of {len(texts):,} of {len(sentences):,} sentences: "
            f"{'; '.join(map(repr, texts[:_SHOWN]))}{more}. Complete it, or leave them and their "
            f"pairs out with --allow-missing."
        )
    # after the check of what is lacking: -inf is a score, though not one that can be standardized
    return _without_infinite(sentences, names, values, lacking)


def _without_infinite(
    sentences: Sequence[Sentence],
    models: Sequence[str],
    values: FloatArray,
    left_out: Sequence[LeftOut],
) -> SentenceScores:
    """Scores without those of -inf, which have no z-scores."""
    zero = np.isneginf(values)
    left_out = (*left_out, *_left_out(sentences, models, zero, "its probability is zero"))
    return SentenceScores(tuple(models), np.where(zero, np.nan, values), left_out)


def _left_out(
    sentences: Sequence[Sentence], models: Sequence[str], where: BoolArray, reason: str
) -> list[LeftOut]:
    """Sentences left out of scores, with the reason, from a mask (n_sentences, n_models)."""
    return [
        LeftOut(sentences[row].text, models[column], reason) for row, column in np.argwhere(where)
    ]


def _read_columns(path: Path) -> dict[str, Sequence[Any]]:
    """The columns of a file, a row for each sentence."""
    table: dict[str, Sequence[Any]]
    if path.suffix.lower() == ".npz":
        scores = ScoreTable.read(path)
        texts = {} if scores.sentences is None else {"sentence": list(map(str, scores.sentences))}
        table = {**texts, **dict(zip(scores.models, scores.log_probs.T.tolist(), strict=True))}
    else:
        table = dict(read_table(path))
    if not all(f"{side}_id" in table for side in _SIDES):
        return table
    # LI-Adger's authors write a row for each pair. Here the acceptable sentences come first, then
    # the others: `gramm_id` and `ungramm_id` become `id`, `NAME_gramm` and `NAME_ungramm` `NAME`.
    names = [name.removesuffix("_gramm") for name in table if name.endswith("_gramm")]
    names = ["id", "sentence", *(n for n in names if f"{n}_ungramm" in table)]
    prefixed = {"id": "{side}_id", "sentence": "{side}_sentence"}
    return {
        name: [
            value
            for side in _SIDES
            for value in table[prefixed.get(name, name + "_{side}").format(side=side)]
        ]
        for name in names
        if name != "sentence" or "gramm_sentence" in table
    }


def _numeric_columns(
    table: Mapping[str, Sequence[Any]], data_columns: JudgementColumns
) -> list[str]:
    """The columns that may be scores; see `published_scores`."""
    not_scores = set(asdict(data_columns).values())

    def is_score(name: str) -> bool:
        scores = name.removesuffix("_zscores")
        # NAME_zscores beside NAME is the same model again, standardised
        if name.lower() in _NO_SCORES or name in not_scores or (scores != name and scores in table):
            return False
        try:
            values = [value for value in table[name] if str(value).strip() not in MISSING]
            return len([cell_number(value, infinite=True) for value in values]) > 0
        except ValueError:
            return False

    return [name for name in table if is_score(name)]


def _scores_by_key(
    path: Path, name: str, keys: Sequence[str], values: Sequence[Any]
) -> dict[str, float]:
    """The score of each key; repetitions must be equal, up to rounding."""
    scores: dict[str, float] = {}
    for row, (key, value) in enumerate(zip(keys, values, strict=True)):
        score = number(path, row, name, value)
        if score == np.inf:
            raise ScoreError(f"{path}, row {row}: {shortened(value)} under {name} is not a score.")
        # the first value stays; nan equals nan, so that a gap may repeat too
        if not np.isclose(scores.setdefault(key, score), score, rtol=1e-9, equal_nan=True):
            raise ScoreError(
                f"{path}, row {row}: {key!r} has two scores under {name}, {scores[key]} "
                f"and {score}."
            )
    return scores


def _matching_keys(
    path: Path, table: Mapping[str, Sequence[Any]], judgements: Judgements
) -> tuple[list[str], list[str]]:
    """Keys of the rows of a table, and keys of the judged sentences that match them.

    Raises:
        ScoreError: the table names sentences in no way that the judged sentences share, or an
            identifier stands for another sentence (names the first).
    """
    text_of = {judged.id: judged.sentence.text for judged in judgements.sentences}
    row_ids = [str(value) for value in table.get("id", ())]
    if judgements.named and set(row_ids) & set(text_of):
        # A table that numbers its rows in its own way would match by chance: texts must agree.
        for name, cell in zip(row_ids, table.get("sentence", [""] * len(row_ids)), strict=True):
            text = "" if cell is None else str(cell)
            if text.strip() in MISSING or name not in text_of:
                continue
            if _words_without_stops(text) != _words_without_stops(text_of[name]):
                raise ScoreError(
                    f"{path}: the sentence with the id {name!r} is {text!r}, and {text_of[name]!r} "
                    f"among the judged ones. Correct the column 'id', or remove it to match "
                    f"sentences by their text."
                )
        return row_ids, list(text_of)
    if "sentence" not in table:
        example = repr(next(iter(text_of)))
        raise ScoreError(
            f"{path} tells neither by 'id' nor by 'sentence' whose scores it holds; its columns "
            f"are {listed(table)}. The judged sentences have "
            f"{'identifiers such as ' + example if judgements.named else 'no identifiers'}."
        )
    texts = []
    for cell in table["sentence"]:
        try:
            texts.append(Sentence.parse(cell).text)
        except SentenceError:  # such a row is about none of the judged sentences
            texts.append("")
    return texts, list(text_of.values())


def _words_without_stops(text: str) -> list[str]:
    """A text's words without stops, which differ between published files."""
    return text.translate(_STOPS).split()
