"""The state of a training run on disk, and whether a run may go on with it.

One safetensors file holds the weights, the best weights so far, AdamW's moments, and as text the
settings and the curve. It is replaced whole after every epoch, and every five minutes within one,
then with the state of chance: a kill or a full disk leaves the one before.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from contstim.documents import parse_json_object, read_json_object
from contstim.errors import InputError
from contstim.models.tensors import write_tensors
from contstim.models.training.loop import Epoch, Part
from contstim.models.training.settings import option

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

    from contstim.models.training.loop import Trainer

    Identity = Mapping[str, object]

CHECKPOINT = "checkpoint.safetensors"
RECORD = "training.json"
_NOT_OPTIONS = {
    "kind": "The kind of model",
    "text_sha256": "The text",
    "validation_sha256": "The text kept apart",
    "precision": "The precision",
}


@dataclass(frozen=True, eq=False)
class State:
    """How far a run has come.

    Attributes:
        curve: the epochs done.
        best: the weights of the best of them, by name.
        part: what of the next one is done; None: nothing.
    """

    curve: tuple[Epoch, ...]
    best: Mapping[str, Tensor]
    part: Part | None = None


def write_checkpoint(folder: Path, identity: Identity, trainer: Trainer, state: State) -> None:
    """Replace the checkpoint of a folder.

    Raises:
        InputError: it cannot be written; the one before is still there.
    """
    tensors = {f"best/{name}": tensor for name, tensor in state.best.items()}
    for name, weight in trainer.task.network.named_parameters():
        tensors[f"weights/{name}"] = weight
        for moment, tensor in trainer.optimizer.state[weight].items():
            tensors[f"{moment}/{name}"] = tensor
    told = {"settings": dict(identity), "curve": [asdict(epoch) for epoch in state.curve]}
    if state.part is not None:
        numbers = vars(state.part)
        tensors |= {f"chance/{i}": one for i, one in enumerate(state.part.chance)}
        told["part"] = {name: value for name, value in numbers.items() if name != "chance"}
    write_tensors(folder / CHECKPOINT, tensors, {"run": json.dumps(told)})


def read_checkpoint(folder: Path, trainer: Trainer) -> State:
    """Put a trainer into the state of a folder's checkpoint.

    Raises:
        InputError: the file is damaged, or of another network.
    """
    import safetensors.torch
    import torch

    path = folder / CHECKPOINT
    told = _told(path)
    curve = tuple(Epoch(**epoch) for epoch in told["curve"])
    parts: dict[str, dict[str, Tensor]] = {"best": {}, "weights": {}, "chance": {}}
    for name, tensor in safetensors.torch.load_file(path).items():
        part, _, owner = name.partition("/")
        parts.setdefault(part, {})[owner] = tensor
    best, weights, chance = (parts.pop(name) for name in ("best", "weights", "chance"))
    named = dict(trainer.task.network.named_parameters())
    if {n: w.shape for n, w in named.items()} != {n: w.shape for n, w in weights.items()}:
        raise InputError(f"{path} holds another network. Remove it to train anew.")
    with torch.no_grad():
        for name, weight in named.items():
            weight.copy_(weights[name])
            moments = {
                m: found[name].to(weight.device) for m, found in parts.items() if name in found
            }
            if moments:  # there are none before the first step, nor of weights without a gradient
                trainer.optimizer.state[weight] = moments
    if "part" not in told:
        return State(curve, best)
    generators = tuple(chance[name] for name in sorted(chance))
    return State(curve, best, Part(**told["part"], chance=generators))


def is_begun(folder: Path, identity: Identity) -> bool:
    """Whether a folder holds a run, begun or finished, with this identity; False if it is free.

    Raises:
        InputError: it holds something else; names the setting that differs.
    """
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise InputError(f"Cannot write to {folder}: it is a file. Name another folder.")
    if (folder / CHECKPOINT).is_file():
        _check_same(folder, identity, _told(folder / CHECKPOINT)["settings"])
        return True
    if (folder / RECORD).is_file():
        _check_same(folder, identity, read_record(folder)["settings"])
        return True
    if any(not path.name.startswith(".") for path in folder.iterdir()):
        raise InputError(
            f"{folder} is not empty and holds no training of this command. Name another folder, "
            f"so that nothing is overwritten."
        )
    return False


def read_record(folder: Path) -> dict[str, Any]:
    """What `training.json` says.

    Raises:
        InputError: it cannot be read or is something else.
    """
    path = folder / RECORD
    try:
        record = read_json_object(path, constants=True)  # losses may be such
        if not isinstance(record["settings"], dict):
            raise TypeError("it names no settings")
        return record
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not a record of a training ({error}).") from error


def forget_checkpoint(folder: Path) -> None:
    """Remove a finished run's checkpoint, and what a killed one left behind."""
    (folder / CHECKPOINT).unlink(missing_ok=True)
    for partial in folder.glob(f".{CHECKPOINT}.*.partial"):
        partial.unlink(missing_ok=True)


def _check_same(folder: Path, now: Identity, then: Identity) -> None:
    for name in (*now, *then):
        new, old = (json.loads(json.dumps(settings.get(name))) for settings in (now, then))
        if new != old:
            what = _NOT_OPTIONS.get(name, option(name))
            values = "" if name.endswith("_sha256") else f" ({old!r} then, {new!r} now)"
            raise InputError(
                f"{what} is not the one with which {folder} was begun{values}. Give what was given "
                f"then to go on, or name another folder."
            )


def _told(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            return parse_json_object(file.metadata()["run"], path, constants=True)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is damaged or no checkpoint of a training ({error}). Remove it to train anew."
        ) from error
