"""Code that lies in a folder runs only where the user says so."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from contstim.errors import ModelError
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from tests.models.checkpoints.conftest import Copy, edit

NETWORK = """
from pathlib import Path
from transformers import GPT2Config, GPT2LMHeadModel

Path({marker!r}).touch()


class OwnConfig(GPT2Config):
    model_type = {kind!r}


class OwnModel(GPT2LMHeadModel):
    config_class = OwnConfig
"""
TOKENIZER = """
from pathlib import Path
from transformers import GPT2Tokenizer

Path({marker!r}).touch()


class OwnTokenizer(GPT2Tokenizer):
    pass
"""


def _own_network(folder: Path, marker: Path, kind: str) -> None:
    """Make the network one that only the code beside it can build."""
    (folder / "own_network.py").write_text(NETWORK.format(marker=str(marker), kind=kind))
    edit(
        folder / "config.json",
        model_type=kind,
        architectures=["OwnModel"],
        auto_map={
            "AutoConfig": "own_network.OwnConfig",
            "AutoModelForCausalLM": "own_network.OwnModel",
        },
    )


def _own_tokenizer(folder: Path, marker: Path) -> None:
    (folder / "own_tokenizer.py").write_text(TOKENIZER.format(marker=str(marker)))
    edit(folder / "config.json", model_type="gpt2")
    edit(
        folder / "tokenizer_config.json",
        tokenizer_class="OwnTokenizer",
        auto_map={"AutoTokenizer": ["own_tokenizer.OwnTokenizer", None]},
    )


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.mark.parametrize("kind", ["own", "gpt2"])
def test_a_network_of_its_own_is_refused(copy: Copy, marker: Path, kind: str) -> None:
    """Also where the library has a network of that type, which is not the one that was trained."""
    folder = copy("gpt2")
    _own_network(folder, marker, kind)
    with pytest.raises(ModelError, match=r"own_network\.OwnModel.*--trust-remote-code") as caught:
        load_checkpoint(str(folder), Loading(device="cpu"))
    assert str(folder) in str(caught.value)
    assert not marker.exists()


def test_a_tokenizer_of_its_own_is_refused(copy: Copy, marker: Path) -> None:
    """The library would take its own for the network's type, which cuts words otherwise."""
    folder = copy("gpt2")
    _own_tokenizer(folder, marker)
    with pytest.raises(ModelError, match=r"own_tokenizer\.OwnTokenizer.*--trust-remote-code"):
        load_checkpoint(str(folder), Loading(device="cpu"))
    assert not marker.exists()
    edit(folder / "tokenizer_config.json", tokenizer_class="GPT2Tokenizer")
    load_checkpoint(str(folder), Loading(device="cpu"))
    assert not marker.exists()


def test_code_runs_with_the_option(
    copy: Copy, marker: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = copy("gpt2")
    _own_network(folder, marker, "own")
    checkpoint = load_checkpoint(str(folder), Loading(device="cpu", trust_remote_code=True))
    assert type(checkpoint.model).__name__ == "OwnModel"
    assert marker.exists()


def test_nobody_is_asked_on_the_terminal(
    copy: Copy, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: answers that nobody has read."""
    folder = copy("gpt2")
    _own_network(folder, marker, "own")
    answers = io.StringIO("yes\n" * 100)
    monkeypatch.setattr("sys.stdin", answers)
    with pytest.raises(ModelError, match="--trust-remote-code"):
        load_checkpoint(str(folder), Loading(device="cpu"))
    assert answers.tell() == 0
    assert not marker.exists()
