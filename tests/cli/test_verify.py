"""`contstim verify` after a model was retrained, for each command that had used it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from contstim.study.verification import FileState, verify_folder
from tests.cli.running import succeed

MODELS = ("--model", "one=kenlm:1.arpa", "--model", "two=kenlm:2.arpa")
NATURAL = ("--sentences", "natural.txt")
WORDS = ("--vocabulary", "vocab.txt", "--frame", "none")
SEARCH = (*WORDS, "--restarts", "1")
TRIPLETS = ("triplets", *MODELS, *NATURAL, *SEARCH, "--per-pair", "1")

# Output of a command → the command
COMMANDS: dict[str, tuple[str, ...]] = {
    "scores.csv": ("score", *MODELS, *NATURAL, "--out", "scores.csv"),
    "words.txt": ("vocabulary", *MODELS, "--text", "natural.txt", "--out", "words.txt"),
    "triplets.csv": (*TRIPLETS, "--out", "triplets.csv"),
    "judged.csv": (
        *("triplets", "--model", "kenlm:2.arpa", "--model", "kenlm:3.arpa", *NATURAL, *WORDS),
        *("--judge", "kenlm:1.arpa", "--enough", "0.5", "--per-pair", "1", "--out", "judged.csv"),
    ),
    "found.json": (
        *("synthesize", "--accept", "kenlm:1.arpa", "--reject", "kenlm:3.arpa", *SEARCH),
        *("--sentence", "She went to the office with her brother.", "--out", "found.json"),
    ),
    "slor.csv": (
        *("score", "--model", "slor=kenlm:3.arpa+slor:1.arpa", *NATURAL),
        *("--out", "slor.csv"),
    ),
}


@pytest.mark.parametrize("out", COMMANDS)
def test_retrained_model_makes_results_stale(folder: Path, out: str) -> None:
    succeed(folder, *COMMANDS[out], "--quiet")
    assert not verify_folder(folder).wrong
    (folder / "1.arpa").write_bytes((folder / "2.arpa").read_bytes())
    wrong_files = {file.path: file for file in verify_folder(folder).wrong}
    assert wrong_files[out].state is FileState.STALE
    assert wrong_files[out].sentence.startswith("made of an earlier 1.arpa by 'contstim ")
    assert "has changed since" in wrong_files[out].sentence


def test_json_file_equals_the_printed_output(folder: Path) -> None:
    output = succeed(folder, *COMMANDS["found.json"], "--json")
    assert (folder / "found.json").read_text() == output


def test_new_commit_on_the_hub_makes_results_stale(
    folder: Path, hub_model: Callable[[str], str]
) -> None:
    name = hub_model("a" * 40)
    score = ("score", "--model", f"small=hf:{name}", *NATURAL, "--out", "scores.csv", "--quiet")
    succeed(folder, *score)
    assert not verify_folder(folder).wrong
    hub_model("b" * 40)
    (file,) = verify_folder(folder).wrong
    assert (file.path, file.state) == ("scores.csv", FileState.STALE)
    assert file.sentence.startswith(f"made with commit {'a' * 40} of {name} by 'contstim score ")
    assert file.sentence.endswith(f"the local cache of the hub has commit {'b' * 40}.")
    succeed(folder, *score)
    assert not verify_folder(folder).wrong
