import sys
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import VocabularyError
from contstim.models.base import Continuation, LanguageModel, Scorer
from contstim.models.catalog import load_model, load_scorer
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.training import train_ngram
from contstim.models.recurrent.network import Kind
from contstim.models.transforms import tell_unknown_words
from contstim.models.vocabularies import WordList, default_vocabulary, shared_vocabulary
from contstim.reporter import Reporter
from contstim.testing.contract import LanguageModelContract
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.models import tiny
from tests.models.recurrent.conftest import build
from tests.models.tiny import Folder

ARPA = Path(__file__).parent / "ngram" / "dialects" / "43-full-stop-is-a-word.arpa"
SENTENCES = [Sentence.parse("the dog sleeps ."), Sentence.parse("the dog runs .")]
EXPECTED = (-1.8651, -5.5492)  # nats, by the kenlm package with the full stop as a word
WORDS = ("the", "dog", "sleeps", "runs")


@pytest.fixture
def other(tmp_path: Path) -> NgramModel:
    """A model that has seen only a few words, each ten times."""
    text = [Sentence.parse(t) for t in ("The dog sees the woman", "She sees a small dog")] * 10
    with pytest.warns(UserWarning, match="too small"):
        train_ngram(text, 2, tmp_path / "other.arpa")
    return NgramModel(tmp_path / "other.arpa", name="other")


def test_words_unknown_to_one_model_are_dropped(bigram: NgramModel, other: NgramModel) -> None:
    words = Vocabulary(("The", "Every"), ("dog", "zyzzyva", "woman", "house"))
    kept, dropped = shared_vocabulary([bigram, other], words)
    assert (kept.initial, kept.inner) == (("The",), ("dog", "woman"))
    assert dropped == ("Every", "zyzzyva", "house")


def test_a_vocabulary_left_without_a_first_word_is_refused(other: NgramModel) -> None:
    with pytest.raises(VocabularyError, match="start a sentence"):
        shared_vocabulary([other], Vocabulary(("Every",), ("dog",)))


def test_by_default_words_frequent_in_all_texts(bigram: NgramModel, other: NgramModel) -> None:
    """Witness: set intersection of the models' own vocabularies."""
    found = default_vocabulary([bigram, other])
    ours, theirs = bigram.vocabulary(5), other.vocabulary(5)
    assert set(found.inner) == set(ours.inner) & set(theirs.inner)
    assert set(found.initial) == set(ours.initial) & set(theirs.initial)


@pytest.mark.parametrize("as_arrays", [True, False])
def test_either_apostrophe_is_known_where_a_model_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_arrays: bool
) -> None:
    """Witness: the same sentence as the training text spells it; with KenLM and without."""
    if as_arrays:
        monkeypatch.setitem(sys.modules, "kenlm", None)
    else:
        pytest.importorskip("kenlm")
    spellings = ("They don't see the café", "They can’t see the café", "They won't", "They won’t")
    with pytest.warns(UserWarning, match="too small"):
        train_ngram([*map(Sentence.parse, spellings)], 2, tmp_path / "m.arpa")
    model = NgramModel(tmp_path / "m.arpa")
    texts = ("They don’t see", "They don't see", "They can't see", "They can’t see")
    curly, straight, other, same = model.log_probs([*map(Sentence.parse, texts)])
    assert (curly, other) == (straight, same)
    assert model.knows(("don’t", "can't", "shan’t")).tolist() == [True, True, False]
    sentence = Sentence.parse("They won't see")
    exact = model.replacement_log_probs(sentence, 1, ("don’t", "don't", "won’t", "won't"))
    assert exact[0] == exact[1]
    rewritten = [sentence.replace(1, word) for word in ("don’t", "don't", "won’t", "won't")]
    assert exact == pytest.approx(model.log_probs(rewritten), abs=1e-6)


def test_words_of_networks_are_found_in_other_spellings() -> None:
    """By hand; a word that the list has in both spellings keeps both numbers."""
    words = WordList(("don't", "can’t", "won't", "won’t", "cafe\u0301"), (0,) * 5, (1,) * 5)
    asked = ("don’t", "can't", "won't", "won’t", "café", "shan't")
    assert words.numbers(asked).tolist() == [2, 3, 4, 5, 6, 1]


