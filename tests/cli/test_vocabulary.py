"""`contstim vocabulary` with models: which words stay, and what is written about them."""

import json
from pathlib import Path

import pytest

from contstim.testing.platform import read_csv_rows
from contstim.words.vocabulary import Vocabulary
from tests.cli.running import invoke
from tests.models import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("words")
    text = "The teacher sees hospitals\nShe sees the dog\nUnbelievably the dog sees her\n" * 3
    (place / "text.txt").write_text(text, encoding="utf-8")
    tiny.train_ngrams(2, place / "bigram.arpa")
    for name in ("gpt2", "bert"):
        tiny.build(name, place)
    return place


def test_words_that_tokenizers_cut_alike_and_a_table_of_all(folder: Path) -> None:
    """Witness: the table read back; of each row, all token counts are equal or the word is gone."""
    models = [f"hf:{folder / name}" for name in ("gpt2", "bert")]
    named = [option for model in models for option in ("--model", model)]
    table = ("--table", str(folder / "tokens.csv"))
    paths = ("--text", folder / "text.txt", "--out", folder / "out.txt", *table)
    invoke("vocabulary --min-count 1 --same-token-count --every-word --quiet", *named, *paths)
    kept = Vocabulary.load(folder / "out.txt")
    rows = read_csv_rows(folder / "tokens.csv")
    assert {row["word"] for row in rows} >= {"teacher", "hospitals", "Unbelievably"}
    for row in rows:
        words = kept.initial if row["place"] == "initial" else kept.inner
        assert (row["word"] in words) == (row[models[0]] == row[models[1]] != "0")
    record = json.loads((folder / "out.txt.meta.json").read_text(encoding="utf-8"))
    assert record["options"]["same_token_count"] is True
    assert set(record["known"]) == set(record["models"]) == set(models)
