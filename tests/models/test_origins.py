"""What models are loaded from, against files and a cache of the hub that were made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from contstim.models.catalog import hub_commit, hub_commits, model_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    names = ("a.arpa", "a.arpa.counts.csv", "a.arpa.sentences.npy", "1.arpa", "gpt/config.json")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "gpt" / "training_sentences.npy").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("specification", "files"),
    [
        ("kenlm:a.arpa", {"a.arpa", "a.arpa.counts.csv", "a.arpa.sentences.npy"}),
        ("kenlm:1.arpa", {"1.arpa"}),
        ("hf:gpt@chain+slor:1.arpa", {"gpt", "gpt/training_sentences.npy", "1.arpa"}),
        ("server:http://h:8000/v1#m?tokenizer=gpt", {"gpt", "gpt/training_sentences.npy"}),
        (
            "server:http://h:8000/v1#m?tokenizer=gpt&draft=kenlm:1.arpa",
            {"gpt", "gpt/training_sentences.npy", "1.arpa"},
        ),
        ("hf:nobody/nothing", set()),
        ("", set()),  # a model that was made in Python
    ],
)
def test_files_of_a_model(specification: str, files: set[str]) -> None:
    assert {path.as_posix() for path in model_files([specification])} == files
    assert hub_commits([specification]) == {}


@pytest.mark.usefixtures("folder")
def test_commits_are_those_of_the_cache(hub_model: Callable[[str], str]) -> None:
    name = hub_model("a" * 40)
    specifications = [f"hf:{name}", f"server:http://h/v1#m?tokenizer={name}", "hf:no/such"]
    assert hub_commits(specifications) == {name: "a" * 40}
    hub_model("b" * 40)
    assert hub_commits(specifications) == {name: "b" * 40}
    assert hub_commit("no/such") == hub_commit("not/a/name") == hub_commit("./x") == ""
