from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from contstim.english.words import english_tags
from contstim.errors import ScoreError
from contstim.files.arrays import FloatArray
from contstim.models import scoring
from contstim.models.base import Continuation, TokenScore
from contstim.models.catalog import load_scorers
from contstim.models.ngram.adapter import NgramModel
from contstim.store import Store
from contstim.words.sentence import Sentence


class Counting(NgramModel):
    """Remembers what it was asked; fails after some sentences, as a killed run does."""

    asked: list[Sentence]
    patience = 10**9

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        if len(self.asked) + len(sentences) > self.patience:
            raise KeyboardInterrupt
        self.asked.extend(sentences)
        return super().log_probs(sentences)


@pytest.fixture
def model(trained: Path) -> Counting:
    model = Counting(trained / "2gram.arpa", name="2-gram")
    model.asked = []
    return model


def sentences(n: int) -> list[Sentence]:
    return [Sentence.parse(f"She saw {i} dogs") for i in range(n)]


def test_rows_follow_the_sentences_and_repeated_ones_are_scored_once(model: Counting) -> None:
    """Witness: KenLM one by one."""
    given = sentences(5) + sentences(3)
    table = scoring.score_sentences([model], given)
    assert len(model.asked) == 5
    assert table.sentences == tuple(given)
    alone = [NgramModel(model.path).log_probs([s])[0] for s in given]
    assert table.column("2-gram").tolist() == alone
    texts = scoring.score_sentences([model], [sentence.text for sentence in given])
    assert (texts.sentences, texts.column("2-gram").tolist()) == (table.sentences, alone)


def test_interrupted_runs_score_nothing_twice(model: Counting, tmp_path: Path) -> None:
    given = sentences(7_000)
    model.patience = 5_000
    with Store(tmp_path / "s.sqlite") as store, pytest.raises(KeyboardInterrupt):
        scoring.score_sentences([model], given, store=store)
    before = len(model.asked)
    assert 0 < before <= 5_000
    model.patience = 10**9
    told: list[int] = []
    with Store(tmp_path / "s.sqlite") as store:
        table = scoring.score_sentences(
            [model], given, store=store, progress=lambda _m, n: told.append(n)
        )
    assert sorted(model.asked, key=lambda s: int(s.words[2])) == given
    assert told[0] == before
    assert sum(told) == len(given)
    fresh = scoring.score_sentences([NgramModel(model.path, name="2-gram")], given)
    np.testing.assert_array_equal(table.log_probs, fresh.log_probs)


def test_models_share_no_scores(bigram: NgramModel, trigram: NgramModel, tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        first = scoring.score_sentences([bigram], sentences(3), store=store).log_probs
        second = scoring.score_sentences([trigram], sentences(3), store=store).log_probs
    assert (first != second).all()


def test_a_nan_is_refused_and_not_kept(
    model: Counting, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(model, "log_probs", lambda asked: np.full(len(asked), np.nan))
    with Store(tmp_path / "s.sqlite") as store:
        with pytest.raises(ScoreError, match="nan"):
            scoring.score_sentences([model], sentences(3), store=store)
        kept = store.log_probs(model.convention.fingerprint, ["She saw 0 dogs."])
    assert np.isnan(kept).all()


def test_continuations_have_starts(bigram: NgramModel, trigram: NgramModel, tmp_path: Path) -> None:
    """Witness: each model one by one, without a store."""
    given = [Continuation(sentence, start) for sentence in sentences(3) for start in (2, 3, 2)]
    models = [bigram, trigram]
    alone = [[model.continuation_log_probs([one])[0] for model in models] for one in given]
    with Store(tmp_path / "s.sqlite") as store:
        for _ in range(2):
            assert scoring.score_continuations(models, given, store=store).tolist() == alone
        whole = scoring.score_sentences(models, [one.sentence for one in given], store=store)
    assert (whole.log_probs < np.array(alone)).all()
    assert scoring.score_continuations([], given).shape == (9, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_continuation_without_a_number_is_refused(
    bigram: NgramModel, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    monkeypatch.setattr(bigram, "continuation_log_probs", lambda asked: np.full(len(asked), value))
    told = rf"'She saw \| 0 dogs' under 2-gram is not a number \({value}\)"
    with pytest.raises(ScoreError, match=told):
        scoring.score_continuations([bigram], [Continuation(sentences(1)[0], 2)])


def test_sums_terms_and_errors_are_those_of_the_models(
    trained: Path, english: list[Sentence], unseen: list[Sentence], tmp_path: Path
) -> None:
    """Witness: KenLM asked directly, in this process."""
    names = [f"two=kenlm:{trained / '2gram.arpa'}", f"three=kenlm:{trained / '3gram.arpa'}"]
    sentences = [*unseen[:5], english[0]]
    expected = [NgramModel(trained / f"{n}gram.arpa").log_probs(sentences).tolist() for n in (2, 3)]
    with Store(tmp_path / "scores.sqlite") as store:
        models = load_scorers(names)
        columns = scoring.score_each(models, sentences, store=store).T
        sums = [
            scoring.ModelScores.of(model, column, sentences, standard_errors=True)
            for model, column in zip(models, columns, strict=True)
        ]
    table = scoring.score_table(sums, sentences)
    assert table.models == ("two", "three")
    np.testing.assert_array_equal(table.log_probs.T, expected)
    assert scoring.standard_error_table(sums, sentences)["three"] == [0.0] * 6
    assert [model.n_sampled for model in sums] == [0, 0]
    seen = sums[0].contamination
    assert seen is not None
    assert len(seen.hashes) == 1  # the last sentence is of the training text
    scored = [scoring.ModelScores.of(model, None, sentences, terms=True) for model in models]
    terms = scoring.term_table({model.name: model.terms or {} for model in scored}, sentences)
    for name, scores in zip(("two", "three"), expected, strict=True):
        rows = [i for i, model in enumerate(terms["model"]) if model == name]
        by_sentence: dict[str, float] = {}
        for i in rows:
            text = terms["sentence"][i]
            by_sentence[text] = by_sentence.get(text, 0.0) + terms["log_prob"][i]
        assert list(by_sentence.values()) == pytest.approx(scores)


def test_frequencies_are_of_english_words_without_punctuation() -> None:
    """Witness: the embedded table; a text of another language has none."""
    columns = []
    for text in ("The dog, (small) sleeps.", "Der kleine Hund schläft."):
        sentence = Sentence.parse(text)
        terms = [TokenScore(i, word, -1.0) for i, word in enumerate(sentence.words)]
        terms += [TokenScore(-1, ".", -1.0)]
        table = scoring.term_table({"m": {sentence: terms}}, [sentence])
        columns.append(table["frequency"])
    zipf = english_tags().frequencies.zipf
    assert columns[0] == [*map(zipf, ("the", "dog", "small", "sleeps")), None]
    assert columns[1] == [None] * 5
    assert table["entropy"] == [None] * 5
