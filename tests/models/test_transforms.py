"""Models that read one letter case, and scores per token or word."""

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import ModelError
from contstim.models.base import LanguageModel, Scorer
from contstim.models.catalog import load_model, load_models, load_scorer
from contstim.models.ngram.training import train_ngram
from contstim.models.specifications import Specification, parse_model
from contstim.models.transforms import InLetterCase, Transformed, unknown_words
from contstim.optimization.search.synthesize import synthesize
from contstim.testing.contract import SENTENCES as CONTRACT_SENTENCES
from contstim.testing.contract import LanguageModelContract, ScorerContract
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.models import tiny
from tests.models.recurrent.conftest import build
from tests.models.tiny import Folder

SENTENCES = [Sentence.parse(text) for text in tiny.TEXTS]


@pytest.fixture(scope="module")
def arpa(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    folder = tmp_path_factory.mktemp("arpa")
    for order in (1, 2):
        tiny.train_ngrams(order, folder / f"{order}gram.arpa")
    return lambda order: folder / f"{order}gram.arpa"


def test_slor_equals_calculation_by_hand(
    arpa: Callable[[int], Path], tiny_checkpoint: Folder
) -> None:
    location = tiny_checkpoint("gpt2")
    plain = load_model(f"hf:{location}", device="cpu")
    model = load_scorer(f"hf:{location}+slor:{arpa(1)}", device="cpu")
    unigram = _read_unigrams(arpa(1))
    for sentence, score in zip(SENTENCES, model.scores(SENTENCES), strict=True):
        words = sum(unigram.get(word, unigram["<unk>"]) for word in sentence.words)
        expected = (plain.log_probs([sentence])[0] - words) / len(sentence.words)
        assert score == pytest.approx(expected, abs=1e-5)
    assert model.convention.rule == "log-likelihood+slor"
    assert model.convention.unit == "nats per word"
    assert model.convention.fingerprint != plain.convention.fingerprint


def _read_unigrams(path: Path) -> dict[str, float]:
    """Return natural log-probabilities by word, read from the text of the ARPA file."""
    rows = path.read_text(encoding="utf-8").split("\\1-grams:\n")[1].split("\n\n")[0]
    cells = (row.split("\t") for row in rows.splitlines())
    return {cell[1]: float(cell[0]) * np.log(10) for cell in cells}


def test_mean_equals_calculation_by_hand(tiny_checkpoint: Folder) -> None:
    location = tiny_checkpoint("gpt2")
    plain = load_model(f"hf:{location}@chain", device="cpu")
    model = load_scorer(f"hf:{location}@chain+mean", device="cpu")
    terms = plain.token_log_probs(SENTENCES)
    expected = [np.mean([term.log_prob for term in sentence]) for sentence in terms]
    np.testing.assert_allclose(model.scores(SENTENCES), expected, atol=1e-6)
    assert model.convention.unit == "nats per token"


@pytest.fixture(params=["kenlm", "gpt2", "bert@pll-original"])
def plain_specification(
    request: pytest.FixtureRequest, arpa: Callable[[int], Path], tiny_checkpoint: Folder
) -> str:
    if request.param == "kenlm":
        return f"kenlm:{arpa(2)}"
    return tiny.specification(tiny_checkpoint, request.param)


class TestTransforms(ScorerContract):
    @pytest.fixture(params=["mean", "slor:{}"])
    def model(
        self, plain_specification: str, arpa: Callable[[int], Path], request: pytest.FixtureRequest
    ) -> Scorer:
        return load_scorer(f"{plain_specification}+{request.param.format(arpa(1))}", device="cpu")

    def reads_as_text(self, model: Scorer, sentence: Sentence, position: int) -> bool:
        assert isinstance(model, Transformed)
        return super().reads_as_text(model._model, sentence, position)


@pytest.mark.parametrize("transform", ["+mean", "+slor:1gram.arpa"])
def test_transforms_are_refused_as_language_models(
    arpa: Callable[[int], Path], transform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(arpa(1).parent)
    with pytest.raises(ModelError, match=r"2gram.arpa\+.*unit is nats per .*in nats"):
        load_models(["kenlm:1gram.arpa", f"kenlm:2gram.arpa{transform}"])


def test_slor_needs_a_unigram_model(arpa: Callable[[int], Path]) -> None:
    with pytest.raises(ModelError, match=r"\+slor must have order 1, got order 2"):
        load_scorer(f"kenlm:{arpa(1)}+slor:{arpa(2)}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kenlm:t.arpa", ("kenlm", "t.arpa", "", "", "")),
        ("t.arpa@log-likelihood", ("kenlm", "t.arpa", "log-likelihood", "", "")),
        ("hf:gpt2+mean", ("hf", "gpt2", "", "mean", "")),
        ("gpt2-xl@chain+slor:u+v@1.arpa", ("hf", "gpt2-xl", "chain", "slor", "u+v@1.arpa")),
        ("hf:org/a@b/model", ("hf", "org/a@b/model", "", "", "")),
        ("hf:c++/model@chain", ("hf", "c++/model", "chain", "", "")),
        ("electra-large-generator", ("hf", "google/electra-large-generator", "", "", "")),
    ],
)
def test_transforms_are_parsed(text: str, expected: tuple[str, ...]) -> None:
    assert parse_model(text) == Specification(text, text, *expected)


