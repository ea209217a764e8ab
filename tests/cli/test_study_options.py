"""The options of `contstim triplets` about what sentences must keep, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contstim.cli import app
from contstim.errors import ContstimError
from contstim.items.stimuli import read_triplets
from contstim.models.ngram.adapter import NgramModel

INPUTS = (
    *("--model", "small=kenlm:2.arpa", "--model", "kenlm:3.arpa"),
    *("--sentences", "natural.txt", "--vocabulary", "vocab.txt", "--per-pair", "2"),
)


def triplets(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["triplets", *INPUTS, "--out", "t.csv", *arguments])


def record(folder: Path) -> dict[str, object]:
    facts: dict[str, object] = json.loads((folder / "t.csv.meta.json").read_text())
    return facts


def test_the_default_floor_is_recorded_in_nats(folder: Path) -> None:
    """Witness: no natural sentence below the floors that the record states."""
    assert triplets("-q", "--frame", "none", "--restarts", "1").exit_code == 0
    facts = record(folder)
    assert (facts["plausible"], facts["capitals"]) == (0.25, "rules")
    floors = facts["floors"]
    assert isinstance(floors, dict)
    assert set(floors) == {"small", "kenlm:3.arpa"}
    for triplet in read_triplets(folder / "t.csv"):
        length = str(len(triplet.natural))
        assert triplet.log_prob_natural_model_1 >= floors["small"][length]
        assert triplet.log_prob_natural_model_2 >= floors["kenlm:3.arpa"][length]


def test_a_judge_and_word_options_hold_and_are_recorded(folder: Path) -> None:
    (folder / "unwanted.txt").write_text("is\nwas\n")
    options = ("--plausible", "judge=kenlm:1.arpa:.1", "--exclude", "unwanted.txt")
    done = triplets(
        *options,
        "--frame",
        "none",
        "--restarts",
        "1",
        "--max-changes",
        "3",
        "--fix",
        "0",
    )
    assert done.exit_code == 0, done.output
    facts = record(folder)
    assert (facts["exclude"], facts["max_changes"], facts["fix"]) == (["is", "was"], 3, ["0"])
    assert isinstance(facts["judge"], dict)
    assert facts["judge"]["judge"]["specification"] == "kenlm:1.arpa"
    assert isinstance(facts["floors"], dict)
    floors = facts["floors"]["judge"]
    judge = NgramModel("1.arpa")
    for triplet in read_triplets(folder / "t.csv"):
        for sentence in (triplet.synthetic_1, triplet.synthetic_2):
            pairs = list(zip(triplet.natural.words, sentence.words, strict=True))
            assert pairs[0][0] == pairs[0][1]
            assert sum(old != new for old, new in pairs) <= 3
            assert judge.log_probs([sentence])[0] >= floors[str(len(sentence))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plausible", "kenlm:1.arpa"), "ends with no number"),
        (("--plausible", "2"), "from 0 to below 1"),
        (("--fix", "xylograph"), "no sentence has the word"),
    ],
)
def test_bad_input_is_one_message(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = triplets("-q", *arguments)
    assert isinstance(done.exception, ContstimError), done.output
    with pytest.raises(ContstimError, match=message):
        raise done.exception
    assert not (folder / "t.csv").exists()
