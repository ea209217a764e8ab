"""Minimal pairs, human agreement and published accuracies, in the formats of the BLiMP family."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.evaluation.minimal_pairs import (
    COLLECTIONS,
    Method,
    MinimalPair,
    pair_files,
    read_human_agreement,
    read_minimal_pairs,
    read_published_accuracies,
    sample_pairs,
)
from contstim.files.tables import write_table
from contstim.models.base import Continuation
from contstim.words.sentence import Sentence
from tests.evaluation.small_data import ROWS, Row, write_folder, write_rows


def count_applicable_pairs(pairs: list[MinimalPair]) -> list[int]:
    """Return the number of pairs to which each method applies."""
    return [sum(pair.sides(method) is not None for pair in pairs) for method in Method]


def test_pairs_are_read_from_blimps_files(tmp_path: Path) -> None:
    pairs = read_minimal_pairs(pair_files(write_folder(tmp_path / "blimp" / "data").parent))
    assert [(p.paradigm, p.pair_id) for p in pairs] == [(r["UID"], r["pairID"]) for r in ROWS]
    first, fourth = pairs[0], pairs[3]
    fields = (first.phenomenon, first.good.text, first.bad.text)
    assert fields == ("agreement", "The dog sleeps.", "The dog sleep.")
    texts = ("The dog sleeps", "The dog sleep", "The dogs sleeps")
    good, bad, bad_prefix = (Continuation(Sentence(tuple(text.split())), 2) for text in texts)
    assert first.one_prefix == (good, bad)
    assert fourth.two_prefix == (good, bad_prefix)
    assert count_applicable_pairs(pairs) == [7, 3, 2]


def remove_field(row: Row, field: str) -> Row:
    return {name: cell for name, cell in row.items() if name != field}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        *(
            ([ROWS[0], row], rf"a\.jsonl, row 2: the field '{field}' is empty or missing; its")
            for field in ("sentence_good", "sentence_bad", "UID", "pairID")
            for row in (remove_field(ROWS[1], field), {**ROWS[1], field: " "})
        ),
        # Fields of a method that the row declares
        *(
            ([remove_field(ROWS[number], field)], f"the field '{field}' is empty or missing")
            for number, field in ((0, "one_prefix_word_bad"), (3, "two_prefix_prefix_good"))
        ),
        ([ROWS[0], ROWS[5], ROWS[0]], r"row 3: pair 0 of agreement_1 occurs twice; .*row 1"),
        (
            [ROWS[0], {**ROWS[1], "linguistics_term": "islands"}],
            "phenomenon islands, but in an earlier row to agreement",
        ),
    ],
)
def test_errors_in_rows_are_named(tmp_path: Path, rows: list[Row], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_minimal_pairs([write_rows(tmp_path / "a.jsonl", rows)])


def test_fields_of_an_excluded_method_are_ignored(tmp_path: Path) -> None:
    excluded_row = {**ROWS[0], "one_prefix_method": False}
    plain_row = {key: value for key, value in ROWS[3].items() if not key.endswith("method")}
    pairs = read_minimal_pairs([write_rows(tmp_path / "a.jsonl", [excluded_row, plain_row])])
    assert count_applicable_pairs(pairs) == [2, 0, 1]


def test_missing_pairs_and_repeated_identifiers_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="must be a table"):
            pair_files(path)
    table = write_rows(tmp_path / "b.jsonl", ROWS[:1])
    with pytest.raises(InputError, match=r"row 1: pair 0 of agreement_1 occurs twice; .*row 1"):
        read_minimal_pairs([table, table])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1, 2]\n", "line 1 is not a JSON object"),
        (b"{\n", "line 1 is not readable JSON"),
        (b"\n", "no rows"),
        (b'{"sentence_good": "\xff"}\n', "not UTF-8"),
    ],
)
def test_unreadable_tables_are_input_errors(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_minimal_pairs([file])


@given(st.integers(1, 12), st.integers(0, 3))
def test_samples_are_nested_and_independent_of_paradigms(size: int, seed: int) -> None:
    names = "xyxyxyxyxxxxxx"
    sides = Sentence(("a",)), Sentence(("b",))
    pairs = [MinimalPair(name, str(n), *sides, "p") for n, name in enumerate(names)]
    sample, larger_sample = (sample_pairs(pairs, n, seed) for n in (size, size + 1))
    assert Counter(pair.paradigm for pair in sample) == {"x": min(size, 10), "y": min(size, 4)}
    assert set(sample) <= set(larger_sample) <= set(pairs)
    assert sample == [pair for pair in pairs if pair in set(sample)]
    sample_of_y = sample_pairs([pair for pair in pairs if pair.paradigm == "y"], size, seed)
    assert sample_of_y == [pair for pair in sample if pair.paradigm == "y"]


CONDITIONS = ("x_1ans1", "x_1ans2", "attnchkans1", "y_1ans1", "y_1ans2")


def make_assignment(
    answers: str, status: str = "Approved", english: str = "1", native: str = "1"
) -> dict[str, str]:
    """Return a worker's five choices; each is `1`, `2`, or a space for none."""
    row = {"AssignmentStatus": status, "Answer.english": english, "Answer.navtive": native}
    for i, (condition, answer) in enumerate(zip(CONDITIONS, answers, strict=True), start=1):
        row[f"Input.item_{i}_condition"] = condition
        row |= {f"Input.field_{i}_{side}": f"sentence {i} {side}" for side in (1, 2)}
        row[f"Answer.Choice{i}"] = f"{answer}. sentence" if answer.strip() else ""
    return row


