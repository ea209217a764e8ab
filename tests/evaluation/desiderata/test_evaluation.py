"""Word scores and whole evaluations, against scores computed another way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from contstim import plot
from contstim.english import generate
from contstim.errors import InputError, ModelError
from contstim.evaluation.desiderata.carriers import Carrier, score_words, unreadable
from contstim.evaluation.desiderata.desiderata_report import (
    desiderata_figure,
    write_desiderata,
)
from contstim.evaluation.desiderata.evaluation import evaluate_desiderata
from contstim.frequencies import WordFrequencies
from contstim.models.catalog import load_model, load_scorer
from contstim.models.ngram.adapter import NgramModel
from contstim.reporting.canvas import styled
from contstim.sentence import Sentence
from contstim.store import Store
from tests.experiments.analysis.outputs.paper import is_whole

CARRIERS = (Carrier("My word is _"), Carrier("_"))
WORDS = ("cat", "dog", "book", "garden", "doctor", "house")


@pytest.fixture(scope="module")
def frequencies(english: list[Sentence]) -> WordFrequencies:
    counts = [word for sentence in english for word in sentence.words]
    return WordFrequencies({word: counts.count(word) for word in {*WORDS, "the"}})


def test_a_words_score_under_a_trigram_is_what_it_adds(trigram: NgramModel) -> None:
    """Outside witness: KenLM's scores with and without the word, ends of sentences apart."""
    scores = score_words(trigram, WORDS, CARRIERS).scores

    def of_words(*texts: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        terms = trigram.token_log_probs([Sentence.parse(text) for text in texts])
        return np.array([sum(term.log_prob for term in of_one[:-1]) for of_one in terms])

    whole, before = of_words(*(f"My word is {word}" for word in WORDS)), of_words("My word is")
    np.testing.assert_allclose(scores[:, 0], whole - before, atol=1e-5)
    np.testing.assert_allclose(scores[:, 1], of_words(*WORDS), atol=1e-5)


@pytest.mark.parametrize("rule", ["pll-original", "pll-whole-word"])
def test_a_words_score_under_a_masked_model_is_that_of_its_own_tokens(
    tiny_checkpoint: Callable[[str], Path], rule: str
) -> None:
    """Outside witness: the network asked with its masks set by hand."""
    import torch
    import transformers

    folder = tiny_checkpoint("bert")
    found = score_words(load_model(f"hf:{folder}@{rule}"), ["zebra"], CARRIERS[:1])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids = tokenizer("My word is zebra.", return_tensors="pt")["input_ids"]
    own = range(1 + len(tokenizer.tokenize("My word is")), ids.shape[1] - 2)
    total = 0.0
    for place in own:
        hidden = ids.clone()
        hidden[0, [place] if rule == "pll-original" else list(own)] = tokenizer.mask_token_id
        with torch.no_grad():
            logits = network(input_ids=hidden).logits[0, place].double()
        total += float(logits.log_softmax(-1)[ids[0, place]])
    assert len(own) > 1
    assert found.tokens.tolist() == [len(own)]
    assert found.scores[0, 0] == pytest.approx(total, abs=1e-4)


def test_an_evaluation_is_its_parts(
    bigram: NgramModel, trigram: NgramModel, frequencies: WordFrequencies, tmp_path: Path
) -> None:
    """Outside witness: numpy.corrcoef on scores computed one by one."""
    sentences = generate(40, seed=5)
    found = evaluate_desiderata(
        [bigram, trigram], sentences, WORDS, frequencies, carriers=CARRIERS, reference=trigram
    )
    scores = {m.name: np.array([m.log_probs([s])[0] for s in sentences]) for m in (bigram, trigram)}
    lengths = [len(sentence) + 1 for sentence in sentences]
    one = found.models[0]
    expected = np.corrcoef(-scores["2-gram"], lengths)[0, 1]
    assert one.length.r == pytest.approx(expected)
    assert one.reference is not None
    assert one.reference.r == pytest.approx(np.corrcoef(scores["2-gram"], scores["3-gram"])[0, 1])
    logs = [frequencies.zipf(word) for word in WORDS]
    mean = found.word_scores[0].scores.mean(axis=1)
    assert one.frequency.r == pytest.approx(np.corrcoef(mean, logs)[0, 1])
    assert (one.splitting.share, one.split_in_text) == (0, 0)
    write_desiderata(found, tmp_path, models=[bigram, trigram], data=[])
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "40 sentences, 6 words in 2 carriers" in report
    assert found.to_frame()["length_r"].tolist() == [model.length.r for model in found.models]
    names = {"desiderata", "claims", "carriers", "scores", "tokens", "words", "left_out"}
    assert names == {path.stem for path in tmp_path.glob("*.csv")}
    assert (tmp_path / "desiderata.png").stat().st_size > 10_000


def test_long_names_stay_apart_and_on_the_paper(
    bigram: NgramModel, trigram: NgramModel, frequencies: WordFrequencies
) -> None:
    models = [
        NgramModel(model.path, name=f"kenlm:{n}/" + "W" * 150)
        for n, model in enumerate((bigram, trigram))
    ]
    found = evaluate_desiderata(
        models, generate(10, seed=5), WORDS, frequencies, carriers=CARRIERS, reference=models[0]
    )
    with styled():
        figure = desiderata_figure(found)
        titles = [axes.get_title() for axes in figure.axes[:2]]
        assert titles == [f"({n}) …" + "W" * 23 for n in (1, 2)]
        assert is_whole(figure)
    assert len(plot.desiderata(found)) == len(figure.axes)


def test_words_that_a_model_does_not_know_are_left_out(
    bigram: NgramModel, frequencies: WordFrequencies
) -> None:
    words = [*WORDS, "zyzzyva"]
    assert list(unreadable([bigram], words, CARRIERS)) == ["zyzzyva"]
    found = evaluate_desiderata(
        [bigram], generate(10, seed=5), words, frequencies, carriers=CARRIERS
    )
    assert found.words == WORDS
    assert found.words_left_out == {"zyzzyva": "unknown to 2-gram"}


def test_nothing_is_scored_twice(
    trigram: NgramModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run reads everything from the store: the model may not be asked again."""
    with Store(tmp_path / "scores.sqlite") as store:
        first = score_words(trigram, WORDS, CARRIERS, store=store)
        monkeypatch.delattr(NgramModel, "token_log_probs")
        again = score_words(trigram, WORDS, CARRIERS, store=store)
    np.testing.assert_array_equal(first.scores, again.scores)


def test_what_cannot_be_evaluated_is_said(
    bigram: NgramModel, frequencies: WordFrequencies, trained: Path
) -> None:
    few = generate(3, seed=5)
    with pytest.raises(InputError, match="needs 4 sentences or more; here are 3"):
        evaluate_desiderata([bigram], few, WORDS, frequencies, carriers=CARRIERS)
    many = generate(9, seed=5)
    words = ["cat", "xyz", "zyx"]
    with pytest.raises(InputError, match=r"4 words or more; here are 1 \(2 left out"):
        evaluate_desiderata([bigram], many, words, frequencies, carriers=CARRIERS)
    with pytest.raises(InputError, match="need a carrier"):
        evaluate_desiderata([bigram], many, WORDS, frequencies, carriers=[])
    mean = load_scorer(f"kenlm:{trained / '2gram.arpa'}+mean")
    with pytest.raises(ModelError, match=r"per token\. A score for each word needs log-prob"):
        evaluate_desiderata([mean], many, WORDS, frequencies, carriers=CARRIERS)
