"""`contstim synthesize` with recipes, objectives and constraints, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from contstim.errors import ContstimError
from contstim.models.ngram.adapter import NgramModel
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.cli.running import invoke


@pytest.fixture(scope="module")
def word_list(tmp_path_factory: pytest.TempPathFactory, english: list[Sentence]) -> Path:
    path = tmp_path_factory.mktemp("words") / "vocab.txt"
    Vocabulary.from_sentences(english, min_count=10).save(path)
    return path


@pytest.fixture(scope="module")
def natural(unseen: list[Sentence], word_list: Path) -> Sentence:
    vocabulary = Vocabulary.load(word_list)
    return next(s for s in unseen if not vocabulary.missing_words(s))


Search = Callable[..., Result]


@pytest.fixture
def search(trained: Path, word_list: Path, natural: Sentence) -> Search:
    """Run `contstim synthesize` with options; later options replace earlier ones."""
    models = [f"kenlm:{trained / f'{order}gram.arpa'}" for order in (3, 2)]
    options = ("--accept", models[0], "--reject", models[1], "--sentence", natural.text)
    return partial(invoke, "synthesize --frame none --vocabulary", word_list, *options)


def read_result(result: Result) -> dict[str, Any]:
    return dict(json.loads(result.stdout))


def test_constraints_reach_the_search(search: Search, word_list: Path, natural: Sentence) -> None:
    """Witness: the words and characters of the result."""
    second_word, third_word = natural.words[1:3]
    options = ("--fix", second_word, "--fix", "7", "--max-changes", "3", "--same-length", "4")
    new_word = read_result(search("--restarts", "1", "--json"))["steps"][0]["new"]
    result = read_result(search(*options, "--exclude", new_word, "--json"))
    sentence = Sentence.parse(result["synthetic"])
    assert sentence.words[1] == second_word
    assert sentence.words[7] == natural.words[7]
    assert sum(x != y for x, y in zip(sentence.words, natural.words, strict=True)) <= 3
    assert abs(len(sentence.text) - len(natural.text)) <= 4
    assert new_word not in sentence.words
    allowed_path = word_list.with_name("few.txt")
    allowed_path.write_text("dog\nhouse\nold\ngarden\n", encoding="utf-8")
    allow_options = ("--allow", str(allowed_path), "--allow", third_word, "--fix=0")
    result = read_result(search(*allow_options, "--json"))
    allowed = {"dog", "house", "old", "garden", *natural.bare.lower().split(), third_word.lower()}
    assert set(map(str.lower, Sentence.parse(result["synthetic"]).words)) <= allowed


def test_few_changes_show_the_nats_of_each_word(search: Search, natural: Sentence) -> None:
    """Witness: the nats of the result, and the number of words that differ."""
    options = ("--frame", "words", "--enough")
    result = read_result(search(*options, "0.5", "--json"))
    natural_score, synthetic_score = (
        result[f"log_probs_{kind}"]["reject"] for kind in ("natural", "synthetic")
    )
    assert natural_score - synthetic_score >= 0.5
    pairs = zip(Sentence.parse(result["synthetic"]).words, natural.words, strict=True)
    n_new = sum(new != old for new, old in pairs)
    assert result["minimal"]
    assert f"{n_new} new word" in search(*options, "0.5").stdout
    assert not read_result(search(*options, "99", "--json"))["changed"]


def test_symmetric_objective_returns_a_pair(search: Search, trained: Path) -> None:
    """Witness: KenLM in this process."""
    options = ("--objective", "symmetric", "--restarts", "1")
    result = read_result(search(*options, "--json"))
    texts = [Sentence.parse(result[f"sentence_{n}"]) for n in (1, 2)]
    for number, order in ((1, 2), (2, 3)):  # model_1 is the reject model
        scores = NgramModel(trained / f"{order}gram.arpa").log_probs(texts)
        name = result[f"model_{number}"]
        assert f"{order}gram" in name
        assert [result[f"log_probs_sentence_{n}"][name] for n in (1, 2)] == scores.tolist()
    assert result["disagreement"] > 0
    assert "Disagreement" in search(*options, "-q").stdout


def test_scores_in_other_units_are_compared_in_standard_deviations(
    trained: Path, word_list: Path, natural: Sentence
) -> None:
    """Witness: log-probabilities of the model, divided by the number of its tokens."""
    accept, reject = f"kenlm:{trained / '3gram.arpa'}+mean", f"kenlm:{trained / '2gram.arpa'}"
    models = ("--accept", accept, "--reject", reject, "--sentence", natural.text)
    search = partial(invoke, "synthesize --enough 0.1 --vocabulary", word_list, *models)
    result = read_result(search("--json"))
    before, after = result["log_probs_natural"], result["log_probs_synthetic"]
    plain = NgramModel(trained / "3gram.arpa")
    for text, scores in ((result["natural"], before), (result["synthetic"], after)):
        sentence = Sentence.parse(text)
        per_token = plain.log_probs([sentence])[0] / plain.token_counts([sentence])[0]
        assert scores["accept"] == pytest.approx(per_token)
    drop = before["reject"] - after["reject"]
    assert drop / result["standard_deviations"][reject] >= 0.1
    assert after["accept"] >= before["accept"]
    assert "nats per token" in search().stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fix", "zebra"), "no word 'zebra', and positions go from 0 to 7"),
        (("--objective", "symmetric", "--frame", "words", "--enough", "1"), "--enough needs"),
        (("--frame", "none", "--judge", "kenlm:{unigram}"), "leave out"),
        (
            ("--objective", "symmetric", "--accept", "kenlm:{unigram}"),
            "one model each in --accept and --reject",
        ),
        (tuple(f"--fix={p}" for p in range(8)), "All positions"),
        (("--allow", "zebra"), "may replace any word of .* Loosen them"),
        (("--restarts", "1", "--seconds", "5"), "A single search always finishes"),
        (("--seconds", "0"), "--seconds must be above 0"),
    ],
)
def test_impossible_options_are_explained(
    search: Search, trained: Path, options: tuple[str, ...], message: str
) -> None:
    unigram = trained / "1gram.arpa"
    with pytest.raises(ContstimError, match=message):
        search(*(option.format(unigram=unigram) for option in options))


@pytest.mark.parametrize("objective", ["accept-reject", "symmetric"])
def test_unsuccessful_search_is_reported(
    search: Search, tmp_path: Path, natural: Sentence, objective: str
) -> None:
    """The only new word lowers the score under both models."""
    first_word, *other_words = natural.words
    few_words = tmp_path / "few.txt"
    Vocabulary((first_word,), (*other_words, "xylograph"), frozenset()).save(few_words)
    options = ("--allow-unknown", "--vocabulary", few_words, "--fix", "0", "--objective", objective)
    result, json_result = search(*options), search(*options, "--json")
    assert result.exit_code == json_result.exit_code == 3
    assert "No result: the search found no sentence" in result.stderr
    record = read_result(json_result)
    assert record["changed"] is False
    assert record.get("synthetic", record.get("sentence_1")) == natural.text
