"""Scores from models and from tables of every kind."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import ScoreError
from contstim.evaluation.acceptability import AcceptabilitySettings, Judgements, read_judgements
from contstim.evaluation.judged_scores import JudgedScores, model_scores, published_scores
from contstim.items.scores import ScoreTable
from contstim.models.catalog import load_model
from contstim.models.ngram.adapter import NgramModel
from contstim.words.sentence import Sentence
from tests.evaluation.small_data import ITEMS, write

IDS = ("a1", "a2", "a3", "a4", "b1", "b2", "c1", "c2")


@pytest.fixture
def judgements(tmp_path: Path) -> Judgements:
    return read_judgements(write(tmp_path / "items.csv", ITEMS))


def select_columns(*columns: str) -> AcceptabilitySettings:
    return AcceptabilitySettings(column=columns)


def write_scores(path: Path, header: str, rows: list[str]) -> Path:
    return write(path, "\n".join([header, *rows, ""]))


def read_rows(judgements: Judgements, path: Path, header: str, rows: list[str]) -> JudgedScores:
    """Write a table of these rows, and read it."""
    return published_scores(judgements, write_scores(path, header, rows))


def test_unscorable_sentences_have_no_score(
    judgements: Judgements, trigram: NgramModel, tiny_checkpoint: Callable[[str], Path]
) -> None:
    long = Sentence.parse("the dog " * 100)
    values = np.append(judgements.values, 1.0)
    extended = Judgements({**judgements.sentences, "long": long}, values, judgements.pairs)
    models = [trigram, load_model(f"hf:{tiny_checkpoint('gpt2')}", device="cpu")]
    scores = model_scores(extended, models)
    texts = judgements.texts
    for column, model in enumerate(models):
        np.testing.assert_allclose(scores.values[:-1, column], model.log_probs(texts), atol=1e-4)
    assert np.isnan(scores.values[-1]).all()
    assert [(exclusion.sentence, exclusion.model) for exclusion in scores.left_out] == [
        (long.text, models[1].name)
    ]


def test_rows_are_matched_in_any_order(judgements: Judgements, tmp_path: Path) -> None:
    # The first cells of the column `notes` are numbers, the last ones are not
    numbered = reversed([*enumerate(IDS)])
    rows = [f"{i},{i if i > 3 else 'see i'},{name},1,{-i},{i}.5,{i}" for i, name in numbered]
    path = write_scores(tmp_path / "s.csv", "Unnamed: 0,notes,id,label,m,n,n_zscores", rows)
    scores = published_scores(judgements, path)
    assert scores.models == ("m", "n")
    assert scores.values[:, 0].tolist() == [-i for i in range(8)]
    assert published_scores(judgements, path, select_columns("n_zscores")).values[3, 0] == 3


def test_rows_are_matched_with_or_without_end_mark(judgements: Judgements, tmp_path: Path) -> None:
    texts = judgements.texts
    for name, attribute in (("bare.csv", "bare"), ("text.csv", "text")):
        rows = [f'"{getattr(text, attribute)}",{i}' for i, text in enumerate(texts)]
        scores = read_rows(judgements, tmp_path / name, "sentence,m", rows)
        assert scores.values[:, 0].tolist() == list(range(8))


def test_rows_without_identifiers_are_matched_by_sentence(tmp_path: Path) -> None:
    """The data has no identifiers; the table numbers its rows in another order."""
    lines = [line.partition(",")[2] for line in ITEMS.splitlines()]
    unnamed = read_judgements(write(tmp_path / "items.csv", "\n".join([*lines, ""])))
    texts = [sentence.bare for sentence in unnamed.texts]
    rows = [f"{i},{text},{len(text)}" for i, text in enumerate(reversed(texts))]
    scores = read_rows(unnamed, tmp_path / "s.csv", "id,sentence,m", rows)
    assert scores.values[:, 0].tolist() == [len(text) for text in texts]
    with pytest.raises(ScoreError, match="must have a column 'id' or 'sentence'"):
        read_rows(unnamed, tmp_path / "s.csv", "id,m", [f"{i},{i}" for i in range(8)])


def test_identifiers_of_other_sentences_are_refused(judgements: Judgements, tmp_path: Path) -> None:
    texts = [sentence.bare for sentence in judgements.texts]
    matching_rows = [f"{i},  {t.replace(' ', '  ')} .,1" for i, t in zip(IDS, texts, strict=True)]
    path = tmp_path / "s.csv"
    scores = read_rows(judgements, path, "id,sentence,m", [*matching_rows, "z9,Other,2"])
    assert scores.values.tolist() == [[1]] * 8
    assert read_rows(judgements, path, "id,sentence,m", [f"{i},,1" for i in IDS])
    rows = [f"{i},{t},1" for i, t in zip(IDS, [texts[0], *texts[:0:-1]], strict=True)]
    with pytest.raises(ScoreError, match=r"id 'a2' is 'What did he say that .* 'The dog sleep\.'"):
        read_rows(judgements, path, "id,sentence,m", rows)


def test_columns_about_sentences_are_not_models(judgements: Judgements, tmp_path: Path) -> None:
    columns = "index,Index,length,n_tokens,item,row,phenomenon,sent_length,judgement,label"
    rows = [f"{name},{','.join(['1'] * 10)},{i}" for i, name in enumerate(IDS)]
    path = write_scores(tmp_path / "s.csv", f"id,{columns},m", rows)
    assert published_scores(judgements, path).models == ("m",)
    selected = published_scores(judgements, path, select_columns("length", "label"))
    assert selected.models == ("length", "label")


def test_impossible_sentences_are_excluded(judgements: Judgements, tmp_path: Path) -> None:
    rows = [*(f"{name},{i}" for i, name in enumerate(IDS[:7])), "c2,-inf"]
    scores = read_rows(judgements, tmp_path / "s.csv", "id,m", rows)
    (exclusion,) = scores.left_out
    assert (exclusion.reason, exclusion.model) == ("its probability is zero", "m")
    assert exclusion.sentence == judgements.texts[7].text
    assert np.isnan(scores.values[:, 0]).tolist() == [False] * 7 + [True]
    with pytest.raises(ScoreError, match="row 7: 'inf' under m is not a score"):
        read_rows(judgements, tmp_path / "s.csv", "id,m", [*rows[:7], "c2,inf"])


def test_score_tables_of_every_kind_are_read(judgements: Judgements, tmp_path: Path) -> None:
    sentences = tuple(judgements.texts)
    scores = ScoreTable(sentences, ("m",), np.arange(8.0)[:, None])
    for ending in ("csv", "jsonl", "parquet", "npz"):
        scores.write(tmp_path / f"s.{ending}")
        judged_scores = published_scores(judgements, tmp_path / f"s.{ending}")
        assert judged_scores.values.tolist() == scores.log_probs.tolist()


def test_errors_in_tables_are_named(judgements: Judgements, tmp_path: Path) -> None:
    rows = [f"{name},{i}" for i, name in enumerate(IDS)]
    path = tmp_path / "s.csv"
    with pytest.raises(ScoreError, match="no columns 'z'; its columns are id, m"):
        published_scores(judgements, write_scores(path, "id,m", rows), select_columns("z"))
    for header, table_rows, message in (
        ("id,label", rows, "no columns of scores; its columns"),
        ("text,m", rows, "must have a column 'id' or 'sentence'"),
        ("id,m", [*rows, "a1,9"], "'a1' has two scores under m"),
        ("id,m", [*rows[:5], "b2,", *rows[6:7]], "lacks scores of 2 of 8 .*: 'Who did she wonder"),
    ):
        with pytest.raises(ScoreError, match=message):
            read_rows(judgements, path, header, table_rows)


def test_joined_scores_need_distinct_names() -> None:
    first = JudgedScores(("m",), np.zeros((2, 1)))
    second = JudgedScores(("n",), np.ones((2, 1)))
    assert JudgedScores.join([first, second]).values.tolist() == [[0, 1], [0, 1]]
    with pytest.raises(ScoreError, match="have the name m"):
        JudgedScores.join([first, first])
    with pytest.raises(ScoreError, match="no scores"):
        JudgedScores.join([])
