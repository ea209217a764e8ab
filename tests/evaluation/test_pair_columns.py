"""Minimal pairs in tables of no known collection, with two columns or two rows per pair."""

import json
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.evaluation.minimal_pairs import MinimalPair, MinimalPairSettings, read_minimal_pairs
from contstim.files.tables import read_table, write_table
from contstim.steps.evaluation import EvaluateMinimalPairs

CASES = Path(__file__).with_name("cases")
PAIRS = [("It rains.", "It rain."), ("We sing.", "We sings.")]


def write_lines(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def pair_texts(pairs: list[MinimalPair]) -> list[tuple[str, str]]:
    return [(pair.good.text, pair.bad.text) for pair in pairs]


@pytest.mark.parametrize(
    ("columns", "paradigm"),
    [
        ("sentence_good,sentence_bad", ""),
        ("sentence_good,sentence_bad,category", "category"),
        ("sentence_good,sentence_bad,UID", "UID"),
        ("Good Sentence,Bad Sentence", ""),
        ("good,bad,phenomenon", "phenomenon"),
        ("acceptable,unacceptable", ""),
        ("grammatical,ungrammatical", ""),
        ("correct,incorrect", ""),
        ("correct_sentence,wrong_sentence", ""),
        ("right,wrong", ""),
        ("sen,wrong_sen", ""),
        # The columns of TurBLiMP (Başar et al. 2025), separated by semicolons
        ("good_sentence;bad_sentence;good_cue;bad_cue;critical_region;phenomenon", "phenomenon"),
    ],
)
def test_two_columns_of_sentences_are_enough(tmp_path: Path, columns: str, paradigm: str) -> None:
    separator = ";" if ";" in columns else ","
    other_cells = separator.join(["agreement"] * columns.count(separator)).removeprefix("agreement")
    rows = [separator.join([good, bad]) + other_cells for good, bad in PAIRS]
    messages: list[str] = []
    path = write_lines(tmp_path / "verbs.csv", columns, *rows)
    pairs = read_minimal_pairs([path], MinimalPairSettings(), messages.append)
    assert pair_texts(pairs) == PAIRS
    assert {pair.paradigm for pair in pairs} == {"agreement" if paradigm else "verbs"}
    (message,) = messages
    assert all(name in message for name in columns.split(separator)[:2])
    assert paradigm in message


LONG = "item,condition,{},sentence"


@pytest.mark.parametrize(
    ("header", "rows", "pair_ids"),
    [
        (LONG.format("acceptable"), ["1,a,{0},{g}", "1,a,{1},{b}"], ["1", "2"]),
        (LONG.format("label"), ["1,a,{1},{b}", "1,a,{0},{g}"], ["1", "2"]),
        ("Item,Condition,Sentence", ["1,{0},{g}", "1,{1},{b}"], ["1", "2"]),
        ("id,sentence,grammaticality", ["{n},{g},{0}", "{m},{b},{1}"], ["0", "2"]),
        ("sentence,label", ["{g},{0}", "{b},{1}"], ["0", "2"]),
        ("item,condition,label,grammatical,text", ["1,a,{0},1,{g}", "1,a,{1},0,{b}"], ["1", "2"]),
    ],
)
@pytest.mark.parametrize(
    "verdicts", [("1", "0"), ("grammatical", "ungrammatical"), ("TRUE", "FALSE"), ("ok", "*")]
)
def test_two_rows_are_a_pair(
    tmp_path: Path, header: str, rows: list[str], pair_ids: list[str], verdicts: tuple[str, str]
) -> None:
    lines = []
    for n, (good, bad) in enumerate(PAIRS):
        for row in rows:
            line = row.format(*verdicts, g=good, b=bad, n=2 * n, m=2 * n + 1)
            lines.append(line.replace("1", str(n + 1), 1) if row[0] == "1" else line)
    pairs = read_minimal_pairs([write_lines(tmp_path / "verbs.csv", header, *lines)])
    assert pair_texts(pairs) == PAIRS
    assert [pair.pair_id for pair in pairs] == pair_ids


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["good,bad,correct,wrong", "a b,a c,d e,d f"], "good and bad; correct and wrong"),
        (
            ["item,label,grammatical,sentence", "1,1,0,It is.", "1,0,1,It are."],
            "several columns of verdicts .*: grammatical; label",
        ),
        (
            ["item,pair,label,sentence", "1,1,1,a", "1,2,0,b", "2,2,1,c", "2,1,0,d"],
            "identifiers of pairs: pair; item",
        ),
        (
            ["item,label,sentence", "1,1,a", "1,0,b", "2,1,c", "2,1,d"],
            "by the columns item to pairs",
        ),
        (["label,sentence", "1,a", "1,b", "0,c", "0,d"], "without a column of items"),
        (["item,label,sentence", "1,1,a", "1,maybe,b"], "no column with verdicts"),
        (
            ["item,label,text,sentence", "1,1,a,b", "1,0,c,d"],
            "of sentences: sentence; text",
        ),
        (
            ["first,second", "It rains.,It rain."],
            r"columns first, second, .* no known collection\. .* known collections are: BLiMP",
        ),
    ],
)
def test_ambiguous_columns_are_refused(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_minimal_pairs([write_lines(tmp_path / "pairs.csv", *rows)])


def test_two_versions_of_pairs_are_refused(tmp_path: Path) -> None:
    rows = ["good,bad", *(",".join(pair) for pair in PAIRS)]
    files = [write_lines(tmp_path / f"{name}.csv", *rows) for name in ("base", "augmented")]
    with pytest.raises(InputError, match=r"augmented.csv: 2 of 2 pairs are also in .*base.csv"):
        read_minimal_pairs(files)


def test_a_table_of_multiblimp_is_read() -> None:
    pairs = read_minimal_pairs([CASES / "multiblimp-hin.csv"])
    assert [pair.paradigm for pair in pairs] == ["hin SV-G"] * 2
    assert [pair.good.words[-1].rstrip("।") for pair in pairs] == ["गया", "गयी"]


def test_equal_sentences_are_no_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: one of two pairs is correct; counting the tie gives one in three, or a half."""
    monkeypatch.setattr("contstim.evaluation.folder.save", lambda *_: b"")
    rows = [*PAIRS, ("They go.", "They go.")]
    write_lines(tmp_path / "pairs.csv", "good,bad", *(",".join(row) for row in rows))
    texts = [text for pair in PAIRS for text in pair] + ["They go."]
    scores: dict[str, list[Any]] = {"sentence": texts, "m": [-1.0, -2.0, -4.0, -3.0, -5.0]}
    write_table(tmp_path / "scores.tsv", scores)
    out = tmp_path / "out"
    step = EvaluateMinimalPairs(
        data=tmp_path / "pairs.csv", scores=tmp_path / "scores.tsv", out=out
    )
    evaluation = step.run()
    (row,) = zip(*read_table(out / "paradigms.csv").values(), strict=True)
    assert row[:6] == ("full-sentence", "pairs", "pairs", "2", "0", "1")
    assert evaluation.full is not None
    assert evaluation.full.mean().tolist() == [0.5]
    record = json.loads((out / "report.md.meta.json").read_text(encoding="utf-8"))
    assert record["identical_pairs"] == {"full-sentence": 1}
    write_lines(tmp_path / "pairs.csv", "good,bad", *(",".join(row) for row in PAIRS))
    step.run()
    assert "## Ties" not in (out / "report.md").read_text(encoding="utf-8")
    write_lines(tmp_path / "pairs.csv", "good,bad", "They go.,They go.")
    with pytest.raises(InputError, match="The two sides are equal in all pairs"):
        step.run()
