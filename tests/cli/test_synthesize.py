"""`contstim synthesize` with recipes, objectives and constraints, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contstim.cli.output import INCOMPLETE
from contstim.cli.program import app
from contstim.errors import ContstimError
from contstim.models.ngram.adapter import NgramModel
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory, english: list[Sentence]) -> Path:
    path = tmp_path_factory.mktemp("words") / "vocab.txt"
    Vocabulary.from_sentences(english, min_count=10).save(path)
    return path


@pytest.fixture(scope="module")
def natural(unseen: list[Sentence], words: Path) -> Sentence:
    vocabulary = Vocabulary.load(words)
    return next(s for s in unseen if not vocabulary.missing_words(s))


def invoke(trained: Path, words: Path, natural: Sentence, *options: str) -> str:
    models = [f"kenlm:{trained / f'{order}gram.arpa'}" for order in (3, 2)]
    arguments = ["synthesize", "--accept", models[0], "--reject", models[1], "--frame", "none"]
    arguments += ["--vocabulary", str(words), "--sentence", natural.text, *options]
    done = CliRunner().invoke(app, arguments, catch_exceptions=True)
    if done.exception is not None and done.exit_code != INCOMPLETE:
        raise done.exception
    return done.stdout


def found(trained: Path, words: Path, natural: Sentence, *options: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(invoke(trained, words, natural, *options, "--json"))
    return answer


def test_constraints_reach_the_search(trained: Path, words: Path, natural: Sentence) -> None:
    """Witness: the words and characters of the result."""
    second, third = natural.words[1:3]
    options = ("--fix", second, "--fix", "7", "--max-changes", "3", "--same-length", "4")
    free = found(trained, words, natural, "--restarts", "1")
    put_in = free["steps"][0]["new"]
    result = Sentence.parse(
        found(trained, words, natural, *options, "--exclude", put_in)["synthetic"]
    )
    assert result.words[1] == second
    assert result.words[7] == natural.words[7]
    assert sum(x != y for x, y in zip(result.words, natural.words, strict=True)) <= 3
    assert abs(len(result.text) - len(natural.text)) <= 4
    assert put_in not in result.words
    listed = words.with_name("few.txt")
    listed.write_text("dog\nhouse\nold\ngarden\n", encoding="utf-8")
    only = found(trained, words, natural, "--allow", str(listed), "--allow", third, "--fix=0")
    allowed = {"dog", "house", "old", "garden", third.lower()} | set(map(str.lower, natural.words))
    assert set(map(str.lower, Sentence.parse(only["synthetic"]).words)) <= allowed


def test_few_changes_show_what_each_word_is_worth(
    trained: Path, words: Path, natural: Sentence
) -> None:
    """Witness: the nats of the result, and the number of words that differ."""
    options = ("--frame", "words", "--enough")
    result = found(trained, words, natural, *options, "0.5")
    natural_2, synthetic_2 = (
        result[f"log_probs_{of}"]["reject"] for of in ("natural", "synthetic")
    )
    assert natural_2 - synthetic_2 >= 0.5
    pairs = zip(Sentence.parse(result["synthetic"]).words, natural.words, strict=True)
    n_new = sum(new != old for new, old in pairs)
    assert result["minimal"]
    shown = invoke(trained, words, natural, *options, "0.5")
    assert f"{n_new} new word" in shown
    assert not found(trained, words, natural, *options, "99")["changed"]


def test_a_symmetric_pair(trained: Path, words: Path, natural: Sentence) -> None:
    """Witness: KenLM asked in this process."""
    answer = found(trained, words, natural, "--objective", "symmetric", "--restarts", "1")
    texts = [Sentence.parse(answer[f"sentence_{n}"]) for n in (1, 2)]
    for number, order in ((1, 2), (2, 3)):  # model_1 is the reject model
        scores = NgramModel(trained / f"{order}gram.arpa").log_probs(texts)
        name = answer[f"model_{number}"]
        assert f"{order}gram" in name
        assert [answer[f"log_probs_sentence_{n}"][name] for n in (1, 2)] == scores.tolist()
    assert answer["disagreement"] > 0
    shown = invoke(trained, words, natural, "--objective", "symmetric", "--restarts", "1", "-q")
    assert "Disagreement" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fix", "zebra"), "no word 'zebra', and positions go from 0 to 7"),
        (("--frame", "none", "--judge", "kenlm:{one}"), "leave out"),
        (
            ("--objective", "symmetric", "--accept", "kenlm:{one}"),
            "one model each in --accept and --reject",
        ),
        (tuple(f"--fix={p}" for p in range(8)), "All positions"),
        (("--allow", "zebra"), "may replace any word of .* Loosen them"),
        (("--restarts", "1", "--seconds", "5"), "A single search always finishes"),
        (("--seconds", "0"), "--seconds must be above 0"),
    ],
)
def test_what_cannot_be_is_explained(
    trained: Path, words: Path, natural: Sentence, options: tuple[str, ...], message: str
) -> None:
    one = trained / "1gram.arpa"
    with pytest.raises(ContstimError, match=message):
        invoke(trained, words, natural, *(option.format(one=one) for option in options))


@pytest.mark.parametrize("objective", ["accept-reject", "symmetric"])
def test_it_says_when_nothing_was_found(
    trained: Path, tmp_path: Path, natural: Sentence, objective: str
) -> None:
    """With one word to put in, of which neither model thinks better."""
    first, *rest = natural.words
    words = tmp_path / "few.txt"
    Vocabulary((first,), (*rest, "xylograph"), frozenset()).save(words)
    models = [f"kenlm:{trained / f'{order}gram.arpa'}" for order in (3, 2)]
    arguments = ["synthesize", "--accept", models[0], "--reject", models[1], "--frame", "none"]
    arguments += ["--allow-unknown"]
    arguments += ["--vocabulary", str(words), "--sentence", natural.text, "--fix", "0"]
    done = CliRunner().invoke(app, [*arguments, "--objective", objective])
    assert done.exit_code == 3, done.exception
    assert (
        "No result: the search found no sentence on which these models disagree more."
        in done.stderr
    )
    told = CliRunner().invoke(app, [*arguments, "--objective", objective, "--json"])
    assert told.exit_code == 3
    answer = json.loads(told.stdout)
    assert answer["changed"] is False
    assert answer.get("synthetic", answer.get("sentence_1")) == natural.text
