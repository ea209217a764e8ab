"""Read minimal pairs, people's choices, and published accuracies from the files of BLiMP.

Minimal pairs can also be read from the files of other collections, or from any table. A paradigm is
a type of minimal pair with one kind of error. A method compares two sides of a pair: by default,
the good and the bad sentence. Other methods compare words after a prefix; see `Method`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias
from zlib import crc32

import numpy as np

from contstim.errors import InputError
from contstim.evaluation.pair_columns import REMEDY, find_pairs
from contstim.files.documents import read_json_lines
from contstim.files.tables import cells_by_name, join_names, number, parsed, read_csv, read_table
from contstim.files.tables import text as cell_text
from contstim.items.minimal_pair_scores import PREFIX_FIELDS, SentencePair
from contstim.items.stimuli import optional_text
from contstim.models.base import Continuation
from contstim.options import Help, Seed
from contstim.wording import grouped, quantity
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from contstim.evaluation.pair_columns import PairTable

    Row = Mapping[str, Any]
    Columns = tuple[str, ...]

PHENOMENON_OF_TERM = {"s-selection": "argument_structure"}
"""Term in BLiMP's files (13 terms) → phenomenon in the paper (12 phenomena), if they differ."""

AGREEMENT = ("individual", "majorities", "items", "answers")
"""Keys of the results of `read_human_agreement`."""

COLLECTIONS = {
    "BLiMP": ("sentence_good", "sentence_bad", "UID", "linguistics_term", "pairID"),
    "BLiMP (Hugging Face)": ("sentence_good", "sentence_bad", "UID", "linguistics_term", "pair_id"),
    "BLiMP-NL": ("sentence_good", "sentence_bad", "paradigm", "linguistic_phenomenon", ""),
    "JBLiMP": ("good_sentence", "bad_sentence", "paradigm", "phenomenon", "ID"),
    "MultiBLiMP": ("sen", "wrong_sen", "lang+phenomenon", "phenomenon", ""),
    "RuBLiMP": ("source_sentence", "target_sentence", "PID", "phenomenon", "id"),
    "ZhoBLiMP": ("sentence_good", "sentence_bad", "UID", "phenomenon", "pairID"),
}
"""Columns of known collections: good sentence, bad sentence, paradigm, phenomenon, pair identifier.

If a name consists of two names and a +, the cells of both columns are joined with a space. If the
last name is empty, the row number identifies a pair.

Sources: Warstadt et al. 2020 (also `nyu-mll/blimp` on Hugging Face), Suijkerbuijk et al. 2025
(`juletxara/blimp-nl` on Hugging Face), Someya & Oseki 2023, Jumelet et al. 2025 (version 1.0),
Taktasheva et al. 2024 and Liu et al. 2024.
"""

_ENDINGS = (".jsonl", ".csv", ".tsv", ".parquet")
# Chinese, Japanese, Thai, Lao, Tibetan, Burmese and Khmer do not separate words by spaces
_UNSPACED = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)
# A row of the file of people's answers has one worker's answers to five pairs. The condition
# `wh_islandans2` means: paradigm `wh_island`, and the second sentence is acceptable
_CONDITION = re.compile(r"(?P<paradigm>.+)ans(?P<answer>[12])")
_ANSWERS = Path("raw_results/all_outputs/human_responses.csv")
_SUMMARY = Path("raw_results/summary/models_summary.jsonl")


TieRule: TypeAlias = Literal["wrong", "half"]


class Method(StrEnum):
    """Method of comparing the two sides of a pair (Warstadt et al. 2020, section 4.2)."""

    FULL_SENTENCE = "full-sentence"
    """Compares the scores of the two sentences."""
    ONE_PREFIX = "one-prefix"
    """Compares the probabilities of two words after the same prefix."""
    TWO_PREFIX = "two-prefix"
    """Compares the probabilities of the same word after two prefixes."""


@dataclass(frozen=True, kw_only=True)
class MinimalPairSettings:
    """Options of an evaluation on minimal pairs."""

    method: Annotated[tuple[Method, ...], Help("Methods of comparison; by default all.")] = ()
    ties: Annotated[TieRule, Help("A tie is wrong, or counts one half.")] = "wrong"
    sample: Annotated[int | None, Help("Pairs to sample from each paradigm.", at_least=1)] = None
    seed: Seed = 0


MINIMAL_PAIRS = MinimalPairSettings()