def write_answers(folder: Path, rows: list[dict[str, str]]) -> Path:
    write_table(folder / "answers.csv", {name: [row[name] for row in rows] for name in rows[0]})
    return folder / "answers.csv"


def test_agreement_counts_answers_of_accepted_speakers(tmp_path: Path) -> None:
    rows = [
        make_assignment("12212"),  # all correct
        make_assignment("12 1 ", english="0"),  # a native speaker; no answer to the last item
        make_assignment("12121", native="NA"),  # fluent; the last two are wrong
        make_assignment("22121", status="Rejected"),
        make_assignment("22121", english="0", native="NA"),
    ]
    agreement = read_human_agreement(write_answers(tmp_path, rows))
    assert agreement == {
        "x_1": {"individual": 1.0, "majorities": 2, "items": 2, "answers": 6},
        "y_1": {"individual": pytest.approx(7 / 12), "majorities": 1, "items": 2, "answers": 5},
    }


def test_bad_tables_of_answers_are_refused(tmp_path: Path) -> None:
    row = make_assignment("11111")
    path = write_answers(tmp_path, [row | {"Input.item_2_condition": "x_1"}])
    with pytest.raises(InputError, match="got 'x_1'"):
        read_human_agreement(path)
    del row["Answer.Choice3"]
    with pytest.raises(InputError, match=r"no column 'Answer\.Choice3'"):
        read_human_agreement(write_answers(tmp_path, [row]))


def test_published_averages_are_ignored(tmp_path: Path) -> None:
    rows = [
        {"UID": "x_1", "linguistics_term": "x", "a": 0.5, "b": 1},
        {"UID": "y_1", "linguistics_term": "y", "a": 0.25, "b": 0},
        {"UID": "overall", "linguistics_term": "x", "a": 0.99, "b": 0.99},
    ]
    path = write_rows(tmp_path / "summary.jsonl", rows)
    expected = {"a": {"x_1": 0.5, "y_1": 0.25}, "b": {"x_1": 1, "y_1": 0}}
    assert read_published_accuracies(path) == expected
    with pytest.raises(InputError, match="is not a number"):
        read_published_accuracies(write_rows(path, [rows[0] | {"a": "high"}]))
    with pytest.raises(InputError, match="no field 'UID'"):
        read_published_accuracies(write_rows(path, [{"a": 1}]))


# The 36 columns of MultiBLiMP 1.0, in order; most cells of a row stay empty here
MULTIBLIMP = """sen verb verb_idx cop cop_idx child child_idx child_features child_upos head
    head_idx head_features head_upos distance attractors metadata swap_head feature_vals prefix
    wrong_sen congruent_attractors incongruent_attractors num_attractors num_congruent_attractors
    num_incongruent_attractors has_attractors only_has_congruent_attractors
    only_has_incongruent_attractors sample_weight phenomenon lang grammatical_feature
    ungrammatical_feature wo inflect_item agreement_certainty""".split()
JBLIMP = """ID year author bad_num bad_diacritic bad_sentence_raw bad_sentence bad_gloss
    bad_translation good_num good_diacritic good_sentence_raw good_sentence good_gloss
    good_translation type phenomenon phenomenon-2 paradigm""".split()
RUBLIMP = """id source_sentence target_sentence source_word target_word level phenomenon PID subtype
    domain tree_depth""".split()
BLIMP = """sentence_good sentence_bad field linguistics_term UID simple_LM_method one_prefix_method
    two_prefix_method lexically_identical""".split()
ZHOBLIMP = "UID phenomenon sentence_good sentence_bad pairID".split()
DUTCH = "sentence_good sentence_bad linguistic_phenomenon paradigm item_id rating_good".split()