def test_without_word_level_models_the_embedded_lexicon() -> None:
    found = default_vocabulary([])
    assert len(found.words) > 1_200
    assert {"The", "Dogs"} <= set(found.initial)
    assert "the" in found.repeatable


@pytest.fixture
def tokenizers(tiny_checkpoint: Folder) -> list[LanguageModel]:
    names = ("bert@pll-original", "gpt2")
    return [load_model(tiny.specification(tiny_checkpoint, name), device="cpu") for name in names]


def n_tokens(model: LanguageModel, words: str, position: int) -> int:
    """Witness: the tokens that the score of the whole sentence is a sum over."""
    (terms,) = model.token_log_probs([Sentence.parse(words)])
    return sum(term.word == position for term in terms)


def test_tokens_per_word_are_those_that_a_sentence_has(tokenizers: list[LanguageModel]) -> None:
    words = ("teacher", "hospitals", "the", "Unbelievably", "dog")
    for model in tokenizers:
        inner = model.tokens_per_word(words, initial=False)
        initial = model.tokens_per_word(words, initial=True)
        assert inner is not None
        assert initial is not None
        for word, n_inner, n_initial in zip(words, inner, initial, strict=True):
            assert n_inner == n_tokens(model, f"She sees {word} now", 2)
            assert n_initial == n_tokens(model, f"{word} sees her", 0)


def test_words_of_equal_token_counts(tokenizers: list[LanguageModel], bigram: NgramModel) -> None:
    """Witness: token by token, as above; a word-level model has no say."""
    words = default_vocabulary([bigram])
    words = Vocabulary(words.initial[:30], words.inner[:60], words.repeatable)
    kept, dropped = shared_vocabulary([bigram, *tokenizers], words, same_token_count=True)
    for place, offered, left in ((1, words.inner, kept.inner), (0, words.initial, kept.initial)):
        assert 0 < len(left) < len(offered)
        for word in offered:
            text = f"She {word} it" if place else f"{word} sees it"
            counts = {n_tokens(model, text, place) for model in tokenizers}
            assert (word in left) == (len(counts) == 1)
    assert not set(dropped) & set(kept.words)
    with pytest.raises(VocabularyError, match="two models must have sub-word tokens"):
        shared_vocabulary([bigram, tokenizers[0]], words, same_token_count=True)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "xlm"])
def test_words_without_scores_are_unknown(name: str, tiny_checkpoint: Folder) -> None:
    """Witness: whether the model scores a sentence with the word in it."""
    model = load_model(f"hf:{tiny_checkpoint(name)}", device="cpu")
    words = ("dog", "<s>", "[SEP]", "<|endoftext|>", "\u00ad", "house")
    known = model.knows(words)
    reasons = model.unscorable([Sentence(("the", word, "ran")) for word in words])
    assert known[[0, -1]].all()
    assert not any(yes and why for yes, why in zip(known, reasons, strict=True))
    assert not known.all()


def listed(*words: str) -> WordList:
    return WordList(words, (1,) * len(words), (1,) * len(words))


class TestEndMarksOfNgrams(LanguageModelContract):
    @pytest.fixture
    def model(self) -> LanguageModel:
        return load_model(f"kenlm:{ARPA}")

    def test_the_sentence_matters(self, model: Scorer) -> None:
        assert len(set(model.scores(SENTENCES).tolist())) == 2


class TestEndMarksOfNetworks(LanguageModelContract):
    @pytest.fixture(params=["rnn", "lstm", "bilstm"])
    def model(self, request: pytest.FixtureRequest) -> LanguageModel:
        return build(request.param, words=listed("The", "dog", "a", "."))