@dataclass(frozen=True, slots=True)
class MinimalPair(SentencePair):
    """An acceptable and an unacceptable sentence.

    Attributes:
        phenomenon: phenomenon of the paradigm.
        one_prefix: sides for `Method.ONE_PREFIX`; None if the method does not apply. The sides have
            the same prefix, followed by the critical words of the good or of the bad sentence.
            Critical words are the words whose probabilities are compared.
        two_prefix: sides for `Method.TWO_PREFIX`; None if the method does not apply. The sides have
            the same critical words, after the prefix of the good or of the bad sentence.
    """

    phenomenon: str
    one_prefix: tuple[Continuation, Continuation] | None = None
    two_prefix: tuple[Continuation, Continuation] | None = None

    def sides(
        self, method: Method = Method.FULL_SENTENCE
    ) -> tuple[Sentence, Sentence] | tuple[Continuation, Continuation] | None:
        """Return the good and the bad side for a method; None if the method does not apply."""
        if method is Method.FULL_SENTENCE:
            return self.good, self.bad
        return self.one_prefix if method is Method.ONE_PREFIX else self.two_prefix


def sample_pairs(pairs: Sequence[MinimalPair], size: int, seed: int) -> list[MinimalPair]:
    """Sample `size` pairs of each paradigm; return the sample in the order of `pairs`.

    If a paradigm has fewer pairs, all its pairs are returned. The sample of a paradigm depends only
    on the seed, the size, and the paradigm's name and number of pairs. With the same seed, a
    smaller sample is part of a larger sample.
    """
    rows = grouped((pair.paradigm, row) for row, pair in enumerate(pairs))
    chosen: list[int] = []
    for paradigm, paradigm_rows in rows.items():
        # Use a checksum, because Python's hash of a text differs between processes
        order = np.random.default_rng([seed, crc32(paradigm.encode())]).permutation(paradigm_rows)
        chosen += order[:size].tolist()
    return [pairs[row] for row in sorted(chosen)]


def pair_files(path: Path | str) -> list[Path]:
    """Return the sorted paths of tables of minimal pairs.

    `path` is a table or a folder. In a folder, tables may be in the subfolder `data` or in the
    folder itself. Both may have subfolders with tables, such as one for each language.

    Raises:
        InputError: if there is no such file or folder, or it contains no table.
    """
    path = Path(path)
    if path.is_file():
        return [path]
    for pattern in ("data/*", "*", "data/*/*", "*/*"):
        if files := sorted(file for file in path.glob(pattern) if file.suffix.lower() in _ENDINGS):
            return files
    raise InputError(f"{path} must be a table ({', '.join(_ENDINGS)}) or a folder of such tables.")


def read_minimal_pairs(
    files: Iterable[Path | str],
    settings: MinimalPairSettings = MINIMAL_PAIRS,
    say: Callable[[str], object] = lambda _: None,
) -> list[MinimalPair]:
    """Read the pairs of several tables; return all pairs, or a sample of the pairs.

    Tables have the columns of a known collection (see `COLLECTIONS`), or columns that `find_pairs`
    recognizes. The prefix methods need BLiMP's additional columns: `one_prefix_prefix`,
    `one_prefix_word_good` and `one_prefix_word_bad`; `two_prefix_prefix_good`,
    `two_prefix_prefix_bad` and `two_prefix_word`. A cell of these columns may contain several
    words.

    The settings define the size and seed of a sample. `say` receives a message if columns were
    found by `find_pairs`.

    Raises:
        InputError: if a file cannot be read, has unknown columns, or has other columns than the
            first file; a field is missing or empty; two pairs of a paradigm have the same
            identifier; a paradigm belongs to two phenomena; most pairs of a file are also in an
            earlier file; sentences are not segmented into words; or there are no rows.
    """
    pairs: list[MinimalPair] = []
    where_by_key: dict[tuple[str, str], str] = {}
    phenomena: dict[str, str] = {}
    forms: dict[Columns, str] = {}
    paths = list(map(Path, files))
    file_of_texts: dict[tuple[str, str], Path] = {}
    for file in paths:
        rows: Sequence[Row]
        if file.suffix.lower() == ".jsonl":  # rows of this format may have different fields
            rows = [row for _, row in read_json_lines(file)]
        else:
            rows = cells_by_name(read_table(file))
        if not rows:
            continue
        rows, columns, form = _find_columns(file, rows)
        is_known = form in COLLECTIONS
        if columns not in forms and not is_known:
            say(f"Columns of {file.name}: {form}.")
        forms.setdefault(columns, f"{file} ({form})")
        if len(forms) > 1:
            raise InputError(
                f"The tables have different columns: {', '.join(forms.values())}. Use tables of "
                "one collection in one format."
            )
        for row_number, row in enumerate(rows):
            where = f"{file}, row {row_number + 1}"
            number = str(row_number) if is_known else f"{file.stem} {row_number}"
            pair = _parse_pair(row, where, columns, default=(file.stem, number))
            # A paradigm may be split into several files, so identifiers are compared between files
            key = (pair.paradigm, pair.pair_id)
            if key in where_by_key:
                raise InputError(
                    f"{where}: pair {pair.pair_id} of {pair.paradigm} occurs twice; see "
                    f"{where_by_key[key]}. Use one version of a collection."
                )
            where_by_key[key] = where
            if phenomena.setdefault(pair.paradigm, pair.phenomenon) != pair.phenomenon:
                raise InputError(
                    f"{where}: the paradigm {pair.paradigm} belongs to the phenomenon "
                    f"{pair.phenomenon}, but in an earlier row to {phenomena[pair.paradigm]}."
                )
            pairs.append(pair)
        _refuse_unsegmented(file, pairs[-len(rows) :])
        # Without a known collection, identifiers contain the file's name. They differ between files
        # even if the files contain the same pairs, so compare the sentences
        if not is_known:
            _refuse_second_version(file, pairs[-len(rows) :], file_of_texts)
    if not pairs:
        raise InputError(f"{join_names(paths)} contains no pairs, because there are no rows.")
    return sample_pairs(pairs, settings.sample, settings.seed) if settings.sample else pairs