CASES = {"lower": str.lower, "upper": str.upper}


def change_words(sentence: Sentence, change: Callable[[str], str]) -> Sentence:
    return replace(sentence, words=tuple(map(change, sentence.words)))


@pytest.fixture(scope="module")
def case_folder(tmp_path_factory: pytest.TempPathFactory, english: list[Sentence]) -> Path:
    """N-gram models of the embedded English in lower case and upper case."""
    folder = tmp_path_factory.mktemp("cased")
    for case, change in CASES.items():
        text = [change_words(sentence, change) for sentence in english]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for order in (1, 2):
                train_ngram(text, order, folder / f"{case}.{order}.arpa")
    return folder


class TestContract(LanguageModelContract):
    @pytest.fixture(params=[*CASES, "rnn"], scope="class")
    @classmethod
    def model(cls, case_folder: Path, request: pytest.FixtureRequest) -> LanguageModel:
        if request.param == "rnn":
            return InLetterCase(build("rnn"), "lower")
        return load_model(f"kenlm:{case_folder / request.param}.2.arpa@{request.param}")

    def continues(self, model: LanguageModel) -> bool:
        del model
        return True


@pytest.mark.parametrize("case", CASES)
def test_words_are_scored_in_the_case_of_the_model(case_folder: Path, case: str) -> None:
    """Witness: the model without the rule, on words changed by hand."""
    change = CASES[case]
    path = case_folder / f"{case}.2.arpa"
    plain, model = load_model(f"kenlm:{path}"), load_model(f"kenlm:{path}@{case}")
    by_hand = [change_words(sentence, change) for sentence in CONTRACT_SENTENCES]
    assert (model.log_probs(CONTRACT_SENTENCES) == plain.log_probs(by_hand)).all()
    assert (model.log_probs(CONTRACT_SENTENCES) > plain.log_probs(CONTRACT_SENTENCES)).any()
    words = ("The", "the", "Dog", "house", "zyzzyva")
    assert model.knows(words).tolist() == plain.knows(tuple(map(change, words))).tolist()
    for position in (0, 2):
        np.testing.assert_array_equal(
            model.replacement_log_probs(CONTRACT_SENTENCES[0], position, words),
            plain.replacement_log_probs(by_hand[0], position, tuple(map(change, words))),
        )
    assert model.convention.fingerprint != plain.convention.fingerprint
    assert model.convention.rule == f"log-likelihood@{case}"


def test_vocabulary_has_the_case_of_sentences(case_folder: Path) -> None:
    for case in CASES:
        vocabulary = load_model(f"kenlm:{case_folder / case}.2.arpa@{case}").vocabulary(1)
        assert vocabulary is not None
        assert all(word == word.lower() for word in vocabulary.inner)
        assert all(word[0] == word[0].upper() for word in vocabulary.initial)


