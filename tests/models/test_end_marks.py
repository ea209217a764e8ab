from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from contstim.models.base import Continuation, LanguageModel, Scorer
from contstim.models.catalog import load_model, load_scorer
from contstim.models.recurrent.adapter import BothSidesModel, LeftToRightModel, RecurrentModel
from contstim.models.recurrent.network import Kind, RecurrentNetwork, Shape
from contstim.models.transforms import tell_unknown_words
from contstim.models.vocabularies import WordList
from contstim.reporter import Reporter
from contstim.testing.contract import LanguageModelContract
from contstim.words.sentence import Sentence

ARPA = Path(__file__).parent / "ngram" / "dialects" / "43-full-stop-is-a-word.arpa"
SENTENCES = [Sentence.parse("the dog sleeps ."), Sentence.parse("the dog runs .")]
EXPECTED = (-1.8651, -5.5492)  # nats, by the kenlm package with the full stop as a word
WORDS = ("the", "dog", "sleeps", "runs")


class Recorder(Reporter):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def recurrent(kind: Kind, words: tuple[str, ...], *, end_mark: bool = True) -> RecurrentModel:
    torch.manual_seed(4)
    counts = (1,) * len(words)
    words_read = WordList(words, counts, counts)
    network = RecurrentNetwork(Shape(kind, len(words_read), 5, 7, 1, 0.0))
    adapter = BothSidesModel if kind == "bilstm" else LeftToRightModel
    return adapter(network, words_read, name=kind, end_mark=end_mark)


class TestContractOfNgrams(LanguageModelContract):
    @pytest.fixture
    def model(self) -> LanguageModel:
        return load_model(f"kenlm:{ARPA}")

    def test_the_sentence_matters(self, model: Scorer) -> None:
        assert len(set(model.scores(SENTENCES).tolist())) == 2


class TestContractOfNetworks(LanguageModelContract):
    @pytest.fixture(params=["rnn", "lstm", "bilstm"])
    def model(self, request: pytest.FixtureRequest) -> LanguageModel:
        return recurrent(request.param, ("The", "dog", "a", "."))


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
def test_a_rule_leaves_end_marks_out(rule: str, is_read: bool) -> None:
    """Witness: by hand, `sleeps </s>` backs off: -0.3 - 3.0 in log10."""
    model = load_model(f"kenlm:{ARPA}{rule}")
    without = np.log(10) * -(0.1 + 0.3 + 0.3 + 0.3 + 3.0)
    expected = EXPECTED[0] if is_read else without
    assert model.log_probs(SENTENCES[:1]) == pytest.approx([expected], abs=1e-4)
    assert model.convention.rule == f"log-likelihood{'@end-mark' * is_read}" + (
        "@lower" * ("lower" in rule)
    )
    reporter = Recorder()
    tell_unknown_words([model], SENTENCES, reporter)
    assert len(reporter.said) == is_read


def test_conventions_tell_models_with_and_without_end_marks_apart() -> None:
    rules = ("", "@no-end-mark", "@lower", "@lower@no-end-mark")
    models = [load_model(f"kenlm:{ARPA}{rule}") for rule in rules]
    assert len({model.convention.fingerprint for model in models}) == len(rules)


@pytest.mark.parametrize("kind", ["rnn", "lstm", "bilstm"])
def test_networks_read_the_mark_like_the_word(kind: Kind) -> None:
    """Witness: the network without end marks, on sentences whose last word is the mark."""
    words = (*WORDS, ".")
    reads, plain = recurrent(kind, words), recurrent(kind, words, end_mark=False)
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
    for rule, expected in (("", 0.5), ("@no-end-mark", 0.0)):
        scorer = load_scorer(f"kenlm:{ARPA}+slor:{unigram}{rule}")
        slor = np.log(10) * (total + 0.7 + 0.8 + 0.9 + expected) / 3
        assert scorer.scores(SENTENCES[:1]) == pytest.approx([slor], abs=1e-4)
