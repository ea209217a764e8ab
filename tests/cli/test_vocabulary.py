"""`contstim vocabulary` with models: the accepted words and the table about them."""

import json
from pathlib import Path

import pytest

from contstim.testing.platform import read_csv_rows
from contstim.words.vocabulary import Vocabulary
from tests.cli.running import invoke
from tests.models import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    text = "The teacher sees hospitals\nShe sees the dog\nUnbelievably the dog sees her\n" * 3
    (folder / "text.txt").write_text(text, encoding="utf-8")
    tiny.train_ngrams(2, folder / "bigram.arpa")
    for name in ("gpt2", "bert"):
        tiny.build(name, folder)
    return folder


def test_only_words_with_equal_token_counts_are_accepted(folder: Path) -> None:
    """Witness: the table; a word is accepted only if all its token counts are equal."""
    models = [f"hf:{folder / name}" for name in ("gpt2", "bert")]
    model_options = [option for model in models for option in ("--model", model)]
    table = ("--table", str(folder / "tokens.csv"))
    paths = ("--text", folder / "text.txt", "--out", folder / "out.txt", *table)
    invoke(
        "vocabulary --min-count 1 --same-token-count --every-word --quiet", *model_options, *paths
    )
    vocabulary = Vocabulary.load(folder / "out.txt")
    rows = read_csv_rows(folder / "tokens.csv")
    assert {row["word"] for row in rows} >= {"teacher", "hospitals", "Unbelievably"}
    for row in rows:
        words = vocabulary.initial if row["place"] == "initial" else vocabulary.inner
        assert (row["word"] in words) == (row[models[0]] == row[models[1]] != "0")
    record = json.loads((folder / "out.txt.meta.json").read_text(encoding="utf-8"))
    assert record["options"]["same_token_count"] is True
    assert set(record["known"]) == set(record["models"]) == set(models)
