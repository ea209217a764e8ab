"""Models in another letter case, and scores per token or word."""

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
from contstim.testing.contract import SENTENCES as TRIED
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


def test_slor_by_hand(arpa: Callable[[int], Path], tiny_checkpoint: Folder) -> None:
    location = tiny_checkpoint("gpt2")
    plain = load_model(f"hf:{location}", device="cpu")
    model = load_scorer(f"hf:{location}+slor:{arpa(1)}", device="cpu")
    unigram = _unigrams(arpa(1))
    for sentence, score in zip(SENTENCES, model.scores(SENTENCES), strict=True):
        words = sum(unigram.get(word, unigram["<unk>"]) for word in sentence.words)
        expected = (plain.log_probs([sentence])[0] - words) / len(sentence.words)
        assert score == pytest.approx(expected, abs=1e-5)
    assert model.convention.rule == "log-likelihood+slor"
    assert model.convention.unit == "nats per word"
    assert model.convention.fingerprint != plain.convention.fingerprint


def _unigrams(path: Path) -> dict[str, float]:
    """Word to natural log, read from the ARPA text."""
    rows = path.read_text(encoding="utf-8").split("\\1-grams:\n")[1].split("\n\n")[0]
    cells = (row.split("\t") for row in rows.splitlines())
    return {cell[1]: float(cell[0]) * np.log(10) for cell in cells}


def test_mean_by_hand(tiny_checkpoint: Folder) -> None:
    location = tiny_checkpoint("gpt2")
    plain = load_model(f"hf:{location}@chain", device="cpu")
    model = load_scorer(f"hf:{location}@chain+mean", device="cpu")
    terms = plain.token_log_probs(SENTENCES)
    expected = [np.mean([term.log_prob for term in sentence]) for sentence in terms]
    np.testing.assert_allclose(model.scores(SENTENCES), expected, atol=1e-6)
    assert model.convention.unit == "nats per token"


@pytest.fixture(params=["kenlm", "gpt2", "bert@pll-original"])
def transformable(
    request: pytest.FixtureRequest, arpa: Callable[[int], Path], tiny_checkpoint: Folder
) -> str:
    if request.param == "kenlm":
        return f"kenlm:{arpa(2)}"
    return tiny.specification(tiny_checkpoint, request.param)


class TestTransforms(ScorerContract):
    @pytest.fixture(params=["mean", "slor:{}"])
    def model(
        self, transformable: str, arpa: Callable[[int], Path], request: pytest.FixtureRequest
    ) -> Scorer:
        return load_scorer(f"{transformable}+{request.param.format(arpa(1))}", device="cpu")

    def reads_as_text(self, model: Scorer, sentence: Sentence, position: int) -> bool:
        assert isinstance(model, Transformed)
        return super().reads_as_text(model._model, sentence, position)