def _find_columns(file: Path, rows: Sequence[Row]) -> PairTable:
    """Return rows, their columns, and a description of the columns; see `PairTable`.

    The description of a known collection is its name.
    """
    fitting: dict[Columns, str] = {}
    for collection, names in COLLECTIONS.items():
        needed = {part for name in names for part in name.split("+")}
        if needed - {""} <= rows[0].keys():
            fitting[names] = collection
    if len(fitting) == 1:
        columns, collection = fitting.popitem()
        return rows, columns, collection
    if not fitting and (table := find_pairs(file, rows)):
        return table
    collections = (
        f"{name} ({', '.join(filter(None, parts))})" for name, parts in COLLECTIONS.items()
    )
    raise InputError(
        f"{file} has the columns {join_names(rows[0], 50)}, which match "
        f"{' and '.join(fitting.values()) or 'no known collection'}. The columns of known "
        f"collections are: {'; '.join(collections)}. {REMEDY}."
    )


def _refuse_unsegmented(file: Path, pairs: Sequence[MinimalPair]) -> None:
    """Refuse a file if most sentences have no spaces, and are in a script that needs none."""
    words = [side.words for pair in pairs for side in (pair.good, pair.bad)]
    single = [first for first, *further in words if not further and _UNSPACED.search(first)]
    if 2 * len(single) > len(words):
        raise InputError(
            f"{file}: {len(single):,} of {len(words):,} sentences, such as {single[0]!r}, "
            "are not segmented into words. Put spaces between words."
        )


def _refuse_second_version(
    file: Path, pairs: Sequence[MinimalPair], file_of_texts: dict[tuple[str, str], Path]
) -> None:
    """Refuse a file if most of its pairs are in earlier files; otherwise record its pairs."""
    texts = [(pair.good.text, pair.bad.text) for pair in pairs]
    earlier = [file_of_texts[both] for both in texts if both in file_of_texts]
    if 2 * len(earlier) > len(texts):
        raise InputError(
            f"{file}: {len(earlier):,} of {quantity(len(texts), 'pair')} are also in "
            f"{earlier[0]}. Use one version of a collection."
        )
    file_of_texts.update(dict.fromkeys(texts, file))


def _parse_pair(row: Row, where: str, columns: Columns, default: tuple[str, str]) -> MinimalPair:
    """Parse a pair; `default` has the paradigm and identifier for rows without such columns."""

    def parse_field(field: str, parse: Callable[[Any], Any] = lambda c: str(c).strip()) -> Any:
        cell = row.get(field)
        try:
            if optional_text(cell).strip():
                return parse(cell)
        except ValueError as error:
            raise InputError(f"{where}, field {field!r}: {str(error).rstrip('.')}.") from error
        problem = f"the field {field!r} is empty or missing"
        raise InputError(f"{where}: {problem}; its fields are {join_names(row)}.")

    def sides(method: Method) -> tuple[Continuation, Continuation] | None:
        name = method.replace("-", "_")
        fields = [
            [f"{name}_{part}" for part in PREFIX_FIELDS[name] if not part.endswith(ending)]
            for ending in ("_bad", "_good")
        ]
        # In BLiMP, a field states whether a row supports the method. A row of another collection
        # supports the method if the row has the method's fields
        has_fields = any(field in row for side in fields for field in side)
        if str(row.get(f"{name}_method", has_fields)).strip().lower() not in {"true", "1"}:
            return None

        def continuation(prefix: str, words: str) -> Continuation:
            before = parse_field(prefix).split()
            sentence = parse_field(words, lambda cell: Sentence((*before, *str(cell).split())))
            return Continuation(sentence, len(before))

        good, bad = (continuation(*side) for side in fields)
        return good, bad

    good, bad, of_paradigm, of_phenomenon, of_pair = columns
    parts = [of_paradigm] if of_paradigm in row else filter(None, of_paradigm.split("+"))
    paradigm = " ".join(map(parse_field, parts)) or default[0]
    term = parse_field(of_phenomenon) if of_phenomenon else paradigm
    return MinimalPair(
        paradigm=paradigm,
        phenomenon=PHENOMENON_OF_TERM.get(term, term),
        pair_id=parse_field(of_pair) if of_pair else default[1],
        good=parse_field(good, Sentence.parse),
        bad=parse_field(bad, Sentence.parse),
        one_prefix=sides(Method.ONE_PREFIX),
        two_prefix=sides(Method.TWO_PREFIX),
    )


