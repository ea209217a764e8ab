"""Interrupted training continues bit for bit, and only with unchanged settings."""

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
from tests.models.training.runs import ALL_KINDS, TRAINING, list_losses, load_weights, train

Trained = Callable[[str], Training]
DEEP = [pytest.param(kind, 7, marks=pytest.mark.slow) for kind in ("rnn", "bilstm", "gpt2")]


class _InterruptedError(Exception):
    pass


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Return the uninterrupted training of a kind, run once; its folder is only read."""
    return cache(lambda kind: train(kind, tmp_path_factory.mktemp("whole") / kind))


@pytest.fixture(scope="module")
def interrupted_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an interrupted LSTM training, to be copied."""
    return begin_training("lstm", tmp_path_factory.mktemp("begun") / "lstm")


def interrupt(progress: Progress) -> None:
    """Interrupt training in the middle of the third epoch."""
    if progress.epoch == 3 and progress.step % 5 == 2:
        raise _InterruptedError


def begin_training(kind: str, out: Path) -> Path:
    with pytest.raises(_InterruptedError):
        train(kind, out, on_progress=interrupt)
    assert (out / CHECKPOINT).is_file()
    return out


def assert_same_weights(ours: Path, theirs: Path) -> None:
    first, second = load_weights(ours), load_weights(theirs)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_resumed_trainings_equal_uninterrupted_trainings(
    kind: str, tmp_path: Path, uninterrupted: Trained
) -> None:
    """Witness: the same training without an interruption, with dropout and masks."""
    expected = uninterrupted(kind)
    begin_training(kind, tmp_path / "parts")
    torch.manual_seed(12345)  # other code may have used random numbers meanwhile
    resumed = train(kind, tmp_path / "parts")
    assert list_losses(resumed) == list_losses(expected)
    assert_same_weights(tmp_path / "parts", expected.out)
    assert not (tmp_path / "parts" / CHECKPOINT).exists()
    assert list_losses(expected)[2][0] < list_losses(expected)[0][0]


@pytest.mark.parametrize(("kind", "stop"), [("lstm", 1), ("bert", 7), ("lstm", 13), *DEEP])
def test_training_resumes_within_an_epoch_bit_for_bit(
    kind: str, stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: Trained
) -> None:
    """Witness: the same training without an interruption, with dropout and masks.

    A kill has the same effect, because checkpoints are saved before it.
    """
    expected = uninterrupted(kind)
    monkeypatch.setattr(loop, "_SAVE_EVERY", 0.0)

    def interrupt(progress: Progress) -> None:
        if progress.step == stop + 1:
            raise _InterruptedError

    with pytest.raises(_InterruptedError):
        train(kind, tmp_path / "parts", on_progress=interrupt)
    torch.manual_seed(12345)
    steps: list[int] = []
    resumed = train(kind, tmp_path / "parts", on_progress=lambda p: steps.append(p.step))
    assert steps[0] == stop + 1  # no step is done twice
    assert list_losses(resumed) == list_losses(expected)
    assert [e.predictions for e in resumed.curve] == [e.predictions for e in expected.curve]
    assert_same_weights(tmp_path / "parts", expected.out)


def test_training_does_not_change_the_random_state(tmp_path: Path) -> None:
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    train("lstm", tmp_path / "lstm")
    assert torch.equal(torch.rand(1), expected)


def test_finished_training_is_not_repeated(tmp_path: Path) -> None:
    def refuse(_: Progress) -> None:
        raise AssertionError("trained again")

    first = train("rnn", tmp_path / "rnn")
    second = train("rnn", tmp_path / "rnn", on_progress=refuse)
    assert second.curve == first.curve
    assert second.ended == first.ended


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epochs": 4}, r"`epochs` must be 3, .*, got 4\."),
        ({"learning_rate": 0.01}, r"`learning_rate` must be 0.02, .*, got 0.01\."),
        ({"seed": 1}, "seed"),
        ({"hidden": 9}, "hidden"),
        ({"vocabulary_size": 50}, r"`vocabulary_size` must be None, .*, got 50\."),
    ],
)
def test_changed_settings_are_refused_by_name(
    finished: bool,
    changed: dict[str, float],
    message: str,
    tmp_path: Path,
    interrupted_folder: Path,
    uninterrupted: Trained,
) -> None:
    out = tmp_path / "lstm"
    shutil.copytree(uninterrupted("lstm").out if finished else interrupted_folder, out)
    content_by_name = {path.name: path.read_bytes() for path in out.iterdir()}
    training_changes = {name: value for name, value in changed.items() if hasattr(TRAINING, name)}
    changes = {name: value for name, value in changed.items() if name not in training_changes}
    with pytest.raises(InputError, match=message):
        train("lstm", out, replace(TRAINING, **training_changes), **changes)  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in out.iterdir()} == content_by_name


def test_other_kind_of_network_or_other_text_is_refused(
    interrupted_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shutil.copytree(interrupted_folder, tmp_path / "lstm")
    with pytest.raises(InputError, match="`kind`"):
        train("rnn", out)
    monkeypatch.setattr(runs, "SENTENCES", runs.SENTENCES[1:])
    with pytest.raises(InputError, match=r"`text` must be .*, as in the training"):
        train("lstm", out)


def test_folder_with_other_files_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="is not empty, but contains no training"):
        train("gpt2", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="it is a file"):
        train("rnn", tmp_path / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "file"]


def test_damaged_checkpoint_is_reported(tmp_path: Path) -> None:
    out = begin_training("rnn", tmp_path / "rnn")
    content = (out / CHECKPOINT).read_bytes()
    for damaged in (b"", content[:200], content[:-50]):
        (out / CHECKPOINT).write_bytes(damaged)
        with pytest.raises(InputError, match="is not a checkpoint"):
            train("rnn", out)


def test_invalid_records_are_refused(tmp_path: Path) -> None:
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


def test_full_disk_leaves_the_previous_checkpoint(tmp_path: Path, uninterrupted: Trained) -> None:
    """Witness: the operating system's own limit on the size of files."""
    out = tmp_path / "lstm"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    checkpoints: list[bytes] = []

    def limit_file_size(progress: Progress) -> None:
        if progress.epoch == 2 and not checkpoints:
            checkpoints.append((out / CHECKPOINT).read_bytes())
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(checkpoints[0]) // 2, hard))

    try:
        with pytest.raises(InputError, match=r"Cannot write .*File too large"):
            train("lstm", out, on_progress=limit_file_size)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (out / CHECKPOINT).read_bytes() == checkpoints[0]
    assert [path.name for path in out.iterdir()] == [CHECKPOINT]
    resumed = train("lstm", out)
    assert list_losses(resumed) == list_losses(uninterrupted("lstm"))


def test_kill_during_saving_leaves_the_previous_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: Trained
) -> None:
    """Witness: an uninterrupted training. The folder is copied as a kill would leave it."""
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
    assert len(list(out.iterdir())) == 2  # the checkpoint, and half of another
    epochs: list[int] = []
    resumed = train("lstm", out, on_progress=lambda progress: epochs.append(progress.epoch))
    assert set(epochs) == {2, 3}
    assert list_losses(resumed) == list_losses(uninterrupted("lstm"))
    assert_same_weights(out, uninterrupted("lstm").out)
    assert not list(out.glob(".*"))
