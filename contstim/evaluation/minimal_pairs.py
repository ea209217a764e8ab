"""Minimal pairs from BLiMP's files or any table; what people chose, and published models did."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from contstim.errors import InputError
from contstim.evaluation.pair_columns import PairTable, find_pairs
from contstim.evaluation.settings import MINIMAL_PAIRS, Method, MinimalPairSettings
from contstim.files.documents import read_json_lines
from contstim.files.tables import cells_by_name, listed, number, parsed, read_csv, read_table
from contstim.files.tables import text as cell_text
from contstim.items.minimal_pair_scores import PREFIX_FIELDS, SentencePair
from contstim.items.stimuli import optional_text
from contstim.models.base import Continuation
from contstim.wording import counted
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Row = Mapping[str, Any]
    Columns = tuple[str, ...]

PHENOMENON_OF_TERM = {"s-selection": "argument_structure"}
"""The paper's twelve phenomena hold what the files call by a thirteenth term."""

AGREEMENT = ("individual", "majorities", "items", "answers")
"""Columns of `read_human_agreement`."""

COLLECTIONS = {
    "BLiMP": ("sentence_good", "sentence_bad", "UID", "linguistics_term", "pairID"),
    "BLiMP (Hugging Face)": ("sentence_good", "sentence_bad", "UID", "linguistics_term", "pair_id"),
    "BLiMP-NL": ("sentence_good", "sentence_bad", "paradigm", "linguistic_phenomenon", ""),
    "JBLiMP": ("good_sentence", "bad_sentence", "paradigm", "phenomenon", "ID"),
    "MultiBLiMP": ("sen", "wrong_sen", "lang+phenomenon", "phenomenon", ""),
    "RuBLiMP": ("source_sentence", "target_sentence", "PID", "phenomenon", "id"),
    "ZhoBLiMP": ("sentence_good", "sentence_bad", "UID", "phenomenon", "pairID"),
}
"""Columns of known collections: acceptable sentence, other sentence, paradigm, phenomenon, pair.

Texts of columns joined by + are read as one; where no column names a pair, its row does.

As published by Warstadt et al. 2020 (also as `nyu-mll/blimp` on Hugging Face), Suijkerbuijk et al.
2025 (as `juletxara/blimp-nl` there), Someya & Oseki 2023, Jumelet et al. 2025 (version 1.0),
Taktasheva et al. 2024 and Liu et al. 2024.
"""

_COLUMNS = ("good_column", "bad_column", "paradigm_column", "phenomenon_column", "pair_column")
_ENDINGS = (".jsonl", ".csv", ".tsv", ".parquet")
# Chinese, Japanese, Thai, Lao, Tibetan, Burmese and Khmer, which have no spaces between words
_UNSPACED = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)
# the file has a row for each assignment of a worker, with five pairs and the worker's languages;
# `wh_islandans2` is a pair of the paradigm `wh_island` whose second sentence is acceptable
_CONDITION = re.compile(r"(?P<paradigm>.+)ans(?P<answer>[12])")
_ANSWERS = Path("raw_results/all_outputs/human_responses.csv")
_SUMMARY = Path("raw_results/summary/models_summary.jsonl")


@dataclass(frozen=True, slots=True)
class MinimalPair(SentencePair):
    """An acceptable and an unacceptable sentence.

    Attributes:
        phenomenon: what the paradigm is an example of.
        one_prefix: the critical words of the good and of the bad sentence after the words that both
            begin with; None where the pair has no such place.
        two_prefix: the same critical words after what is before them in the good and in the bad
            sentence; None where the pair has no such place.
    """

    phenomenon: str
    one_prefix: tuple[Continuation, Continuation] | None = None
    two_prefix: tuple[Continuation, Continuation] | None = None

    def sides(
        self, method: Method = Method.FULL_SENTENCE
    ) -> tuple[Sentence, Sentence] | tuple[Continuation, Continuation] | None:
        """The good and the bad side of a comparison; None where the method cannot be used."""
        if method is Method.FULL_SENTENCE:
            return self.good, self.bad
        return self.one_prefix if method is Method.ONE_PREFIX else self.two_prefix


