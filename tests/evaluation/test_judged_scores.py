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


def choose(*columns: str) -> AcceptabilitySettings:
    return AcceptabilitySettings(column=columns)


def table(path: Path, header: str, rows: list[str]) -> Path:
    return write(path, "\n".join([header, *rows, ""]))


def test_unreadable_rows_are_empty(
    judgements: Judgements, trigram: NgramModel, tiny_checkpoint: Callable[[str], Path]
) -> None:
    long = Sentence.parse("the dog " * 100)
    values = np.append(judgements.values, 1.0)
    more = Judgements({**judgements.sentences, "long": long}, values, judgements.pairs)
    models = [trigram, load_model(f"hf:{tiny_checkpoint('gpt2')}", device="cpu")]
    found = model_scores(more, models)
    texts = judgements.texts
    for column, model in enumerate(models):
        np.testing.assert_allclose(found.values[:-1, column], model.log_probs(texts), atol=1e-4)
    assert np.isnan(found.values[-1]).all()
    assert [(one.sentence, one.model) for one in found.left_out] == [(long.text, models[1].name)]


def test_rows_are_found_by_identifier_in_any_order(judgements: Judgements, tmp_path: Path) -> None:
    # Of the column `notes` the first cells are numbers, the last ones are not
    numbered = reversed([*enumerate(IDS)])
    rows = [f"{i},{i if i > 3 else 'see i'},{name},1,{-i},{i}.5,{i}" for i, name in numbered]
    path = table(tmp_path / "s.csv", "Unnamed: 0,notes,id,label,m,n,n_zscores", rows)
    found = published_scores(judgements, path)
    assert found.models == ("m", "n")
    assert found.values[:, 0].tolist() == [-i for i in range(8)]
    assert published_scores(judgements, path, choose("n_zscores")).values[3, 0] == 3


def test_rows_are_found_without_end_mark_too(judgements: Judgements, tmp_path: Path) -> None:
    texts = judgements.texts
    for name, texted in (("bare.csv", "bare"), ("text.csv", "text")):
        rows = [f'"{getattr(text, texted)}",{i}' for i, text in enumerate(texts)]
        found = published_scores(judgements, table(tmp_path / name, "sentence,m", rows))
        assert found.values[:, 0].tolist() == list(range(8))


def test_rows_without_identifiers_are_found_by_sentence(tmp_path: Path) -> None:
    """The data has no identifiers; the table numbers its rows, in another order."""
    lines = [line.partition(",")[2] for line in ITEMS.splitlines()]
    unnamed = read_judgements(write(tmp_path / "items.csv", "\n".join([*lines, ""])))
    texts = [one.bare for one in unnamed.texts]
    rows = [f"{i},{text},{len(text)}" for i, text in enumerate(reversed(texts))]
    found = published_scores(unnamed, table(tmp_path / "s.csv", "id,sentence,m", rows))
    assert found.values[:, 0].tolist() == [len(text) for text in texts]
    with pytest.raises(ScoreError, match="must have a column 'id' or 'sentence'"):
        published_scores(unnamed, table(tmp_path / "s.csv", "id,m", [f"{i},{i}" for i in range(8)]))


def test_identifiers_of_other_sentences_are_refused(judgements: Judgements, tmp_path: Path) -> None:
    texts = [one.bare for one in judgements.texts]
    same = [f"{i},  {t.replace(' ', '  ')} .,1" for i, t in zip(IDS, texts, strict=True)]
    path = tmp_path / "s.csv"
    found = published_scores(judgements, table(path, "id,sentence,m", [*same, "z9,Other,2"]))
    assert found.values.tolist() == [[1]] * 8
    assert published_scores(judgements, table(path, "id,sentence,m", [f"{i},,1" for i in IDS]))
    rows = [f"{i},{t},1" for i, t in zip(IDS, [texts[0], *texts[:0:-1]], strict=True)]
    with pytest.raises(ScoreError, match=r"id 'a2' is 'What did he say that .* 'The dog sleep\.'"):
        published_scores(judgements, table(path, "id,sentence,m", rows))


def test_columns_about_sentences_are_no_models(judgements: Judgements, tmp_path: Path) -> None:
    about = "index,Index,length,n_tokens,item,row,phenomenon,sent_length,judgement,label"
    rows = [f"{name},{','.join(['1'] * 10)},{i}" for i, name in enumerate(IDS)]
    path = table(tmp_path / "s.csv", f"id,{about},m", rows)
    assert published_scores(judgements, path).models == ("m",)
    named = published_scores(judgements, path, choose("length", "label"))
    assert named.models == ("length", "label")


def test_a_probability_of_zero_is_left_out_as_such(judgements: Judgements, tmp_path: Path) -> None:
    rows = [*(f"{name},{i}" for i, name in enumerate(IDS[:7])), "c2,-inf"]
    found = published_scores(judgements, table(tmp_path / "s.csv", "id,m", rows))
    (left_out,) = found.left_out
    assert (left_out.reason, left_out.model) == ("its probability is zero", "m")
    assert left_out.sentence == judgements.texts[7].text
    assert np.isnan(found.values[:, 0]).tolist() == [False] * 7 + [True]
    with pytest.raises(ScoreError, match="row 7: 'inf' under m is not a score"):
        published_scores(judgements, table(tmp_path / "s.csv", "id,m", [*rows[:7], "c2,inf"]))


def test_score_tables_of_every_kind_are_read(judgements: Judgements, tmp_path: Path) -> None:
    sentences = tuple(judgements.texts)
    scores = ScoreTable(sentences, ("m",), np.arange(8.0)[:, None])
    for kind in ("csv", "jsonl", "parquet", "npz"):
        scores.write(tmp_path / f"s.{kind}")
        found = published_scores(judgements, tmp_path / f"s.{kind}")
        assert found.values.tolist() == scores.log_probs.tolist()


def test_bad_tables_say_what_is_wrong(judgements: Judgements, tmp_path: Path) -> None:
    good = [f"{name},{i}" for i, name in enumerate(IDS)]
    path = tmp_path / "s.csv"
    with pytest.raises(ScoreError, match="no columns 'z'; its columns are id, m"):
        published_scores(judgements, table(path, "id,m", good), choose("z"))
    with pytest.raises(ScoreError, match="no columns of scores; its columns"):
        published_scores(judgements, table(path, "id,label", good))
    with pytest.raises(ScoreError, match="'a1' has two scores under m"):
        published_scores(judgements, table(path, "id,m", [*good, "a1,9"]))
    with pytest.raises(ScoreError, match=r"lacks scores of 2 of 8 sentences: 'Who did she wonder"):
        published_scores(judgements, table(path, "id,m", [*good[:5], "b2,", *good[6:7]]))
    with pytest.raises(ScoreError, match="must have a column 'id' or 'sentence'"):
        published_scores(judgements, table(path, "text,m", good))


def test_joined_scores_have_distinct_names() -> None:
    one = JudgedScores(("m",), np.zeros((2, 1)))
    other = JudgedScores(("n",), np.ones((2, 1)))
    assert JudgedScores.join([one, other]).values.tolist() == [[0, 1], [0, 1]]
    with pytest.raises(ScoreError, match="have the name m"):
        JudgedScores.join([one, one])
    with pytest.raises(ScoreError, match="no scores"):
        JudgedScores.join([])
