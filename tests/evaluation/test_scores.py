"""Scores of sentences and of both sides of pairs."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError, ScoreError
from contstim.evaluation.minimal_pairs import Method, MinimalPair, pair_files, read_minimal_pairs
from contstim.evaluation.scores import PairScores, pair_scores_from_table, score_pairs
from contstim.items.scores import ScoreTable
from contstim.models.base import Continuation
from contstim.models.catalog import load_model
from contstim.models.ngram.adapter import NgramModel
from contstim.words.sentence import Sentence
from tests.evaluation.small_data import write_folder


@pytest.fixture
def pairs(tmp_path: Path) -> list[MinimalPair]:
    return read_minimal_pairs(pair_files(write_folder(tmp_path / "pairs")))


def test_scores_of_all_methods_are_kenlms(trigram: NgramModel, pairs: list[MinimalPair]) -> None:
    """Witness: the kenlm package's conditional probabilities, added by hand."""
    kenlm = pytest.importorskip("kenlm")
    kenlm_model = kenlm.Model(str(trigram.path))

    def log_prob(words: str, start: int = 0, *, end: bool = False) -> float:
        terms = [term[0] for term in kenlm_model.full_scores(words, eos=end)]
        return float(sum(terms[start:])) * math.log(10)

    scores = score_pairs([trigram], pairs, list(Method))
    full, one_prefix, two_prefix = (part.log_probs[:, :, 0] for part in scores.by_method)
    expected = [[log_prob(s.bare, end=True) for s in (p.good, p.bad)] for p in pairs]
    np.testing.assert_allclose(full, expected, rtol=1e-6)
    prefix = [("The dog", "sleeps", "sleep"), ("The dogs", "sleep", "sleeps")]
    expected = [[log_prob(f"{opening} {w}", 2) for w in words] for opening, *words in prefix]
    np.testing.assert_allclose(one_prefix[:2], expected, rtol=1e-6)
    words = [("The dog", "The dogs", "sleeps"), ("The women", "The woman", "read")]
    expected = [[log_prob(f"{p} {word}", 2) for p in prefixes] for *prefixes, word in words]
    np.testing.assert_allclose(two_prefix, expected, rtol=1e-6)
    assert [s.identical for s in scores.by_method] == [[pairs[2]], [pairs[2]], []]
    equal_score = pytest.approx(log_prob("The cat is here", 2), rel=1e-6)
    assert one_prefix[2].tolist() == [equal_score, equal_score]


def test_prefix_scores_are_not_read_as_sentence_scores(tmp_path: Path) -> None:
    pair = MinimalPair("x", "0", Sentence(("It", "is")), Sentence(("It", "are")), "p")
    for method in Method:
        scores = PairScores((pair,), ("m",), np.array([[[-1.0], [-2.0]]]), method=method)
        scores.write(tmp_path / "pairs.csv")
        if method is Method.FULL_SENTENCE:
            loaded = PairScores.from_file(tmp_path / "pairs.csv")
            assert (loaded.log_probs == scores.log_probs).all()
        else:
            with pytest.raises(InputError, match="no pair of sentences"):
                PairScores.from_file(tmp_path / "pairs.csv")


def test_masked_models_are_excluded_from_prefix_methods(
    trigram: NgramModel, pairs: list[MinimalPair], tiny_checkpoint: Callable[[str], Path]
) -> None:
    bert = load_model(f"hf:{tiny_checkpoint('bert')}@pll-original", device="cpu")
    scores = score_pairs([bert, trigram], pairs, list(Method))
    assert [part.models for part in scores.by_method] == [
        (bert.name, trigram.name),
        (trigram.name,),
        (trigram.name,),
    ]
    assert list(scores.refusals) == [(bert.name, Method.ONE_PREFIX), (bert.name, Method.TWO_PREFIX)]
    assert all("only the words before" in reason for reason in scores.refusals.values())
    with pytest.raises(InputError, match=r"No pair could be compared\. .*only the words before"):
        score_pairs([bert], pairs, [Method.ONE_PREFIX])


def test_pairs_longer_than_a_window_are_excluded_and_counted(
    trigram: NgramModel, pairs: list[MinimalPair], tiny_checkpoint: Callable[[str], Path]
) -> None:
    gpt2 = load_model(f"hf:{tiny_checkpoint('gpt2')}", device="cpu")
    long = Sentence(("dog",) * 300)
    sides = (Continuation(long, 299), Continuation(long, 298))
    long_pair = replace(pairs[0], pair_id="long", good=long, one_prefix=sides)
    scores = score_pairs([trigram, gpt2], [long_pair, *pairs], list(Method))
    full_sentence, one_prefix, two_prefix = scores.by_method
    assert full_sentence.pairs == tuple(pairs)
    assert full_sentence.unread == one_prefix.unread == {"agreement_1": 1}
    assert not two_prefix.unread
    assert long_pair not in one_prefix.pairs
    (exclusion,) = scores.left_out
    assert (exclusion.sentence, exclusion.model) == (long.text, gpt2.name)


def test_tables_must_score_all_sentences(pairs: list[MinimalPair]) -> None:
    texts = sorted({side.text for pair in pairs for side in (pair.good, pair.bad)})
    sentences = tuple(map(Sentence.parse, texts))
    table = ScoreTable(sentences, ("m",), np.arange(float(len(texts)))[:, None] - 99)
    (scores,) = pair_scores_from_table(table, pairs).by_method
    for pair, (good, bad) in zip(pairs, scores.log_probs[:, :, 0], strict=True):
        assert (good, bad) == (texts.index(pair.good.text) - 99, texts.index(pair.bad.text) - 99)
    with pytest.raises(InputError, match="Use models for other methods"):
        pair_scores_from_table(table, pairs, [Method.ONE_PREFIX])
    incomplete_table = ScoreTable(sentences[:-1], ("m",), table.log_probs[:-1])
    with pytest.raises(ScoreError, match=rf"lack 1 of {len(texts)} sentences: '{texts[-1][:-1]}"):
        pair_scores_from_table(incomplete_table, pairs)


def test_ties_include_rounding_errors_and_count_zero_or_half() -> None:
    """Witness: by hand, and the same terms added in another order in single precision."""
    terms = np.array([-3.1234567, -0.7654321, -12.345678, -0.1111111, -7.7777777], np.float32)
    forward, backward = (float(np.add.accumulate(values)[-1]) for values in (terms, terms[::-1]))
    assert forward != backward
    sides = [[forward, backward], [-40.0, -40.0004], [-np.inf, -np.inf], [-5, -np.inf]]
    sides += [[-30, -29], [-3, -3]]
    good, bad = Sentence(("a",)), Sentence(("b",))
    pairs = tuple(MinimalPair("p", str(i), good, bad, "q") for i in range(len(sides)))
    scores = PairScores(pairs, ("m",), np.array(sides)[:, :, None])
    assert scores.ties[:, 0].tolist() == [True, False, True, False, False, True]
    assert scores.correct("half")[:, 0].tolist() == [0.5, 1, 0.5, 1, 0, 0.5]
    assert scores.correct()[:, 0].tolist() == [0, 1, 0, 1, 0, 0]
    assert scores.margins[:, 0].tolist() == pytest.approx([0, 0.0004, 0, np.inf, -1, 0])
    assert not scores.identical