def sample_pairs(pairs: Sequence[MinimalPair], size: int, seed: int) -> list[MinimalPair]:
    """Some pairs of each paradigm, all where it has no more, in the order given.

    Which ones depends on nothing but the seed, the paradigm's name and the number of its pairs. A
    smaller sample is part of a larger one.
    """
    rows: dict[str, list[int]] = defaultdict(list)
    for row, pair in enumerate(pairs):
        rows[pair.paradigm].append(row)
    chosen: list[int] = []
    for paradigm, own in rows.items():
        # a checksum of the name, since Python's hash of a text is another in every process
        order = np.random.default_rng([seed, crc32(paradigm.encode())]).permutation(own)
        chosen += order[:size].tolist()
    return [pairs[row] for row in sorted(chosen)]


def pair_files(path: Path | str) -> list[Path]:
    """The file itself; or the tables of a folder, or of the folder `data` in it, by name.

    Where neither holds tables, their folders may, as those of single languages do.

    Raises:
        InputError: there is no such file or folder, or it holds no table.
    """
    path = Path(path)
    if path.is_file():
        return [path]
    for inside in ("data/*", "*", "data/*/*", "*/*"):
        if files := sorted(one for one in path.glob(inside) if one.suffix.lower() in _ENDINGS):
            return files
    raise InputError(
        f"There are no minimal pairs in {path}, no table ({', '.join(_ENDINGS)}) or folder of them."
    )


def read_minimal_pairs(
    files: Iterable[Path | str],
    settings: MinimalPairSettings = MINIMAL_PAIRS,
    say: Callable[[str], object] = lambda _: None,
) -> list[MinimalPair]:
    """The pairs of tables in order, or a sample of them.

    Prefix methods use the fields that BLiMP has for them: `one_prefix_prefix`,
    `one_prefix_word_good` and `one_prefix_word_bad`; `two_prefix_prefix_good`,
    `two_prefix_prefix_bad` and `two_prefix_word`. A word may be several.

    Args:
        files: tables.
        settings: names of the columns, and the sample; by default those of the collection (see
            `COLLECTIONS`), else those that `find_pairs` finds, and all pairs.
        say: is given the columns that were found, once.

    Raises:
        InputError: a file cannot be read, is of no known collection while columns are not named, or
            of another than the first; a row lacks a field or has it empty (names both); two
            pairs of a paradigm have the same identifier; a paradigm belongs to two phenomena;
            sentences are not segmented into words; there are no rows at all.
    """
    pairs: list[MinimalPair] = []
    places: dict[tuple[str, str], str] = {}
    phenomena: dict[str, str] = {}
    forms: dict[Columns, str] = {}
    paths = list(map(Path, files))
    file_of_texts: dict[tuple[str, str], Path] = {}
    for file in paths:
        is_json = file.suffix.lower() == ".jsonl"  # whose rows may have different fields
        rows = [r for _, r in read_json_lines(file)] if is_json else cells_by_name(read_table(file))
        if not rows:
            continue
        table = _table(file, rows, settings)
        columns = table.columns
        if columns not in forms and not table.is_known:
            say(f"Columns of {file.name}: {table.form}.")
        forms.setdefault(columns, f"{file} is in the form of {table.form}")
        if len(forms) > 1:
            raise InputError(f"{', '.join(forms.values())}: give one collection, in one form.")
        for row_number, row in enumerate(table.rows):
            place = f"{file}, row {row_number + 1}"
            number = str(row_number) if table.is_known else f"{file.stem} {row_number}"
            pair = _pair(row, place, columns, default=(file.stem, number))
            # files of one paradigm may be split, so identifiers are checked over all of them
            key = (pair.paradigm, pair.pair_id)
            if key in places:
                raise InputError(
                    f"{place}: pair {pair.pair_id} of {pair.paradigm} stands twice; see "
                    f"{places[key]}. Of two versions of a collection, give one."
                )
            places[key] = place
            if phenomena.setdefault(pair.paradigm, pair.phenomenon) != pair.phenomenon:
                raise InputError(
                    f"{place}: {pair.paradigm} belongs to {pair.phenomenon}, and above to another "
                    f"phenomenon."
                )
            pairs.append(pair)
        _refuse_unsegmented(file, pairs[-len(table.rows) :])
        if not table.is_known:  # whose pairs have names of their own
            _refuse_second_version(file, pairs[-len(table.rows) :], file_of_texts)
    if not pairs:
        raise InputError(f"There are no pairs in {listed(paths)}: there are no rows.")
    return sample_pairs(pairs, settings.sample, settings.seed) if settings.sample else pairs


