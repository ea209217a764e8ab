"""A damaged file of a checkpoint is refused by name, or scores are unchanged.

Witness: the undamaged folder; no damage may change a score. A new kind of checkpoint is covered by
its name in `KINDS`, a new damage by one line in `DAMAGES`.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from contstim.errors import ModelError
from tests.models import damages
from tests.models.checkpoints.conftest import Copy, Scores, edit, edit_weights, score
from tests.models.damages import Damage

KINDS = {
    "bert": ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
    "gpt2": ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
    "classifier": ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
}
SKIPPED = ("one byte changed", "zeros", "carriage returns")  # give other valid weights


def _link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


DAMAGES: dict[str, Damage] = {
    **{name: damage for name, damage in damages.DAMAGES.items() if name not in SKIPPED},
    "an empty object": lambda path: path.write_text("{}"),
    "half a surrogate": lambda path: path.write_text('{"model_type": "\\ud800"}'),
    "a link to itself": _link_to_itself,
}


def _check_refused_or_same(folder: Path, expected: np.ndarray) -> ModelError | None:
    """Check that scores are unchanged or a short error names the folder; return the error."""
    try:
        scores = score(folder)
    except ModelError as error:
        message = str(error)
        assert str(folder) in message
        assert len(message) < 800
        message.encode()
        return error
    assert np.array_equal(scores, expected)
    return None


# All damages for one kind of checkpoint, and two damages for the other kinds
DAMAGED = [
    *(("bert", file, damage) for file in KINDS["bert"] for damage in DAMAGES),
    *(
        (kind, file, damage)
        for kind in ("gpt2", "classifier")
        for file in KINDS[kind]
        for damage in ("cut in the middle", "another file")
    ),
]


@pytest.mark.parametrize(("kind", "file", "damage"), DAMAGED)
def test_damaged_file_is_refused_or_harmless(
    copy: Copy,
    undamaged_scores: Scores,
    capfd: pytest.CaptureFixture[str],
    kind: str,
    file: str,
    damage: str,
) -> None:
    folder = copy(kind)
    expected = undamaged_scores(kind)
    capfd.readouterr()
    DAMAGES[damage](folder / file)
    error = _check_refused_or_same(folder, expected)
    assert error is not None or file != "model.safetensors"
    printed = capfd.readouterr()
    assert "Traceback" not in printed.err
    assert not printed.out


VALUES: dict[str, object] = {
    "null": None,
    "zero": 0,
    "text": "x",
    "negative": -1,
    "huge": 10**9,
    "beyond 64 bits": 10**30,
    "nan": float("nan"),
    "a list": [],
    "an object": {},
    "half a surrogate": "\ud800",
}
ENTRIES: list[tuple[str, str, object]] = [
    *(("bert", "hidden_size", value) for value in VALUES.values()),
    *(("gpt2", "n_layer", v) for name, v in VALUES.items() if not name.startswith(("hu", "bey"))),
    *(("bert", size, 10**9) for size in ("num_attention_heads", "vocab_size")),
    *(("gpt2", size, 10**9) for size in ("n_embd", "n_head", "n_positions")),
    ("gpt2", "dtype", "float7"),
    ("gpt2", "architectures", 7),
    ("gpt2", "model_type", []),
    ("gpt2", "layer_norm_epsilon", None),
    ("gpt2", "layer_norm_epsilon", float("inf")),
    ("gpt2", "activation_function", "nonsense"),
    ("gpt2", "auto_map", 7),
    ("gpt2", "pad_token_id", 10**30),
]


@pytest.mark.parametrize(("kind", "entry", "value"), ENTRIES)
def test_bad_configuration_is_refused(copy: Copy, kind: str, entry: str, value: object) -> None:
    folder = copy(kind)
    edit(folder / "config.json", **{entry: value})
    with pytest.raises(ModelError, match=rf"{folder}|{entry} in config\.json"):
        score(folder)


@pytest.mark.parametrize("value", [None, 7, {"__type": "AddedToken"}, []], ids=str)
def test_invalid_unknown_token_is_refused_or_harmless(
    copy: Copy, undamaged_scores: Scores, value: object
) -> None:
    folder = copy("bert")
    edit(folder / "tokenizer_config.json", unk_token=value)
    _check_refused_or_same(folder, undamaged_scores("bert"))


@pytest.mark.parametrize("damage", ["whole", "empty", "cut in the middle", "random bytes"])
def test_pickles_are_read_or_refused(copy: Copy, undamaged_scores: Scores, damage: str) -> None:
    folder = copy("gpt2")
    pickled = folder / "pytorch_model.bin"
    torch.save(load_file(folder / "model.safetensors"), pickled)
    (folder / "model.safetensors").unlink()
    if damage != "whole":
        DAMAGES[damage](pickled)
    error = _check_refused_or_same(folder, undamaged_scores("gpt2"))
    assert (error is None) == (damage == "whole")


class _Touch:
    """A hostile pickle, which makes a folder when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        import os

        return os.mkdir, (str(self.marker),)


def test_hostile_pickle_is_refused_and_not_run(copy: Copy, tmp_path: Path) -> None:
    folder = copy("gpt2")
    (folder / "model.safetensors").unlink()
    torch.save({"weight": _Touch(tmp_path / "ran")}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="Cannot load"):
        score(folder)
    assert not (tmp_path / "ran").exists()


def _largest(weights: dict[str, torch.Tensor]) -> torch.Tensor:
    return max(weights.values(), key=torch.numel)


WEIGHTS: dict[str, tuple[Callable[[dict[str, torch.Tensor]], object], str]] = {
    "one nan": (lambda w: _largest(w)[5].__setitem__(0, float("nan")), "not finite"),
    "one infinity": (lambda w: _largest(w)[5].__setitem__(0, float("inf")), "not finite"),
    "all zero": (lambda w: [weight.zero_() for weight in w.values()], "does not depend on"),
    "whole numbers": (
        lambda w: w.update({name: weight.to(torch.int8) for name, weight in w.items()}),
        "stored as integers",
    ),
    "one missing": (lambda w: w.pop(sorted(w)[3]), "weights are missing"),
    "one too many": (lambda w: w.update(more=torch.zeros(3)), "do not belong.*such as more"),
}


@pytest.mark.parametrize("damage", WEIGHTS)
@pytest.mark.parametrize("kind", ["bert", "gpt2", "classifier"])
def test_invalid_weights_are_refused(copy: Copy, kind: str, damage: str) -> None:
    change, message = WEIGHTS[damage]
    folder = copy(kind)
    edit_weights(folder, change)
    with pytest.raises(ModelError, match=message):
        score(folder)
