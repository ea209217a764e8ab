"""Models by their names, and the files and commits that they come from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from contstim.errors import ModelError
from contstim.models.catalog import hub_commits, model_files, parameter_count
from contstim.models.families import FAMILIES
from contstim.models.specifications import CATALOGUE, hub_commit, parse_model


def test_the_catalogue_lists_the_nine_models_of_2023() -> None:
    """Witness: the paper's list of models."""
    assert list(CATALOGUE) == [
        "2-gram",
        "3-gram",
        "RNN",
        "LSTM",
        "bert-large-cased",
        "roberta-large",
        "xlm-mlm-en-2048",
        "electra-large-generator",
        "gpt2-xl",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense:model", "does not name a model"),
        ("model.xyz", "does not name a model"),
        ("", "A model must be"),
        ("kenlm:", "does not name a model"),
        ("kenlm:a.arpa@chain", "have no rule 'chain'"),
    ],
)
def test_an_unusable_specification_says_what_would_work(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        parse_model(text)
    assert any(name in str(caught.value) for name in [*FAMILIES, "family:"])


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


def test_weights_of_a_network_are_counted(tmp_path: Path) -> None:
    """By hand: a matrix of 2 by 3 and a vector of 4."""
    save_file({"a": np.zeros((2, 3)), "b": np.zeros(4)}, tmp_path / "model.safetensors")
    assert parameter_count(str(tmp_path)) == 10
    assert parameter_count(str(tmp_path / "none")) == parameter_count("no/such") == 0