def _table(file: Path, rows: Sequence[Row], settings: MinimalPairSettings) -> PairTable:
    """The rows of a file, one for each pair, and its columns in the order of COLLECTIONS."""
    given = [getattr(settings, name) for name in _COLUMNS]
    fitting: dict[Columns, str] = {}
    for collection, names in COLLECTIONS.items():
        pairs = [*zip(given, names, strict=True)]
        needed = {part for named, name in pairs if named is None for part in name.split("+")}
        if needed - {""} <= rows[0].keys():
            fitting[tuple(name if named is None else named for named, name in pairs)] = collection
    if len(fitting) == 1:
        columns, collection = fitting.popitem()
        return PairTable(rows, columns, collection, is_known=True)
    if not fitting and (table := find_pairs(file, rows, settings)):
        return table
    known = (f"{name} ({', '.join(filter(None, of))})" for name, of in COLLECTIONS.items())
    raise InputError(
        f"{file} has the columns {listed(rows[0], 50)}, which are those of "
        f"{' and '.join(fitting.values()) or 'no known collection'}. Known are "
        f"{'; '.join(known)}. For others, name the columns "
        f"({', '.join(f'`{name}`' for name in _COLUMNS)}; with a row for each sentence "
        "`sentence_column`, `label_column` and `pair_column`)."
    )


def _refuse_unsegmented(file: Path, pairs: Sequence[MinimalPair]) -> None:
    """Refuse a file most sentences of which are one word, in a script without spaces."""
    words = [side.words for pair in pairs for side in (pair.good, pair.bad)]
    whole = [first for first, *rest in words if not rest and _UNSPACED.search(first)]
    if 2 * len(whole) > len(words):
        raise InputError(
            f"{file}: {len(whole):,} of {len(words):,} sentences, such as {whole[0]!r}, "
            "are not segmented into words. Put spaces between words, as a segmenter does, or name "
            "columns that have them (`good_column`, `bad_column`)."
        )


def _refuse_second_version(
    file: Path, pairs: Sequence[MinimalPair], file_of_texts: dict[tuple[str, str], Path]
) -> None:
    """Refuse a file most pairs of which are in an earlier one; remember those of the others."""
    texts = [(pair.good.text, pair.bad.text) for pair in pairs]
    earlier = [file_of_texts[both] for both in texts if both in file_of_texts]
    if 2 * len(earlier) > len(texts):
        raise InputError(
            f"{file}: {len(earlier):,} of {counted(len(texts), 'pair')} are in {earlier[0]} too. "
            "Of two versions of a collection, give one."
        )
    file_of_texts.update(dict.fromkeys(texts, file))


def _pair(row: Row, place: str, columns: Columns, default: tuple[str, str]) -> MinimalPair:
    """The pair of a row, with a paradigm and an identifier where it names none."""

    def read(field: str, as_value: Callable[[Any], Any] = lambda cell: str(cell).strip()) -> Any:
        cell = row.get(field)
        try:
            # null is no text, and as empty as blanks are
            if optional_text(cell).strip():
                return as_value(cell)
        except ValueError as error:
            raise InputError(f"{place}, field {field!r}: {str(error).rstrip('.')}.") from error
        told = f"the field {field!r} is empty or not there"
        raise InputError(f"{place}: {told}; its fields are {listed(row)}. Options name them.")

    def sides(method: Method) -> tuple[Continuation, Continuation] | None:
        name = method.replace("-", "_")
        fields = [
            [f"{name}_{part}" for part in PREFIX_FIELDS[name] if not part.endswith(other)]
            for other in ("_bad", "_good")
        ]
        # as the flag says, or where there is none, the fields
        has_fields = any(field in row for side in fields for field in side)
        if str(row.get(f"{name}_method", has_fields)).strip().lower() not in {"true", "1"}:
            return None

        def after(prefix: str, words: str) -> Continuation:
            before = read(prefix).split()
            whole = read(words, lambda cell: Sentence((*before, *str(cell).split())))
            return Continuation(whole, len(before))

        good, bad = (after(*side) for side in fields)
        return good, bad

    good, bad, of_paradigm, of_phenomenon, of_pair = columns
    parts = [of_paradigm] if of_paradigm in row else filter(None, of_paradigm.split("+"))
    paradigm = " ".join(map(read, parts)) or default[0]
    # the term that the file uses, which need not be the paper's phenomenon
    term = read(of_phenomenon) if of_phenomenon else paradigm
    return MinimalPair(
        paradigm=paradigm,
        phenomenon=PHENOMENON_OF_TERM.get(term, term),
        pair_id=read(of_pair) if of_pair else default[1],
        good=read(good, Sentence.parse),
        bad=read(bad, Sentence.parse),
        one_prefix=sides(Method.ONE_PREFIX),
        two_prefix=sides(Method.TWO_PREFIX),
    )