@pytest.mark.parametrize("transform", ["+mean", "+slor:1gram.arpa"])
def test_what_asks_for_a_language_model_is_not_given_a_transform(
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
def test_specifications(text: str, expected: tuple[str, ...]) -> None:
    assert parse_model(text) == Specification(text, text, *expected)


CASES = {"lower": str.lower, "upper": str.upper}


def changed(sentence: Sentence, change: Callable[[str], str]) -> Sentence:
    return replace(sentence, words=tuple(map(change, sentence.words)))


@pytest.fixture(scope="module")
def cased(tmp_path_factory: pytest.TempPathFactory, english: list[Sentence]) -> Path:
    """N-gram models of the embedded English in small letters and in capitals."""
    folder = tmp_path_factory.mktemp("cased")
    for case, change in CASES.items():
        text = [changed(sentence, change) for sentence in english]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for order in (1, 2):
                train_ngram(text, order, folder / f"{case}.{order}.arpa")
    return folder


class TestContract(LanguageModelContract):
    @pytest.fixture(params=[*CASES, "rnn"], scope="class")
    @classmethod
    def model(cls, cased: Path, request: pytest.FixtureRequest) -> LanguageModel:
        if request.param == "rnn":
            return InLetterCase(build("rnn"), "lower")
        return load_model(f"kenlm:{cased / request.param}.2.arpa@{request.param}")

    def continues(self, model: LanguageModel) -> bool:
        del model
        return True


@pytest.mark.parametrize("case", CASES)
def test_everything_is_what_the_model_says_of_words_in_its_case(cased: Path, case: str) -> None:
    """Witness: the model without the rule, given the words changed by hand."""
    change = CASES[case]
    path = cased / f"{case}.2.arpa"
    plain, model = load_model(f"kenlm:{path}"), load_model(f"kenlm:{path}@{case}")
    by_hand = [changed(sentence, change) for sentence in TRIED]
    assert (model.log_probs(TRIED) == plain.log_probs(by_hand)).all()
    assert (model.log_probs(TRIED) > plain.log_probs(TRIED)).any()
    words = ("The", "the", "Dog", "house", "zyzzyva")
    assert model.knows(words).tolist() == plain.knows(tuple(map(change, words))).tolist()
    for position in (0, 2):
        np.testing.assert_array_equal(
            model.replacement_log_probs(TRIED[0], position, words),
            plain.replacement_log_probs(by_hand[0], position, tuple(map(change, words))),
        )
    assert model.convention.fingerprint != plain.convention.fingerprint
    assert model.convention.rule == f"log-likelihood@{case}"


def test_the_vocabulary_is_given_as_sentences_show_it(cased: Path) -> None:
    for case in CASES:
        vocabulary = load_model(f"kenlm:{cased / case}.2.arpa@{case}").vocabulary(1)
        assert vocabulary is not None
        assert all(word == word.lower() for word in vocabulary.inner)
        assert all(word[0] == word[0].upper() for word in vocabulary.initial)


def test_slor_reads_the_unigram_model_in_the_same_case(cased: Path) -> None:
    """Witness: SLOR by hand, its unigram model given the words in small letters."""
    scorer = load_scorer(f"kenlm:{cased}/lower.2.arpa@lower+slor:{cased}/lower.1.arpa")
    plain, unigram = (load_model(f"kenlm:{cased}/lower.{order}.arpa") for order in (2, 1))
    own = load_scorer(f"kenlm:{cased}/lower.2.arpa+slor:{cased}/lower.1.arpa@lower")
    for sentence in TRIED[:5]:
        small = changed(sentence, str.lower)
        words = sum(term.log_prob for term in unigram.token_log_probs([small])[0][:-1])
        for rule, scored in ((scorer, small), (own, sentence)):
            expected = (plain.log_probs([scored])[0] - words) / len(sentence)
            assert rule.scores([sentence])[0] == pytest.approx(expected, abs=1e-9)


def test_a_search_takes_words_of_both_cases(cased: Path, trained: Path) -> None:
    """Witness: the scores of the found sentence, of the words changed by hand."""
    small, plain = (
        load_model(f"kenlm:{cased}/lower.2.arpa@lower"),
        load_model(f"kenlm:{trained}/3gram.arpa"),
    )
    words = Vocabulary.from_sentences(TRIED)
    found = synthesize(plain, small, TRIED[0], words, seed=0)
    assert found.changed
    in_small = load_model(f"kenlm:{cased}/lower.2.arpa")
    expected = in_small.log_probs([changed(found.synthetic, str.lower)])[0]
    assert found.log_probs[1] == pytest.approx(expected)


@pytest.mark.parametrize(("case", "change"), CASES.items())
def test_unknown_words_are_counted(cased: Path, case: str, change: Callable[[str], str]) -> None:
    """Witness: counts by hand."""
    model = load_model(f"kenlm:{cased / case}.2.arpa")
    words = [word for sentence in TRIED for word in sentence.words]
    unknown = [word for word in words if not model.knows([word])[0]]
    text, is_warning = unknown_words(model, TRIED)
    assert f"does not know {len(unknown)} of {len(words)} words" in text
    assert is_warning
    assert f"@{case}" in text
    right, _ = unknown_words(InLetterCase(model, case), TRIED)
    n_unknown = sum(not model.knows([change(word)])[0] for word in words)
    assert (f"does not know {n_unknown} of" in right) == bool(n_unknown)
    assert "kenlm:FILE" not in right


def test_a_model_of_both_cases_is_recognised(trained: Path, english: list[Sentence]) -> None:
    """A word that begins no sentence of its text is unknown in capitals, and known in small."""
    model = load_model(f"kenlm:{trained}/3gram.arpa")
    known = [sentence for sentence in english if model.knows(sentence.words).all()][:20]
    inner = (word for sentence in known for word in sentence.words[1:])
    start = next(word for word in inner if not model.knows([word.capitalize()])[0])
    strange = Sentence((start.capitalize(), *known[0].words[1:]))
    text, _ = unknown_words(model, [*known, strange])
    assert "does not know 1 of" in text
    assert f"such as {start.capitalize()} (in '{strange.text}')." in text
    assert "kenlm:FILE" not in text
