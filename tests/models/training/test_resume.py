"""Interrupted training: it continues bit for bit, and only where it may."""

import json
import os
import resource
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from contstim.errors import InputError
from contstim.models.training import loop
from contstim.models.training.loop import Progress
from contstim.models.training.record import CHECKPOINT, Training
from tests.models.training import runs
from tests.models.training.runs import ALL_KINDS, TRAINING, losses, train, weights

Trained = Callable[[str], Training]
DEEP = [pytest.param(kind, 7, marks=pytest.mark.slow) for kind in ("rnn", "bilstm", "gpt2")]


class _InterruptedError(Exception):
    pass


@pytest.fixture(scope="module")
def whole_of(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A training of a kind that was left alone, done once; its folder is only read."""
    return cache(lambda kind: train(kind, tmp_path_factory.mktemp("whole") / kind))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of an LSTM that was interrupted, to be copied."""
    return begin("lstm", tmp_path_factory.mktemp("begun") / "lstm")


def interrupt(progress: Progress) -> None:
    """In the middle of the third epoch."""
    if progress.epoch == 3 and progress.step % 5 == 2:
        raise _InterruptedError


def begin(kind: str, out: Path) -> Path:
    with pytest.raises(_InterruptedError):
        train(kind, out, on_progress=interrupt)
    assert (out / CHECKPOINT).is_file()
    return out


def assert_same(ours: Path, theirs: Path) -> None:
    first, second = weights(ours), weights(theirs)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_resumed_equal_uninterrupted_ones(kind: str, tmp_path: Path, whole_of: Trained) -> None:
    """Witness: the same training without an interruption, with dropout and masks at work."""
    whole = whole_of(kind)
    begin(kind, tmp_path / "parts")
    torch.manual_seed(12345)  # whatever else has used chance in between
    resumed = train(kind, tmp_path / "parts")
    assert losses(resumed) == losses(whole)
    assert_same(tmp_path / "parts", whole.out)
    assert not (tmp_path / "parts" / CHECKPOINT).exists()
    assert losses(whole)[2][0] < losses(whole)[0][0]


@pytest.mark.parametrize(("kind", "stop"), [("lstm", 1), ("bert", 7), ("lstm", 13), *DEEP])
def test_a_training_stopped_within_an_epoch_goes_on_from_there_bit_for_bit(
    kind: str, stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_of: Trained
) -> None:
    """Witness: the same training without an interruption, with dropout and masks at work.

    A kill leaves no more: what is saved is saved before it.
    """
    whole = whole_of(kind)
    monkeypatch.setattr(loop, "_SAVE_EVERY", 0.0)

    def interrupt(progress: Progress) -> None:
        if progress.step == stop + 1:
            raise _InterruptedError

    with pytest.raises(_InterruptedError):
        train(kind, tmp_path / "parts", on_progress=interrupt)
    torch.manual_seed(12345)
    steps: list[int] = []
    resumed = train(kind, tmp_path / "parts", on_progress=lambda now: steps.append(now.step))
    assert steps[0] == stop + 1  # no step is done twice
    assert losses(resumed) == losses(whole)
    assert [one.predictions for one in resumed.curve] == [one.predictions for one in whole.curve]
    assert_same(tmp_path / "parts", whole.out)


def test_training_leaves_chance_as_it_was(tmp_path: Path) -> None:
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    train("lstm", tmp_path / "lstm")
    assert torch.equal(torch.rand(1), expected)


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    def refuse(_: Progress) -> None:
        raise AssertionError("trained again")

    done = train("rnn", tmp_path / "rnn")
    again = train("rnn", tmp_path / "rnn", on_progress=refuse)
    assert again.curve == done.curve
    assert again.ended == done.ended


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epochs": 4}, r"`epochs` .* 3, got 4\."),
        ({"learning_rate": 0.01}, r"`learning_rate` .* 0.02, got 0.01\."),
        ({"seed": 1}, "seed"),
        ({"hidden": 9}, "hidden"),
        ({"vocabulary_size": 50}, r"`vocabulary_size` .* None, got 50\."),
    ],
)
def test_changed_settings_are_refused_by_name(
    finished: bool,
    changed: dict[str, float],
    message: str,
    tmp_path: Path,
    begun: Path,
    whole_of: Trained,
) -> None:
    out = tmp_path / "lstm"
    shutil.copytree(whole_of("lstm").out if finished else begun, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    loop = {name: value for name, value in changed.items() if hasattr(TRAINING, name)}
    rest = {name: value for name, value in changed.items() if name not in loop}
    with pytest.raises(InputError, match=message):
        train("lstm", out, replace(TRAINING, **loop), **rest)  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_another_kind_of_network_and_another_text_are_refused(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shutil.copytree(begun, tmp_path / "lstm")
    with pytest.raises(InputError, match="`kind`"):
        train("rnn", out)
    monkeypatch.setattr(runs, "SENTENCES", runs.SENTENCES[1:])
    with pytest.raises(InputError, match=r"`text` must be that of the training"):
        train("lstm", out)


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="is not empty and contains no training"):
        train("gpt2", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="it is a file"):
        train("rnn", tmp_path / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "file"]


def test_a_damaged_checkpoint_is_said_to_be_one(tmp_path: Path) -> None:
    out = begin("rnn", tmp_path / "rnn")
    content = (out / CHECKPOINT).read_bytes()
    for damaged in (b"", content[:200], content[:-50]):
        (out / CHECKPOINT).write_bytes(damaged)
        with pytest.raises(InputError, match="is not a checkpoint"):
            train("rnn", out)


def test_records_of_no_training_are_refused(tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text(json.dumps({"settings": None}))
    with pytest.raises(InputError, match="not a record of a training"):
        train("rnn", tmp_path)
    out = tmp_path / "without a curve"
    train("rnn", out)
    record = json.loads((out / "training.json").read_text())
    del record["curve"]
    (out / "training.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="not a record of a training"):
        train("rnn", out)


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path: Path, whole_of: Trained) -> None:
    """Witness: the operating system's own limit on the size of files."""
    out = tmp_path / "lstm"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before: list[bytes] = []

    def fill(progress: Progress) -> None:
        if progress.epoch == 2 and not before:
            before.append((out / CHECKPOINT).read_bytes())
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before[0]) // 2, hard))

    try:
        with pytest.raises(InputError, match=r"Cannot write .*File too large"):
            train("lstm", out, on_progress=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (out / CHECKPOINT).read_bytes() == before[0]
    assert [path.name for path in out.iterdir()] == [CHECKPOINT]
    resumed = train("lstm", out)
    assert losses(resumed) == losses(whole_of("lstm"))


def test_a_kill_during_a_checkpoint_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_of: Trained
) -> None:
    """Witness: a training that was left alone. A kill leaves the folder as it is at that moment."""
    write, calls = safetensors.torch.save_file, []
    out = tmp_path / "killed"

    def save_file(tensors: Any, path: Path, metadata: Any) -> None:
        calls.append(path)
        write(tensors, path, metadata)
        if len(calls) == 3:  # the first checkpoint, the first epoch's, the second's
            os.truncate(path, path.stat().st_size // 2)
            shutil.copytree(tmp_path / "lstm", out)
            raise _InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(safetensors.torch, "save_file", save_file)
        with pytest.raises(_InterruptedError):
            train("lstm", tmp_path / "lstm")
    assert len(list(out.iterdir())) == 2  # the checkpoint, and half of another one
    epochs: list[int] = []
    resumed = train("lstm", out, on_progress=lambda progress: epochs.append(progress.epoch))
    assert set(epochs) == {2, 3}
    assert losses(resumed) == losses(whole_of("lstm"))
    assert_same(out, whole_of("lstm").out)
    assert not list(out.glob(".*"))