def published_files(
    data: Path, people: Path | None = None, published: Path | None = None
) -> tuple[Path | None, Path | None]:
    """Files of people's answers and of published accuracies: those named, else those in data."""
    answers, summary = data / _ANSWERS, data / _SUMMARY
    return (
        people or (answers if answers.is_file() else None),
        published or (summary if summary.is_file() else None),
    )


def read_human_agreement(path: Path | str | None) -> dict[str, dict[str, Any]]:
    """Agreement by paradigm from the answers of BLiMP's crowd workers (`human_responses.csv`).

    `individual` is the mean over `items` (pairs that people judged) of the share of people who
    chose the acceptable sentence, `majorities` the items in which more than half of them did, and
    `answers` how many choices were counted: those of approved assignments, whose workers say that
    they are fluent in English or native speakers, without attention checks and unanswered items. So
    counted, the answers give every number of the published summary. Without a file there is none.

    Raises:
        InputError: the file cannot be read, or lacks a column (names it).
    """
    if path is None:
        return {}
    columns = read_csv(path)
    right: dict[str, dict[tuple[str, str], list[bool]]] = defaultdict(lambda: defaultdict(list))
    try:
        for row in cells_by_name(columns):
            for paradigm, pair, is_right in _choices(row):
                right[paradigm][pair].append(is_right)
    except KeyError as error:
        raise InputError(f"{path} has no column {error}: it is no table of BLiMP's.") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if not right:
        raise InputError(f"{path} has not an approved answer of anybody who speaks English.")
    agreement = {}
    for paradigm, items in sorted(right.items()):
        # first by pair, so that pairs that more people judged do not count for more
        shares = [float(np.mean(choices)) for choices in items.values()]
        majorities = sum(share > 0.5 for share in shares)
        counts = majorities, len(shares), sum(map(len, items.values()))
        agreement[paradigm] = dict(zip(AGREEMENT, (float(np.mean(shares)), *counts), strict=True))
    return agreement


def _choices(row: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str], bool]]:
    """Paradigm, pair of sentences, and whether the choice is right, of a worker who counts."""
    # the column of native speakers is spelled so in the published file
    speaks = "1" in (row["Answer.english"], row["Answer.navtive"])
    approved = row["AssignmentStatus"] == "Approved"
    for i in range(1, 6) if approved and speaks else ():
        condition = row[f"Input.item_{i}_condition"]
        match = _CONDITION.fullmatch(condition)
        if match is None:
            raise ValueError(f"{condition!r} names no paradigm and right answer.")
        choice = row[f"Answer.Choice{i}"][:1]  # empty where nothing was chosen
        pair = (row[f"Input.field_{i}_1"], row[f"Input.field_{i}_2"])
        if choice and match["paradigm"] != "attnchk":  # which are checks of attention
            yield match["paradigm"], pair, choice == match["answer"]


def read_published_accuracies(path: Path | str | None) -> dict[str, dict[str, float]]:
    """Accuracy of each published model by paradigm (`raw_results/summary/models_summary.jsonl`).

    Its rows of averages are left out: averages are computed anew. Without a file there is none.

    Raises:
        InputError: the file cannot be read, has no field `UID`, or an accuracy is not a number.
    """
    if path is None:
        return {}
    columns = read_table(path)
    if "UID" not in columns:
        raise InputError(f"{path} has no field 'UID'; it is not a summary of BLiMP's models.")
    paradigms = parsed(path, "UID", columns["UID"], cell_text, "text")
    accuracies: dict[str, dict[str, float]] = {}
    for model in columns:
        if model not in {"UID", "linguistics_term"}:
            numbers = parsed(path, model, columns[model], number, "number")
            accuracies[model] = dict(zip(paradigms, numbers, strict=True))
            accuracies[model].pop("overall", None)
    return accuracies
