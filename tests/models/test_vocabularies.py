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
def other_model(tmp_path: Path) -> NgramModel:
    """A model of a few words, each seen ten times."""
    text = [Sentence.parse(t) for t in ("The dog sees the woman", "She sees a small dog")] * 10
    with pytest.warns(UserWarning, match="too small"):
        train_ngram(text, 2, tmp_path / "other.arpa")
    return NgramModel(tmp_path / "other.arpa", name="other")


def test_words_unknown_to_one_model_are_dropped(
    bigram: NgramModel, other_model: NgramModel
) -> None:
    words = Vocabulary(("The", "Every"), ("dog", "zyzzyva", "woman", "house"))
    shared, dropped = shared_vocabulary([bigram, other_model], words)
    assert (shared.initial, shared.inner) == (("The",), ("dog", "woman"))
    assert dropped == ("Every", "zyzzyva", "house")


def test_vocabulary_without_first_words_is_refused(other_model: NgramModel) -> None:
    with pytest.raises(VocabularyError, match="start a sentence"):
        shared_vocabulary([other_model], Vocabulary(("Every",), ("dog",)))


def test_default_words_are_frequent_in_all_training_texts(
    bigram: NgramModel, other_model: NgramModel
) -> None:
    """Witness: intersection of the models' own vocabularies."""
    vocabulary = default_vocabulary([bigram, other_model])
    ours, theirs = bigram.vocabulary(5), other_model.vocabulary(5)
    assert set(vocabulary.inner) == set(ours.inner) & set(theirs.inner)
    assert set(vocabulary.initial) == set(ours.initial) & set(theirs.initial)


@pytest.mark.parametrize("as_arrays", [True, False])
def test_models_accept_both_spellings_of_the_apostrophe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_arrays: bool
) -> None:
    """Witness: the sentence in the spelling of the training text, with and without KenLM."""
    if as_arrays:
        monkeypatch.setitem(sys.modules, "kenlm", None)
    else:
        pytest.importorskip("kenlm")
    spellings = ("They don't see the café", "They can’t see the café", "They won't", "They won’t")
    with pytest.warns(UserWarning, match="too small"):
        train_ngram([*map(Sentence.parse, spellings)], 2, tmp_path / "m.arpa")
    model = NgramModel(tmp_path / "m.arpa")
    texts = ("They don’t see", "They don't see", "They can't see", "They can’t see")
    curly, straight, won, won_expected = model.log_probs([*map(Sentence.parse, texts)])
    assert (curly, won) == (straight, won_expected)
    assert model.knows(("don’t", "can't", "shan’t")).tolist() == [True, True, False]
    sentence = Sentence.parse("They won't see")
    exact = model.replacement_log_probs(sentence, 1, ("don’t", "don't", "won’t", "won't"))
    assert exact[0] == exact[1]
    rewritten = [sentence.replace(1, word) for word in ("don’t", "don't", "won’t", "won't")]
    assert exact == pytest.approx(model.log_probs(rewritten), abs=1e-6)


def test_networks_accept_other_spellings_of_words() -> None:
    """By hand; a word in both spellings keeps both numbers."""
    words = WordList(("don't", "can’t", "won't", "won’t", "cafe\u0301"), (0,) * 5, (1,) * 5)
    spellings = ("don’t", "can't", "won't", "won’t", "café", "shan't")
    assert words.numbers(spellings).tolist() == [2, 3, 4, 5, 6, 1]


def test_default_vocabulary_is_the_embedded_lexicon() -> None:
    vocabulary = default_vocabulary([])
    assert len(vocabulary.words) > 1_200
    assert {"The", "Dogs"} <= set(vocabulary.initial)
    assert "the" in vocabulary.repeatable


@pytest.fixture
def tokenizers(tiny_checkpoint: Folder) -> list[LanguageModel]:
    names = ("bert@pll-original", "gpt2")
    return [load_model(tiny.specification(tiny_checkpoint, name), device="cpu") for name in names]


def count_tokens(model: LanguageModel, words: str, position: int) -> int:
    """Witness: the number of terms in the score of the whole sentence."""
    (terms,) = model.token_log_probs([Sentence.parse(words)])
    return sum(term.word == position for term in terms)


def test_tokens_per_word_equal_those_in_sentences(tokenizers: list[LanguageModel]) -> None:
    words = ("teacher", "hospitals", "the", "Unbelievably", "dog")
    for model in tokenizers:
        inner = model.tokens_per_word(words, initial=False)
        initial = model.tokens_per_word(words, initial=True)
        assert inner is not None
        assert initial is not None
        for word, n_inner, n_initial in zip(words, inner, initial, strict=True):
            assert n_inner == count_tokens(model, f"She sees {word} now", 2)
            assert n_initial == count_tokens(model, f"{word} sees her", 0)


def test_shared_vocabulary_can_require_equal_token_counts(
    tokenizers: list[LanguageModel], bigram: NgramModel
) -> None:
    """Witness: token by token, as above; word-level models do not count."""
    words = default_vocabulary([bigram])
    words = Vocabulary(words.initial[:30], words.inner[:60], words.repeatable)
    shared, dropped = shared_vocabulary([bigram, *tokenizers], words, same_token_count=True)
    for position, candidates, accepted in (
        (1, words.inner, shared.inner),
        (0, words.initial, shared.initial),
    ):
        assert 0 < len(accepted) < len(candidates)
        for word in candidates:
            text = f"She {word} it" if position else f"{word} sees it"
            counts = {count_tokens(model, text, position) for model in tokenizers}
            assert (word in accepted) == (len(counts) == 1)
    assert not set(dropped) & set(shared.words)
    with pytest.raises(VocabularyError, match="two models must have sub-word tokens"):
        shared_vocabulary([bigram, tokenizers[0]], words, same_token_count=True)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "xlm"])