# Collection → file, its columns, filled cells, and the pair that they contain
PUBLISHED = {
    "BLiMP": (
        "data/it.jsonl",
        [*BLIMP, "pairID"],
        ["It rains.", "It rain.", "it_1", "agreement", "7"],
        ("it_1", "agreement", "7", "It rains.", "It rain."),
    ),
    "BLiMP (Hugging Face)": (
        "it_1/train-00000-of-00001.parquet",
        [*BLIMP, "pair_id"],
        ["It rains.", "It rain.", "it_1", "agreement", "7"],
        ("it_1", "agreement", "7", "It rains.", "It rain."),
    ),
    "BLiMP-NL": (
        "data/verb_second-00000.parquet",
        DUTCH,
        ["Nu slaapt zij.", "Nu zij slaapt.", "order_main", "verb_second"],
        ("order_main", "verb_second", "0", "Nu slaapt zij.", "Nu zij slaapt."),
    ),
    "JBLiMP": (
        "data/validated/pairs.csv",
        JBLIMP,
        ["雨 が 降る", "雨 を 降る", "case", "argument structure", "3"],
        ("case", "argument structure", "3", "雨 が 降る.", "雨 を 降る."),
    ),
    "MultiBLiMP": (
        "nld/data.tsv",
        MULTIBLIMP,
        ['Zij zei "ja" en slaapt.', 'Zij zei "ja" en slapen.', "nld", "SV-#"],
        ("nld SV-#", "SV-#", "0", 'Zij zei "ja" en slaapt.', 'Zij zei "ja" en slapen.'),
    ),
    "RuBLiMP": (
        "datasets/tense.csv",
        RUBLIMP,
        ["Вчера, в пять, шёл дождь.", "Завтра, в пять, шёл дождь.", "tense", "Tense", "11"],
        ("tense", "Tense", "11", "Вчера, в пять, шёл дождь.", "Завтра, в пять, шёл дождь."),
    ),
    "ZhoBLiMP": (
        "ba_1.jsonl",
        ZHOBLIMP,
        ["他 把 书 看 了 。", "他 把 看 了 书 。", "ba_1", "BA", "2"],
        ("ba_1", "BA", "2", "他 把 书 看 了。", "他 把 看 了 书。"),
    ),
}
COLUMN_NAMES = {"MultiBLiMP": ("sen", "wrong_sen", "lang", "phenomenon")}


def write_collection(folder: Path, collection: str, *, name: str = "", **cells: str) -> Path:
    """Write the folder of a collection with one pair, some of its cells replaced; return it."""
    published_file, columns, values, _ = PUBLISHED[collection]
    names = COLUMN_NAMES.get(collection, COLLECTIONS[collection])
    row = dict.fromkeys(columns, "") | dict(zip(filter(None, names), values, strict=False)) | cells
    path = folder / (name or published_file)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".tsv":
        quoted = ['"' + cell.replace('"', '""') + '"' for cell in row.values()]
        path.write_text("\t".join(row) + "\n" + "\t".join(quoted) + "\n", encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        write_table(path, {name: [cell] for name, cell in row.items()})
    return folder


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_collection_is_read_from_its_folder(tmp_path: Path, collection: str) -> None:
    """Witness: the columns of the published files, from the authors' papers and dataset cards."""
    (pair,) = read_minimal_pairs(pair_files(write_collection(tmp_path, collection)))
    fields = (pair.paradigm, pair.phenomenon, pair.pair_id, pair.good.text, pair.bad.text)
    assert fields == PUBLISHED[collection][-1]


RELEASES = {"BLiMP": {"name": "a.jsonl"}, "BLiMP (Hugging Face)": {"name": "b.parquet"}}


@pytest.mark.parametrize(
    ("collections", "message"),
    [
        ([("ZhoBLiMP", {"linguistics_term": "BA"})], "which match BLiMP and ZhoBLiMP"),
        (
            [("ZhoBLiMP", {}), ("RuBLiMP", {"name": "tense.csv"})],
            r"ba_1\.jsonl \(ZhoBLiMP\), .*tense\.csv \(RuBLiMP\)",
        ),
        (RELEASES.items(), r"\(BLiMP\), .*b\.parquet \(BLiMP .Hugging Face.\)\. Use"),
        (
            [("JBLiMP", {"name": "data/raw/pairs.csv"}), ("JBLiMP", {})],
            r"pair 3 of case occurs twice; see .*raw.* one version of a collection",
        ),
        (
            [("ZhoBLiMP", {"sentence_good": "他把书看了。", "sentence_bad": "他把看了书。"})],
            r"2 of 2 sentences, such as '他把书看了', are not segmented",
        ),
        (
            [("JBLiMP", {"good_sentence": "雨が降る。", "bad_sentence": "雨を降る。"})],
            "are not segmented into words",
        ),
    ],
)
def test_ambiguous_or_unsegmented_collections_are_refused(
    tmp_path: Path, collections: Iterable[tuple[str, dict[str, str]]], message: str
) -> None:
    for collection, cells in collections:
        write_collection(tmp_path, collection, **cells)
    with pytest.raises(InputError, match=message):
        read_minimal_pairs(pair_files(tmp_path))