def published_files(
    data: Path, people: Path | None = None, published: Path | None = None
) -> tuple[Path | None, Path | None]:
    """Return the files of people's answers (`people`) and of published accuracies (`published`).

    An argument that is None is replaced by BLiMP's file in the folder `data`. If this file does not
    exist, None is returned.
    """
    defaults = (data / _ANSWERS, data / _SUMMARY)
    answers, summary = (path if path.is_file() else None for path in defaults)
    return people or answers, published or summary


def read_human_agreement(path: Path | str | None) -> dict[str, dict[str, Any]]:
    """Compute people's agreement with the labels, by paradigm, from the answers of BLiMP's workers.

    The label of a pair states which sentence is acceptable. A worker's choices count if the
    assignment is approved and the worker reports fluent or native English. Attention checks and
    unanswered pairs are left out. With these rules, the results equal the published summary. If
    `path` is None, the result is empty.

    Returns:
        Results by paradigm. `individual`: proportion of choices of the acceptable sentence,
        averaged over pairs. `majorities`: number of pairs in which more than half of the choices
        are correct. `items`: number of pairs. `answers`: number of choices.

    Raises:
        InputError: if the file cannot be read, lacks a column (the message names the column), has
            an unknown condition, or has no choices.
    """
    if path is None:
        return {}
    columns = read_csv(path)
    try:
        by_paradigm = grouped(chain.from_iterable(map(_choices, cells_by_name(columns))))
    except KeyError as error:
        raise InputError(f"{path} has no column {error}: it is not a table of BLiMP.") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if not by_paradigm:
        raise InputError(f"{path} has no approved answer of a speaker of English.")
    agreement = {}
    for paradigm, pairs_and_choices in sorted(by_paradigm.items()):
        items = grouped(pairs_and_choices)
        # All pairs have equal weight, independent of their number of choices
        shares = [float(np.mean(choices)) for choices in items.values()]
        counts = sum(share > 0.5 for share in shares), len(shares), sum(map(len, items.values()))
        agreement[paradigm] = dict(zip(AGREEMENT, (float(np.mean(shares)), *counts), strict=True))
    return agreement


def _choices(row: Mapping[str, str]) -> Iterator[tuple[str, tuple[tuple[str, str], bool]]]:
    """Yield paradigm, (pair, whether the choice is correct), for each choice that counts."""
    # The published file has this spelling of "native"
    speaks = "1" in (row["Answer.english"], row["Answer.navtive"])
    approved = row["AssignmentStatus"] == "Approved"
    for i in range(1, 6) if approved and speaks else ():
        condition = row[f"Input.item_{i}_condition"]
        match = _CONDITION.fullmatch(condition)
        if match is None:
            raise ValueError(
                "a condition must be a paradigm and an answer, such as wh_islandans2, got "
                f"{condition!r}."
            )
        choice = row[f"Answer.Choice{i}"][:1]  # empty if nothing was chosen
        pair = (row[f"Input.field_{i}_1"], row[f"Input.field_{i}_2"])
        if choice and match["paradigm"] != "attnchk":  # attention checks
            yield match["paradigm"], (pair, choice == match["answer"])


def read_published_accuracies(path: Path | str | None) -> dict[str, dict[str, float]]:
    """Read accuracies of published models by paradigm (`raw_results/summary/models_summary.jsonl`).

    The row of averages over paradigms is skipped. If `path` is None, the result is empty.

    Raises:
        InputError: if the file cannot be read, has no field `UID`, or an accuracy is not a number.
    """
    if path is None:
        return {}
    columns = read_table(path)
    if "UID" not in columns:
        raise InputError(f"{path} has no field 'UID'; it is not a summary of the models of BLiMP.")
    paradigms = parsed(path, "UID", columns["UID"], cell_text, "text")
    accuracies: dict[str, dict[str, float]] = {}
    for model in columns:
        if model not in {"UID", "linguistics_term"}:
            numbers = parsed(path, model, columns[model], number, "number")
            accuracies[model] = dict(zip(paradigms, numbers, strict=True))
            accuracies[model].pop("overall", None)
    return accuracies
