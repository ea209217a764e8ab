"""Recurrent models on disk: a folder of three files, none of which can run code.

recurrent.json     the kind and the sizes
model.safetensors  the weights
vocabulary.csv     the words in the order of their numbers, and how often each occurred
"""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import safetensors.torch
import torch
from safetensors import SafetensorError

from contstim.documents import read_json_object
from contstim.errors import ModelError
from contstim.files import write_text
from contstim.models.loading import resolve_device
from contstim.models.recurrent.adapter import BothSidesModel, LeftToRightModel
from contstim.models.recurrent.network import Kind, RecurrentNetwork, Shape
from contstim.models.specifications import RECURRENT_CONFIGURATION as CONFIGURATION
from contstim.models.tensors import write_tensors
from contstim.models.training_text import TrainingText
from contstim.models.vocabularies import WordList

if TYPE_CHECKING:
    from contstim.models.loading import Device
    from contstim.models.recurrent.adapter import RecurrentModel

_WEIGHTS, _WORDS = "model.safetensors", "vocabulary.csv"
_FORMAT = 1
_MOST = {"words": 10**8, "embedding": 10**6, "hidden": 10**6, "layers": 1_000}
_MOST_CLUSTERS = 100


def load_recurrent(
    location: str | Path, *, name: str | None = None, family: str = "", device: Device = "auto"
) -> RecurrentModel:
    """Load the model of a folder that `contstim train` wrote.

    Args:
        location: the folder.
        name: the model's name, by default the folder's.
        family: the kind that the model must be, `rnn`, `lstm` or `bilstm`; empty for any.
        device: `auto` is a GPU where there is one.

    Raises:
        ModelError: the folder holds no complete model, or one of another kind; or there is no
            such device.
    """
    network, words = read_folder(location)
    kind = network.shape.kind
    if family and family != kind:
        raise ModelError(f"{location} holds a model of kind {kind}: write {kind}:{location}.")
    adapter = BothSidesModel if network.shape.reads_both_sides else LeftToRightModel
    return adapter(
        network,
        words,
        name=name or str(location),
        device=resolve_device(device),
        training_text=TrainingText.beside(location),
    )


def write_folder(folder: Path, network: RecurrentNetwork, words: WordList) -> None:
    """Write a model; the configuration comes last, so that an incomplete folder has none.

    Raises:
        InputError: a file cannot be written.
    """
    words.write(folder / _WORDS)
    write_tensors(folder / _WEIGHTS, dict(network.state_dict()))
    facts = {"format": _FORMAT, **asdict(network.shape)}
    write_text(folder / CONFIGURATION, json.dumps(facts, indent=2) + "\n")


def read_folder(folder: Path | str) -> tuple[RecurrentNetwork, WordList]:
    """Read a model, in evaluation mode, on the CPU.

    Raises:
        ModelError: a file is missing, damaged, or does not fit the others.
    """
    folder = Path(folder)
    shape = _read_shape(folder)
    words = WordList.read(folder / _WORDS)
    if len(words) != shape.words:
        raise ModelError(
            f"{folder} is damaged: its network reads {shape.words:,} words and {_WORDS} makes "
            f"{len(words):,}. Train the model anew."
        )
    return _read_network(folder / _WEIGHTS, shape), words


def _read_network(path: Path, shape: Shape) -> RecurrentNetwork:
    """The weights, compared with the sizes before memory is reserved for any."""
    try:
        weights = safetensors.torch.load_file(path)
        # a network without memory, whose shapes the weights must have, and which takes them over
        with torch.device("meta"):
            network = RecurrentNetwork(shape)
        network.load_state_dict(weights, assign=True)
    except (OSError, RuntimeError, ValueError, TypeError, SafetensorError) as error:
        what = " ".join(str(error).split())[:200].rstrip(".:") or type(error).__name__
        raise ModelError(f"Cannot read the weights in {path}: {what}. Train anew.") from error
    for name, weight in network.named_parameters():
        if weight.dtype != torch.float32:
            raise ModelError(f"{path} is damaged: {name} is {weight.dtype}, not torch.float32.")
        if not bool(weight.isfinite().all()):
            raise ModelError(f"{path} is damaged: {name} holds values that are not finite numbers.")
    return network.eval()


def _read_shape(folder: Path) -> Shape:
    path = folder / CONFIGURATION
    if not path.is_file():
        kinds = "|".join(get_args(Kind))
        raise ModelError(
            f"There is no recurrent model in {folder} ({CONFIGURATION} is missing). Train one with "
            f"'contstim train {kinds}'."
        )
    try:
        facts = read_json_object(path)
        version = facts.pop("format")
        if type(version) is not int or version != _FORMAT or facts["kind"] not in get_args(Kind):
            raise ValueError("written by another version of contstim")
        shape = Shape(**facts | {"cutoffs": tuple(facts["cutoffs"])})
        _check_shape(shape)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path} does not describe a recurrent model ({error}).") from error
    return shape


def _check_shape(shape: Shape) -> None:
    """Refuse sizes that no network can have.

    Raises:
        ValueError: names the size.
    """
    for name, most in _MOST.items():
        value = getattr(shape, name)
        # `type`, since True is an instance of int
        if type(value) is not int or not 1 <= value <= most:
            raise ValueError(f"{name} is {value!r:.40}, not a whole number from 1 to {most:,}")
    if type(shape.dropout) not in (int, float) or not 0 <= shape.dropout < 1:
        raise ValueError(f"dropout is {shape.dropout!r:.40}, not a number from 0 to below 1")
    # clusters end at rising numbers, below the number of classes; a BiLSTM has no boundary class
    ends = (0, *shape.cutoffs, shape.words - shape.reads_both_sides)
    whole = all(type(end) is int for end in ends) and len(ends) <= _MOST_CLUSTERS
    if not whole or any(b <= a for a, b in pairwise(ends)):
        raise ValueError(f"cutoffs are {shape.cutoffs!r:.40}, not rising numbers below {ends[-1]}")