def test_slor_reads_the_unigram_model_in_the_same_case(case_folder: Path) -> None:
    """Witness: SLOR by hand, with lower-case words for its unigram model."""
    scorer = load_scorer(f"kenlm:{case_folder}/lower.2.arpa@lower+slor:{case_folder}/lower.1.arpa")
    plain, unigram = (load_model(f"kenlm:{case_folder}/lower.{order}.arpa") for order in (2, 1))
    unigram_only = load_scorer(
        f"kenlm:{case_folder}/lower.2.arpa+slor:{case_folder}/lower.1.arpa@lower"
    )
    for sentence in CONTRACT_SENTENCES[:5]:
        lower_case = change_words(sentence, str.lower)
        words = sum(term.log_prob for term in unigram.token_log_probs([lower_case])[0][:-1])
        for case_scorer, read_sentence in ((scorer, lower_case), (unigram_only, sentence)):
            expected = (plain.log_probs([read_sentence])[0] - words) / len(sentence)
            assert case_scorer.scores([sentence])[0] == pytest.approx(expected, abs=1e-9)


def test_search_uses_words_of_both_cases(case_folder: Path, trained: Path) -> None:
    """Witness: scores of the resulting sentence, with words changed by hand."""
    lower_model, plain = (
        load_model(f"kenlm:{case_folder}/lower.2.arpa@lower"),
        load_model(f"kenlm:{trained}/3gram.arpa"),
    )
    words = Vocabulary.from_sentences(CONTRACT_SENTENCES)
    result = synthesize(plain, lower_model, CONTRACT_SENTENCES[0], words, seed=0)
    assert result.changed
    lower_plain = load_model(f"kenlm:{case_folder}/lower.2.arpa")
    expected = lower_plain.log_probs([change_words(result.synthetic, str.lower)])[0]
    assert result.log_probs[1] == pytest.approx(expected)


@pytest.mark.parametrize(("case", "change"), CASES.items())
def test_unknown_words_are_counted(
    case_folder: Path, case: str, change: Callable[[str], str]
) -> None:
    """Witness: counts by hand."""
    model = load_model(f"kenlm:{case_folder / case}.2.arpa")
    words = [word for sentence in CONTRACT_SENTENCES for word in sentence.words]
    unknown = [word for word in words if not model.knows([word])[0]]
    text, is_warning = unknown_words(model, CONTRACT_SENTENCES)
    assert f"does not know {len(unknown)} of {len(words)} words" in text
    assert is_warning
    assert f"@{case}" in text
    matching_text, _ = unknown_words(InLetterCase(model, case), CONTRACT_SENTENCES)
    n_unknown = sum(not model.knows([change(word)])[0] for word in words)
    assert (f"does not know {n_unknown} of" in matching_text) == bool(n_unknown)
    assert "kenlm:FILE" not in matching_text


def test_model_of_both_cases_gets_no_case_advice(trained: Path, english: list[Sentence]) -> None:
    """A word that begins no sentence of the text is known only in lower case."""
    model = load_model(f"kenlm:{trained}/3gram.arpa")
    known_sentences = [sentence for sentence in english if model.knows(sentence.words).all()][:20]
    inner = (word for sentence in known_sentences for word in sentence.words[1:])
    start_word = next(word for word in inner if not model.knows([word.capitalize()])[0])
    odd_sentence = Sentence((start_word.capitalize(), *known_sentences[0].words[1:]))
    text, _ = unknown_words(model, [*known_sentences, odd_sentence])
    assert "does not know 1 of" in text
    assert f"such as {start_word.capitalize()} (in '{odd_sentence.text}')." in text
    assert "kenlm:FILE" not in text


def test_slor_is_undefined_for_words_of_probability_zero(
    arpa: Callable[[int], Path], tmp_path: Path
) -> None:
    path = tmp_path / "1gram.arpa"
    text = arpa(1).read_text(encoding="utf-8")
    path.write_text(re.sub(r"(?m)^\S+\t<unk>", "-inf\t<unk>", text), encoding="utf-8")
    scorer = load_scorer(f"kenlm:{arpa(2)}+slor:{path}")
    with pytest.raises(ModelError, match=r"zyzzyva.* probability zero"):
        scorer.scores([Sentence.parse("The zyzzyva sleeps.")])


def test_token_counts_are_those_of_the_model_or_words(arpa: Callable[[int], Path]) -> None:
    plain = load_model(f"kenlm:{arpa(2)}")
    mean, slor = (load_scorer(f"kenlm:{arpa(2)}+{t}") for t in ("mean", f"slor:{arpa(1)}"))
    assert mean.token_counts(SENTENCES).tolist() == plain.token_counts(SENTENCES).tolist()
    with pytest.raises(ModelError):
        slor.token_counts(SENTENCES)
