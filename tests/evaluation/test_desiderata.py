"""Word scores, whole evaluations and published findings, each recomputed in another way."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from contstim.english import generate
from contstim.errors import InputError, ModelError
from contstim.evaluation import desiderata
from contstim.items.scores import ScoreTable
from contstim.models.catalog import load_model, load_scorer
from contstim.models.ngram.adapter import NgramModel
from contstim.reporting.report import Report
from contstim.words.frequencies import WordFrequencies
from contstim.words.sentence import Sentence

CARRIERS = ("My word is _", "_")
WORDS = ("cat", "dog", "book", "garden", "doctor", "house")


@pytest.fixture(scope="module")
def frequencies(english: list[Sentence]) -> WordFrequencies:
    counts = [word for sentence in english for word in sentence.words]
    return WordFrequencies({word: counts.count(word) for word in {*WORDS, "the"}})


def test_trigram_word_scores_are_differences_of_sentences(trigram: NgramModel) -> None:
    """Witness: KenLM's scores with and without the word, excluding the ends of sentences."""
    scores, _ = desiderata.score_words(trigram, WORDS, CARRIERS)

    def word_log_probs(*texts: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        terms = trigram.token_log_probs([Sentence.parse(text) for text in texts])
        return np.array([sum(term.log_prob for term in term_row[:-1]) for term_row in terms])

    sentence_scores, prefix_scores = (
        word_log_probs(*(f"My word is {word}" for word in WORDS)),
        word_log_probs("My word is"),
    )
    np.testing.assert_allclose(scores[:, 0], sentence_scores - prefix_scores, atol=1e-5)
    np.testing.assert_allclose(scores[:, 1], word_log_probs(*WORDS), atol=1e-5)


@pytest.mark.parametrize("rule", ["pll-original", "pll-whole-word"])
def test_masked_words_are_scored_by_their_tokens(
    tiny_checkpoint: Callable[[str], Path], rule: str
) -> None:
    """Witness: the network itself, with masks set by hand."""
    import torch
    import transformers

    folder = tiny_checkpoint("bert")
    scores, tokens = desiderata.score_words(
        load_model(f"hf:{folder}@{rule}"), ["zebra"], CARRIERS[:1]
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids = tokenizer("My word is zebra.", return_tensors="pt")["input_ids"]
    word_positions = range(1 + len(tokenizer.tokenize("My word is")), ids.shape[1] - 2)
    total = 0.0
    for position in word_positions:
        hidden = ids.clone()
        hidden[0, [position] if rule == "pll-original" else list(word_positions)] = (
            tokenizer.mask_token_id
        )
        with torch.no_grad():
            logits = network(input_ids=hidden).logits[0, position].double()
        total += float(logits.log_softmax(-1)[ids[0, position]])
    assert len(word_positions) > 1
    assert tokens.tolist() == [len(word_positions)]
    assert scores[0, 0] == pytest.approx(total, abs=1e-4)


def test_an_evaluation_combines_its_parts(
    bigram: NgramModel, trigram: NgramModel, frequencies: WordFrequencies
) -> None:
    """Witness: numpy.corrcoef on scores computed one sentence at a time."""
    sentences = generate(40, seed=5)
    result = desiderata.evaluate_desiderata(
        [bigram, trigram], sentences, WORDS, frequencies, carriers=CARRIERS, reference=trigram
    )
    scores = {m.name: np.array([m.log_probs([s])[0] for s in sentences]) for m in (bigram, trigram)}
    lengths = [len(sentence) + 1 for sentence in sentences]
    first_row = result.rows[0]
    expected = np.corrcoef(-scores["2-gram"], lengths)[0, 1]
    assert first_row["length_r"] == pytest.approx(expected)
    expected = np.corrcoef(scores["2-gram"], scores["3-gram"])[0, 1]
    assert first_row["reference_r"] == pytest.approx(expected)
    logs = [frequencies.zipf(word) for word in WORDS]
    mean = result.word_scores[0].mean(axis=1)
    assert first_row["frequency_r"] == pytest.approx(np.corrcoef(mean, logs)[0, 1])
    assert (first_row["split_words"], first_row["split_in_text"]) == (0, 0)
    findings = desiderata.desiderata_findings(result)
    assert "40 sentences, 6 words in 2 carriers" in Report("", findings.parts).markdown()
    assert result.to_frame()["length_r"].tolist() == [row["length_r"] for row in result.rows]
    names = {"desiderata", "claims", "carriers", "scores", "tokens", "words", "left_out"}
    assert names == findings.tables.keys()


def test_unknown_words_are_excluded(bigram: NgramModel, frequencies: WordFrequencies) -> None:
    words = [*WORDS, "zyzzyva"]
    assert list(desiderata.unreadable([bigram], words, CARRIERS)) == ["zyzzyva"]
    result = desiderata.evaluate_desiderata(
        [bigram], generate(10, seed=5), words, frequencies, carriers=CARRIERS
    )
    assert result.words == WORDS
    assert result.words_left_out == {"zyzzyva": "unknown to 2-gram"}


def test_bad_input_is_refused(
    bigram: NgramModel, frequencies: WordFrequencies, trained: Path
) -> None:
    few = generate(3, seed=5)
    with pytest.raises(InputError, match="needs at least 4 sentences, got 3"):
        desiderata.evaluate_desiderata([bigram], few, WORDS, frequencies, carriers=CARRIERS)
    many = generate(9, seed=5)
    words = ["cat", "xyz", "zyx"]
    with pytest.raises(InputError, match=r"at least 4 words, got 1 \(2 were excluded"):
        desiderata.evaluate_desiderata([bigram], many, words, frequencies, carriers=CARRIERS)
    with pytest.raises(InputError, match="need a carrier"):
        desiderata.evaluate_desiderata([bigram], many, WORDS, frequencies, carriers=[])
    mean = load_scorer(f"kenlm:{trained / '2gram.arpa'}+mean")
    with pytest.raises(ModelError, match=r"per token\. The score of each word needs log-prob"):
        desiderata.evaluate_desiderata([mean], many, WORDS, frequencies, carriers=CARRIERS)


def test_the_advantage_of_split_words_is_recovered() -> None:
    """Witness: scores constructed as 2 × log frequency + 3 × split + 1, without noise."""
    log_frequencies = np.array([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0])
    split = np.array([False, False, True, False, True, True])
    scores = 2 * log_frequencies + 3 * split + 1
    effect = desiderata.split_effect(scores, log_frequencies, split)
    assert effect["score_of_single"] == pytest.approx((-1 - 3 - 7) / 3)
    assert effect["score_of_several"] == pytest.approx((-2 - 6 - 8) / 3)
    assert effect["advantage_of_several"] == pytest.approx(3.0)
    assert effect["advantage_error"] == pytest.approx(0.0, abs=1e-9)


def test_carriers_hold_a_word_in_their_gap() -> None:
    for carrier, text, position in (("My _ is here!", "My cat is here!", 1), ("_", "cat.", 0)):
        desiderata.check_carriers([carrier])
        assert desiderata.in_carrier(carrier, ["cat"]) == (position, [Sentence.parse(text)])
    for carrier in ("My word", "_ and _", "My _s", ""):
        with pytest.raises(InputError, match="A carrier must contain"):
            desiderata.check_carriers([carrier])


N = 60


def make_desiderata(
    noises: tuple[float, float], lift: float, *, names: tuple[str, str]
) -> desiderata.Desiderata:
    """Make scores of two rules that follow length and frequency with the specified noise."""
    rng = np.random.default_rng(2)
    tokens = rng.integers(4, 30, N).astype(float)
    logs, split = -rng.uniform(5, 12, N), np.arange(N) % 2 == 0
    columns = [-3 * tokens + noise * rng.normal(size=N) for noise in noises]
    words = [logs + noise * rng.normal(size=N) / 10 for noise in noises]
    words[0] = words[0] + lift * split
    table = ScoreTable(
        tuple(Sentence.parse(f"Sentence {i}.") for i in range(N)),
        (*names, "causal"),
        np.stack([*columns, -3 * tokens], axis=1),
    )
    cells = ("length_r", "reference_r", "frequency_r", "split_words", "score_of_single")
    other_cells = ("score_of_several", "advantage_of_several", "advantage_error")
    rows = tuple({"model": name, **dict.fromkeys((*cells, *other_cells), 0.1)} for name in names)
    word_tokens = 1 + np.stack([split, split], axis=1).astype(np.int64)
    return desiderata.Desiderata(
        rows, (), names, "causal", ("_",), table, np.stack([tokens, tokens], axis=1),
        tuple(f"w{i}" for i in range(N)), logs, np.stack(words)[:, :, None], word_tokens, (), {},
    )  # fmt: skip


NAMES = ("hf:x@pll-original", "hf:x@pll-word-l2r")


def test_planted_findings_hold() -> None:
    """Witnesses: the planted effects, and scipy.stats.pearsonr."""
    evaluation = make_desiderata((20.0, 1.0), lift=5.0, names=NAMES)
    claims = tuple(desiderata.check_claims(evaluation))
    assert [claim["verdict"] for claim in claims] == ["holds"] * 4
    length = claims[0]
    scores = evaluation.scores.column(NAMES[0])
    expected = stats.pearsonr(-scores, evaluation.tokens[:, 0]).statistic
    assert length["original"] == pytest.approx(expected)
    assert length["low"] < length["original"] - length["adapted"] < length["high"] < 0
    assert claims[3]["original"] - claims[3]["adapted"] == pytest.approx(5, abs=1.5)


def test_claims_with_an_interval_across_zero_are_undecided() -> None:
    """Both rules have the same noise, so the intervals contain zero whichever number is higher."""
    evaluation = make_desiderata((10.0, 10.0), lift=0.0, names=NAMES)
    claims = tuple(desiderata.check_claims(evaluation))
    assert {claim["original"] < claim["adapted"] for claim in claims} == {True, False}
    for claim in claims:
        assert (claim["verdict"] == "undecided") == (claim["low"] <= 0 <= claim["high"])
    assert "undecided" in {claim["verdict"] for claim in claims}
    findings = desiderata.desiderata_findings(evaluation)
    assert findings.tables["claims"]["verdict"] == [claim["verdict"] for claim in claims]
    page = Report(findings.title, findings.parts).markdown()
    assert "| undecided |" in page
    assert "not sure" not in page


def test_the_interval_is_scipys_bootstrap() -> None:
    """Witness: scipy.stats.bootstrap of the paired difference, percentile method."""
    evaluation = make_desiderata((20.0, 10.0), lift=0.0, names=NAMES)
    (length, *_) = desiderata.check_claims(evaluation)
    rows = (*(-evaluation.scores.column(name) for name in NAMES), evaluation.tokens[:, 0])

    def difference(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> float:
        return float(np.corrcoef(a, x)[0, 1] - np.corrcoef(b, x)[0, 1])

    witness = stats.bootstrap(
        rows, difference, paired=True, vectorized=False, n_resamples=1000, method="percentile",
        rng=np.random.default_rng(5),
    ).confidence_interval  # fmt: skip
    assert (length["low"], length["high"]) == pytest.approx((witness.low, witness.high), abs=0.03)
