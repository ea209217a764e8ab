"""Collections in BLiMP's family, in tiny files with the columns that their makers document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from contstim.errors import InputError
from contstim.evaluation.minimal_pairs import COLLECTIONS, pair_files, read_minimal_pairs
from contstim.files.tables import read_table, write_table
from contstim.steps.evaluation import EvaluateMinimalPairs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# MultiBLiMP 1.0's 36 columns, in their order; further cells of a row stay empty here
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

# by collection: its file, the columns of that file, filled cells, and what they say
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
PARTS = {"MultiBLiMP": ("sen", "wrong_sen", "lang", "phenomenon")}


def write(folder: Path, collection: str, *, name: str = "", **cells: str) -> Path:
    """The folder of a collection that holds one pair, some of its cells exchanged."""
    file, columns, filled, _ = PUBLISHED[collection]
    names = PARTS.get(collection, COLLECTIONS[collection])
    row = dict.fromkeys(columns, "") | dict(zip(filter(None, names), filled, strict=False)) | cells
    path = folder / (name or file)
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
    """Witness: the columns of the published files, which their makers' papers and cards name."""
    (pair,) = read_minimal_pairs(pair_files(write(tmp_path, collection)))
    found = (pair.paradigm, pair.phenomenon, pair.pair_id, pair.good.text, pair.bad.text)
    assert found == PUBLISHED[collection][-1]


RELEASES = {"BLiMP": {"name": "a.jsonl"}, "BLiMP (Hugging Face)": {"name": "b.parquet"}}


@pytest.mark.parametrize(
    ("written", "complaint"),
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
def test_what_is_no_collection_is_named(
    tmp_path: Path, written: Iterable[tuple[str, dict[str, str]]], complaint: str
) -> None:
    for collection, cells in written:
        write(tmp_path, collection, **cells)
    with pytest.raises(InputError, match=complaint):
        read_minimal_pairs(pair_files(tmp_path))


def test_languages_are_paradigms_of_their_phenomenon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: accuracy by hand, from scores by which one language is right."""
    monkeypatch.setattr("contstim.evaluation.folder.save", lambda *_: b"")
    sides = {"nld": ("Zij slaapt.", "Zij slapen."), "deu": ("Sie schläft.", "Sie schlafe.")}
    for lang, (sen, wrong) in sides.items():
        where = {"name": f"pairs/{lang}/data.tsv", "lang": lang}
        write(tmp_path, "MultiBLiMP", **where, sen=sen, wrong_sen=wrong)
    sentences = [*sides["nld"], *sides["deu"]]
    write_table(tmp_path / "scores.csv", {"sentence": sentences, "m": [-1.0, -2.0, -4.0, -3.0]})
    out = tmp_path / "out"
    EvaluateMinimalPairs(data=tmp_path / "pairs", scores=tmp_path / "scores.csv", out=out).run()
    paradigms, phenomena = (read_table(out / f"{name}.csv") for name in ("paradigms", "phenomena"))
    accuracy = dict(zip(paradigms["paradigm"], map(float, paradigms["m"]), strict=True))
    assert accuracy == {"deu SV-#": 0, "nld SV-#": 1}
    assert dict(zip(phenomena["phenomenon"], map(float, phenomena["m"]), strict=True)) == {
        "overall": 0.5,
        "SV-#": 0.5,
    }