def test_words_without_scores_are_unknown(name: str, tiny_checkpoint: Folder) -> None:
    """Witness: whether the model scores a sentence with the word."""
    model = load_model(f"hf:{tiny_checkpoint(name)}", device="cpu")
    words = ("dog", "<s>", "[SEP]", "<|endoftext|>", "\u00ad", "house")
    known = model.knows(words)
    reasons = model.unscorable([Sentence(("the", word, "ran")) for word in words])
    assert known[[0, -1]].all()
    assert not any(is_known and reason for is_known, reason in zip(known, reasons, strict=True))
    assert not known.all()


def make_word_list(*words: str) -> WordList:
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
        return build(request.param, words=make_word_list("The", "dog", "a", "."))


def test_full_stop_in_the_vocabulary_is_scored() -> None:
    """Witness: the kenlm package."""
    model = load_model(f"kenlm:{ARPA}")
    assert model.log_probs(SENTENCES) == pytest.approx(EXPECTED, abs=1e-4)
    terms = model.token_log_probs(SENTENCES)[0]
    assert [term[:2] for term in terms[2:]] == [(2, "sleeps"), (-1, "."), (-1, "</s>")]
    assert model.replacement_log_probs(SENTENCES[0], 2, ("runs",))[0] == pytest.approx(
        EXPECTED[1], abs=1e-4
    )
    assert model.token_counts(SENTENCES).tolist() == [5, 5]
    # an end mark outside the model's vocabulary is not read
    assert model.token_counts([Sentence.parse("the dog sleeps!")]).tolist() == [4]
    mean = load_scorer(f"kenlm:{ARPA}+mean").scores(SENTENCES)
    np.testing.assert_allclose(mean, np.array(EXPECTED) / 5, atol=1e-4)
    continuation = model.continuation_log_probs([Continuation(SENTENCES[0], 0)])
    assert continuation == pytest.approx([np.log(10) * -(0.1 + 0.3 + 0.3)], abs=1e-4)


@pytest.mark.parametrize(
    ("rule", "is_read"),
    [("", True), ("@lower", True), ("@no-end-mark", False), ("@lower@no-end-mark", False)],
)
def test_rule_excludes_end_marks(rule: str, is_read: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: by hand, `sleeps </s>` backs off: -0.3 - 3.0 in log10."""
    model = load_model(f"kenlm:{ARPA}{rule}")
    unread_score = np.log(10) * -(0.1 + 0.3 + 0.3 + 0.3 + 3.0)
    expected = EXPECTED[0] if is_read else unread_score
    assert model.log_probs(SENTENCES[:1]) == pytest.approx([expected], abs=1e-4)
    assert model.convention.rule == f"log-likelihood{'@end-mark' * is_read}" + (
        "@lower" * ("lower" in rule)
    )
    messages: list[str] = []
    reporter = Reporter()
    monkeypatch.setattr(reporter, "say", messages.append)
    tell_unknown_words([model], SENTENCES, reporter)
    assert len(messages) == is_read


def test_fingerprints_depend_on_end_marks_and_case() -> None:
    rules = ("", "@no-end-mark", "@lower", "@lower@no-end-mark")
    models = [load_model(f"kenlm:{ARPA}{rule}") for rule in rules]
    assert len({model.convention.fingerprint for model in models}) == len(rules)


@pytest.mark.parametrize("kind", ["rnn", "lstm", "bilstm"])
def test_networks_read_end_marks_as_words(kind: Kind) -> None:
    """Witness: the network without end marks, on sentences with the mark as last word."""
    words = make_word_list(*WORDS, ".")
    reads, plain = (build(kind, words=words, end_mark=end_mark) for end_mark in (True, False))
    for mark, words_read in ((".", (*WORDS[:3], ".")), ("!", WORDS[:3])):
        sentence, as_read = Sentence(WORDS[:3], mark), Sentence(words_read)
        np.testing.assert_array_equal(reads.log_probs([sentence]), plain.log_probs([as_read]))
        np.testing.assert_allclose(
            reads.replacement_log_probs(sentence, 1, WORDS),
            plain.replacement_log_probs(as_read, 1, WORDS),
            rtol=1e-6,
        )
    assert reads.convention.fingerprint != plain.convention.fingerprint


def test_unigram_model_of_slor_reads_the_end_mark(tmp_path: Path) -> None:
    """Witness: by hand."""
    unigram = tmp_path / "unigram.arpa"
    lines = ["-1 </s>", "-99 <s>", "-0.5 .", "-0.7 the", "-0.8 dog", "-0.9 sleeps"]
    unigram.write_text("\\data\\\nngram 1=6\n\\1-grams:\n" + "\n".join(lines) + "\n\\end\\\n")
    total = EXPECTED[0] / np.log(10)
    for rule, expected in (("", 0.5), ("@no-end-mark", 0.0), ("@lower@no-end-mark", 0.0)):
        scorer = load_scorer(f"kenlm:{ARPA}+slor:{unigram}{rule}")
        slor = np.log(10) * (total + 0.7 + 0.8 + 0.9 + expected) / 3
        assert scorer.scores(SENTENCES[:1]) == pytest.approx([slor], abs=1e-4)
