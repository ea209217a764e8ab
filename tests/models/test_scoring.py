from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
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


class RecordingModel(NgramModel):
    """Records the scored sentences; can fail after some of them, like a killed run."""

    scored: list[Sentence]
    max_sentences = 10**9

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        if len(self.scored) + len(sentences) > self.max_sentences:
            raise KeyboardInterrupt
        self.scored.extend(sentences)
        return super().log_probs(sentences)


@pytest.fixture
def model(trained: Path) -> RecordingModel:
    model = RecordingModel(trained / "2gram.arpa", name="2-gram")
    model.scored = []
    return model


def make_sentences(n: int) -> list[Sentence]:
    return [Sentence.parse(f"She saw {i} dogs") for i in range(n)]


def test_rows_follow_the_sentences_and_repeats_are_scored_once(model: RecordingModel) -> None:
    """Witness: KenLM one by one."""
    repeated_sentences = make_sentences(5) + make_sentences(3)
    table = scoring.score_sentences([model], repeated_sentences)
    assert len(model.scored) == 5
    assert table.sentences == tuple(repeated_sentences)
    expected = [NgramModel(model.path).log_probs([s])[0] for s in repeated_sentences]
    assert table.column("2-gram").tolist() == expected
    texts = scoring.score_sentences([model], [sentence.text for sentence in repeated_sentences])
    assert (texts.sentences, texts.column("2-gram").tolist()) == (table.sentences, expected)


def test_interrupted_runs_score_no_sentence_twice(model: RecordingModel, tmp_path: Path) -> None:
    all_sentences = make_sentences(7_000)
    model.max_sentences = 5_000
    with Store(tmp_path / "s.sqlite") as store, pytest.raises(KeyboardInterrupt):
        scoring.score_sentences([model], all_sentences, store=store)
    n_before = len(model.scored)
    assert 0 < n_before <= 5_000
    model.max_sentences = 10**9
    progress_steps: list[int] = []
    with Store(tmp_path / "s.sqlite") as store:
        table = scoring.score_sentences(
            [model], all_sentences, store=store, progress=lambda _m, n: progress_steps.append(n)
        )
    assert sorted(model.scored, key=lambda s: int(s.words[2])) == all_sentences
    assert progress_steps[0] == n_before
    assert sum(progress_steps) == len(all_sentences)
    uninterrupted = scoring.score_sentences([NgramModel(model.path, name="2-gram")], all_sentences)
    np.testing.assert_array_equal(table.log_probs, uninterrupted.log_probs)


def test_models_share_no_scores(bigram: NgramModel, trigram: NgramModel, tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        first = scoring.score_sentences([bigram], make_sentences(3), store=store).log_probs
        second = scoring.score_sentences([trigram], make_sentences(3), store=store).log_probs
    assert (first != second).all()


def test_nan_is_refused_and_not_stored(
    model: RecordingModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(model, "log_probs", lambda batch: np.full(len(batch), np.nan))
    with Store(tmp_path / "s.sqlite") as store:
        with pytest.raises(ScoreError, match="nan"):
            scoring.score_sentences([model], make_sentences(3), store=store)
        stored = store.log_probs(model.convention.fingerprint, ["She saw 0 dogs."])
    assert np.isnan(stored).all()


def test_continuations_are_scored_from_their_starts(
    bigram: NgramModel, trigram: NgramModel, tmp_path: Path
) -> None:
    """Witness: each model and continuation separately, without a store."""
    items = [Continuation(sentence, start) for sentence in make_sentences(3) for start in (2, 3, 2)]
    models = [bigram, trigram]
    expected = [[model.continuation_log_probs([i])[0] for model in models] for i in items]
    with Store(tmp_path / "s.sqlite") as store:
        for _ in range(2):
            assert scoring.score_continuations(models, items, store=store).tolist() == expected
        sentences = [continuation.sentence for continuation in items]
        full_scores = scoring.score_sentences(models, sentences, store=store)
    assert (full_scores.log_probs < np.array(expected)).all()
    assert scoring.score_continuations([], items).shape == (9, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_infinite_or_nan_continuation_is_refused(
    bigram: NgramModel, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    monkeypatch.setattr(bigram, "continuation_log_probs", lambda batch: np.full(len(batch), value))
    message = rf"'She saw \| 0 dogs' under 2-gram is not a number \({value}\)"
    with pytest.raises(ScoreError, match=message):
        scoring.score_continuations([bigram], [Continuation(make_sentences(1)[0], 2)])


def test_sums_terms_and_errors_equal_those_of_the_models(
    trained: Path, english: list[Sentence], unseen: list[Sentence], tmp_path: Path
) -> None:
    """Witness: KenLM called directly in this process."""
    names = [f"two=kenlm:{trained / '2gram.arpa'}", f"three=kenlm:{trained / '3gram.arpa'}"]
    scored_sentences = [*unseen[:5], english[0]]
    expected = [
        NgramModel(trained / f"{n}gram.arpa").log_probs(scored_sentences).tolist() for n in (2, 3)
    ]
    with Store(tmp_path / "scores.sqlite") as store:
        models = load_scorers(names)
        columns = scoring.score_each(models, scored_sentences, store=store).T
        sums = [
            scoring.ModelScores.of(model, column, scored_sentences, standard_errors=True)
            for model, column in zip(models, columns, strict=True)
        ]
    table = scoring.score_table(sums, scored_sentences)
    assert table.models == ("two", "three")
    np.testing.assert_array_equal(table.log_probs.T, expected)
    assert scoring.standard_error_table(sums, scored_sentences)["three"] == [0.0] * 6
    assert [model.n_sampled for model in sums] == [0, 0]
    contamination = sums[0].contamination
    assert contamination is not None
    assert len(contamination.hashes) == 1  # the last sentence is from the training text
    term_scores = [scoring.ModelScores.of(m, None, scored_sentences, terms=True) for m in models]
    terms_by_model = {model.name: model.terms or {} for model in term_scores}
    terms = pd.DataFrame(scoring.term_table(terms_by_model, scored_sentences))
    for name, scores in zip(("two", "three"), expected, strict=True):
        by_sentence = terms[terms["model"] == name].groupby("sentence", sort=False)
        assert by_sentence["log_prob"].sum().tolist() == pytest.approx(scores)


def test_frequencies_ignore_punctuation_and_other_languages() -> None:
    """Witness: the embedded table; a text in another language has no frequencies."""
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
