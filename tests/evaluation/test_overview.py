"""Facts about one model, and the hash of an evaluation's data."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from math import prod
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from contstim.english import generate
from contstim.errors import InputError, ModelError
from contstim.evaluation.folder import data_hash
from contstim.evaluation.overview import context_gain, context_scores, model_overview
from contstim.files.arrays import FloatArray
from contstim.models.base import Convention, Scorer
from contstim.models.catalog import load_scorer
from contstim.words.sentence import Sentence
from tests.models.tiny import specification, train_ngrams

SENTENCES = generate(12, seed=0)


def test_an_overview_counts_the_ngrams_of_a_file(tmp_path: Path) -> None:
    path = train_ngrams(2, tmp_path / "2.arpa")
    counts = [line for line in path.read_text("utf-8").splitlines() if line.startswith("ngram ")]
    facts = model_overview(load_scorer(f"kenlm:{path}"))
    assert facts.n_parameters == sum(int(line.partition("=")[2]) for line in counts)
    listed = {line.split("\t")[1] for line in path.read_text("utf-8").splitlines() if "\t" in line}
    words = {word for sentence in generate(50, seed=0) for word in sentence.words}
    assert set(facts.unknown) == words - listed
    assert (facts.n_sentences, facts.n_words, facts.contexts) == (50, len(words), {})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert@pll-original"])
def test_an_overview_counts_the_parameters_of_a_network(
    tiny_checkpoint: Callable[[str], Path], name: str
) -> None:
    scorer = load_scorer(specification(tiny_checkpoint, name))
    facts = model_overview(scorer)
    with safe_open(tiny_checkpoint(name.partition("@")[0]) / "model.safetensors", "np") as file:
        sizes = [prod(file.get_slice(key).get_shape()) for key in file.keys()]  # noqa: SIM118
    assert facts.n_parameters == sum(sizes)
    assert 0 <= facts.n_better <= facts.n_sentences
    assert facts.speed > 0
    assert bool(facts.contexts) == (name != "bert@pll-original")


class OrderedWords(Scorer):
    """Score a sentence by the number of adjacent words in alphabetical order."""

    name = "ordered"

    @property
    def convention(self) -> Convention:
        return Convention("order", "", False, "ordered-words")

    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        rows = [[word.lower() for word in sentence.words] for sentence in sentences]
        return np.array([sum(map(str.__lt__, row, row[1:])) for row in rows], np.float64)


def test_sentences_are_compared_with_shuffled_copies() -> None:
    class RecordingScorer(OrderedWords):
        def __init__(self) -> None:
            self.calls: list[Sequence[Sentence]] = []

        def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
            self.calls.append(sentences)
            return super().scores(sentences)

    scorer = RecordingScorer()
    facts = model_overview(scorer)
    shuffled = scorer.calls[-1]
    originals = generate(50, seed=0)
    for original, copy in zip(originals, shuffled, strict=True):
        assert original.words != copy.words
        assert sorted(original.words) == sorted(copy.words)
    is_better = OrderedWords().scores(originals) > OrderedWords().scores(shuffled)
    assert facts.n_better == is_better.sum()


def test_a_better_context_is_reported_with_its_gain(tiny_checkpoint: Callable[[str], Path]) -> None:
    model = load_scorer(specification(tiny_checkpoint, "llama"))
    scores = context_scores(model, generate(50, seed=0))
    best, *_, worst = scores
    gain = context_gain(model.with_context(worst.context), n=50, seconds=60)
    assert gain is not None
    assert gain["best"] == best.context
    assert gain["nats"] == pytest.approx(scores[best] - scores[worst], abs=1e-4)
    no_gain = context_gain(model.with_context(best.context), n=50, seconds=60)
    assert no_gain is not None
    assert no_gain["nats"] == 0
    # Two contexts are always scored: the model's and the default
    assert len(context_scores(model.with_context(worst.context), SENTENCES, seconds=0)) == 2
    assert context_gain(OrderedWords(), n=50, seconds=60) is None


def test_a_model_that_cannot_score_any_sentence_is_refused() -> None:
    class RefusingScorer(OrderedWords):
        def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
            return ["too long"] * len(sentences)

    with pytest.raises(ModelError, match="too long"):
        model_overview(RefusingScorer())


def test_the_hash_covers_names_and_contents(tmp_path: Path) -> None:
    """Witness: hashlib on bytes written by hand."""
    for name, content in (("b.txt", "two"), ("a.txt", "one")):
        (tmp_path / name).write_text(content)
    expected = sha256(b"a.txt\x003\x00oneb.txt\x003\x00two").hexdigest()
    assert data_hash([tmp_path / "b.txt", tmp_path / "a.txt"]) == expected
    with pytest.raises(InputError, match="Cannot read"):
        data_hash([tmp_path / "c.txt"])
