"""Sentences, and both sides of pairs, under models."""

import math
from collections.abc import Callable
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
    """Witness: the kenlm package's conditional probabilities, added up by hand."""
    kenlm = pytest.importorskip("kenlm")
    theirs = kenlm.Model(str(trigram.path))

    def log_prob(words: str, start: int = 0, *, end: bool = False) -> float:
        terms = [term[0] for term in theirs.full_scores(words, eos=end)]
        return float(sum(terms[start:])) * math.log(10)

    found = score_pairs([trigram], pairs, list(Method))
    full, one, two = (comparison.log_probs[:, :, 0] for comparison in found.by_method)
    expected = [[log_prob(s.bare, end=True) for s in (p.good, p.bad)] for p in pairs]
    np.testing.assert_allclose(full, expected, rtol=1e-6)
    prefix = [("The dog", "sleeps", "sleep"), ("The dogs", "sleep", "sleeps")]
    expected = [[log_prob(f"{before} {w}", 2) for w in words] for before, *words in prefix]
    np.testing.assert_allclose(one[:2], expected, rtol=1e-6)
    words = [("The dog", "The dogs", "sleeps"), ("The women", "The woman", "read")]
    expected = [[log_prob(f"{p} {word}", 2) for p in before] for *before, word in words]
    np.testing.assert_allclose(two, expected, rtol=1e-6)
    assert [s.identical for s in found.by_method] == [[pairs[2]], [pairs[2]], []]
    assert one[2, 0] == one[2, 1] == pytest.approx(log_prob("The cat is here", 2), rel=1e-6)


def test_scores_of_prefixes_are_not_read_as_those_of_sentences(tmp_path: Path) -> None:
    pair = MinimalPair("x", "0", Sentence(("It", "is")), Sentence(("It", "are")), "p")
    for method in Method:
        found = PairScores((pair,), ("m",), np.array([[[-1.0], [-2.0]]]), method=method)
        found.write(tmp_path / "pairs.csv")
        if method is Method.FULL_SENTENCE:
            assert (PairScores.from_file(tmp_path / "pairs.csv").log_probs == found.log_probs).all()
        else:
            with pytest.raises(InputError, match="no pair of sentences"):
                PairScores.from_file(tmp_path / "pairs.csv")


def test_models_that_do_not_read_on_say_so_and_are_left_out(
    trigram: NgramModel, pairs: list[MinimalPair], tiny_checkpoint: Callable[[str], Path]
) -> None:
    bert = load_model(f"hf:{tiny_checkpoint('bert')}@pll-original", device="cpu")
    found = score_pairs([bert, trigram], pairs, list(Method))
    assert [one.models for one in found.by_method] == [
        (bert.name, trigram.name),
        (trigram.name,),
        (trigram.name,),
    ]
    assert list(found.refusals) == [(bert.name, Method.ONE_PREFIX), (bert.name, Method.TWO_PREFIX)]
    assert all("only the words before" in reason for reason in found.refusals.values())
    with pytest.raises(InputError, match=r"No pair could be compared\. .*only the words before"):
        score_pairs([bert], pairs, [Method.ONE_PREFIX])


def test_pairs_that_exceed_a_window_are_left_out_for_all_and_counted(
    trigram: NgramModel, pairs: list[MinimalPair], tiny_checkpoint: Callable[[str], Path]
) -> None:
    gpt2 = load_model(f"hf:{tiny_checkpoint('gpt2')}", device="cpu")
    long = Sentence(("dog",) * 300)
    both = (Continuation(long, 299), Continuation(long, 298))
    odd = MinimalPair("agreement_1", "long", long, pairs[0].bad, "agreement", one_prefix=both)
    found = score_pairs([trigram, gpt2], [odd, *pairs], list(Method))
    full, one, two = found.by_method
    assert full.pairs == tuple(pairs)
    assert full.unread == one.unread == {"agreement_1": 1}
    assert not two.unread
    assert odd not in one.pairs
    (left_out,) = found.left_out
    assert (left_out.sentence, left_out.model) == (long.text, gpt2.name)


def test_scores_may_come_from_a_table_that_lacks_nothing(pairs: list[MinimalPair]) -> None:
    texts = sorted({side.text for pair in pairs for side in (pair.good, pair.bad)})
    table = ScoreTable(
        tuple(map(Sentence.parse, texts)), ("m",), np.arange(float(len(texts)))[:, None] - 99
    )
    (found,) = pair_scores_from_table(table, pairs).by_method
    for pair, (good, bad) in zip(pairs, found.log_probs[:, :, 0], strict=True):
        assert (good, bad) == (texts.index(pair.good.text) - 99, texts.index(pair.bad.text) - 99)
    with pytest.raises(InputError, match="Use models for other methods"):
        pair_scores_from_table(table, pairs, [Method.ONE_PREFIX])
    lacking = ScoreTable(
        table.sentences[:-1] if table.sentences else None, ("m",), table.log_probs[:-1]
    )
    with pytest.raises(ScoreError, match=rf"lack 1 of {len(texts)} sentences: '{texts[-1][:-1]}"):
        pair_scores_from_table(lacking, pairs)


def test_a_tie_is_wrong_or_half_right_and_rounding_makes_one() -> None:
    """Witness: by hand, and the same terms added in another order, in single precision."""
    terms = np.array([-3.1234567, -0.7654321, -12.345678, -0.1111111, -7.7777777], np.float32)
    there, back = (float(np.add.accumulate(one)[-1]) for one in (terms, terms[::-1]))
    assert there != back
    sides = [[there, back], [-40.0, -40.0004], [-np.inf, -np.inf], [-5, -np.inf]]
    sides += [[-30, -29], [-3, -3]]
    one, other = Sentence(("a",)), Sentence(("b",))
    pairs = tuple(MinimalPair("p", str(i), one, other, "q") for i in range(len(sides)))
    found = PairScores(pairs, ("m",), np.array(sides)[:, :, None])
    assert found.ties[:, 0].tolist() == [True, False, True, False, False, True]
    assert found.correct("half")[:, 0].tolist() == [0.5, 1, 0.5, 1, 0, 0.5]
    assert found.correct()[:, 0].tolist() == [0, 1, 0, 1, 0, 0]
    assert found.margins[:, 0].tolist() == pytest.approx([0, 0.0004, 0, np.inf, -1, 0])
    assert not found.identical