def test_a_full_stop_that_is_a_word_is_scored() -> None:
    """Witness: the kenlm package."""
    model = load_model(f"kenlm:{ARPA}")
    assert model.log_probs(SENTENCES) == pytest.approx(EXPECTED, abs=1e-4)
    terms = model.token_log_probs(SENTENCES)[0]
    assert [term[:2] for term in terms[2:]] == [(2, "sleeps"), (-1, "."), (-1, "</s>")]
    assert model.replacement_log_probs(SENTENCES[0], 2, ("runs",))[0] == pytest.approx(
        EXPECTED[1], abs=1e-4
    )
    assert model.token_counts(SENTENCES).tolist() == [5, 5]
    # a mark that is not a word of the model is not read
    assert model.token_counts([Sentence.parse("the dog sleeps!")]).tolist() == [4]
    mean = load_scorer(f"kenlm:{ARPA}+mean").scores(SENTENCES)
    np.testing.assert_allclose(mean, np.array(EXPECTED) / 5, atol=1e-4)
    alone = model.continuation_log_probs([Continuation(SENTENCES[0], 0)])
    assert alone == pytest.approx([np.log(10) * -(0.1 + 0.3 + 0.3)], abs=1e-4)


@pytest.mark.parametrize(
    ("rule", "is_read"),
    [("", True), ("@lower", True), ("@no-end-mark", False), ("@lower@no-end-mark", False)],
)
def test_a_rule_leaves_end_marks_out(
    rule: str, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: by hand, `sleeps </s>` backs off: -0.3 - 3.0 in log10."""
    model = load_model(f"kenlm:{ARPA}{rule}")
    without = np.log(10) * -(0.1 + 0.3 + 0.3 + 0.3 + 3.0)
    expected = EXPECTED[0] if is_read else without
    assert model.log_probs(SENTENCES[:1]) == pytest.approx([expected], abs=1e-4)
    assert model.convention.rule == f"log-likelihood{'@end-mark' * is_read}" + (
        "@lower" * ("lower" in rule)
    )
    said: list[str] = []
    reporter = Reporter()
    monkeypatch.setattr(reporter, "say", said.append)
    tell_unknown_words([model], SENTENCES, reporter)
    assert len(said) == is_read


def test_conventions_tell_models_with_and_without_end_marks_apart() -> None:
    rules = ("", "@no-end-mark", "@lower", "@lower@no-end-mark")
    models = [load_model(f"kenlm:{ARPA}{rule}") for rule in rules]
    assert len({model.convention.fingerprint for model in models}) == len(rules)


@pytest.mark.parametrize("kind", ["rnn", "lstm", "bilstm"])
def test_networks_read_the_mark_like_the_word(kind: Kind) -> None:
    """Witness: the network without end marks, on sentences whose last word is the mark."""
    words = listed(*WORDS, ".")
    reads, plain = (build(kind, words=words, end_mark=end_mark) for end_mark in (True, False))
    for mark, longer in ((".", (*WORDS[:3], ".")), ("!", WORDS[:3])):
        sentence, as_read = Sentence(WORDS[:3], mark), Sentence(longer)
        np.testing.assert_array_equal(reads.log_probs([sentence]), plain.log_probs([as_read]))
        np.testing.assert_allclose(
            reads.replacement_log_probs(sentence, 1, WORDS),
            plain.replacement_log_probs(as_read, 1, WORDS),
            rtol=1e-6,
        )
    assert reads.convention.fingerprint != plain.convention.fingerprint


def test_the_unigram_model_of_slor_reads_the_mark(tmp_path: Path) -> None:
    """Witness: by hand."""
    unigram = tmp_path / "unigram.arpa"
    lines = ["-1 </s>", "-99 <s>", "-0.5 .", "-0.7 the", "-0.8 dog", "-0.9 sleeps"]
    unigram.write_text("\\data\\\nngram 1=6\n\\1-grams:\n" + "\n".join(lines) + "\n\\end\\\n")
    total = EXPECTED[0] / np.log(10)
    for rule, expected in (("", 0.5), ("@no-end-mark", 0.0), ("@lower@no-end-mark", 0.0)):
        scorer = load_scorer(f"kenlm:{ARPA}+slor:{unigram}{rule}")
        slor = np.log(10) * (total + 0.7 + 0.8 + 0.9 + expected) / 3
        assert scorer.scores(SENTENCES[:1]) == pytest.approx([slor], abs=1e-4)
