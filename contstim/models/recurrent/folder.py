"""Recurrent models on disk: a folder of three files, none of which can execute code.

recurrent.json     kind and sizes
model.safetensors  weights
vocabulary.csv     words in the order of their numbers, with their counts
"""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import get_args

import safetensors.torch
import torch
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError

from contstim.errors import ModelError
from contstim.files.documents import read_json_object, shortened, write_json
from contstim.models.loading import Device, resolve_device
from contstim.models.recurrent.adapter import BothSidesModel, LeftToRightModel, RecurrentModel
from contstim.models.recurrent.network import Kind, RecurrentNetwork, Shape
from contstim.models.specifications import RECURRENT_CONFIGURATION as CONFIGURATION
from contstim.models.tensors import write_tensors
from contstim.models.training_text import training_text_beside
from contstim.models.vocabularies import WordList

_WEIGHTS, _WORDS = "model.safetensors", "vocabulary.csv"
_FORMAT = 1
_SHAPE = TypeAdapter(Shape)
_MOST_CLUSTERS = 100


def load_recurrent(
    location: str | Path,
    *,
    name: str | None = None,
    family: str = "",
    device: Device = "auto",
    end_mark: bool = True,
) -> RecurrentModel:
    """Load a model from a folder that `contstim train` wrote.

    Args:
        location: path of the folder.
        name: name of the model; by default the folder's.
        family: required kind, `rnn`, `lstm` or `bilstm`; empty for any.
        device: device to use; `auto` is a GPU if there is one.
        end_mark: whether end marks in the vocabulary are read.

    Raises:
        ModelError: if the folder has no complete model or one of another kind, or the device does
            not exist.
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
        training_text=training_text_beside(location),
        end_mark=end_mark,
    )


def write_folder(folder: Path, network: RecurrentNetwork, words: WordList) -> None:
    """Write a model; the configuration is written last, so that an incomplete folder has none.

    Raises:
        InputError: if a file cannot be written.
    """
    words.write(folder / _WORDS)
    write_tensors(folder / _WEIGHTS, dict(network.state_dict()))
    write_json(folder / CONFIGURATION, {"format": _FORMAT, **asdict(network.shape)})


def read_folder(folder: Path | str) -> tuple[RecurrentNetwork, WordList]:
    """Read a model, in evaluation mode, on the CPU.

    Raises:
        ModelError: if a file is missing, damaged, or does not fit the others.
    """
    folder = Path(folder)
    shape = _read_shape(folder)
    words = WordList.from_file(folder / _WORDS)
    if len(words) != shape.words:
        raise ModelError(
            f"{folder} is damaged: its network reads {shape.words:,} words and {_WORDS} "
            f"makes {len(words):,}. Train the model again."
        )
    return _read_network(folder / _WEIGHTS, shape), words


def _read_network(path: Path, shape: Shape) -> RecurrentNetwork:
    """Read the weights; their sizes are checked before memory is allocated."""
    try:
        weights = safetensors.torch.load_file(path)
        # A network without memory checks the shapes of the weights, and takes them over
        with torch.device("meta"):
            network = RecurrentNetwork(shape)
        network.load_state_dict(weights, assign=True)
    except (OSError, RuntimeError, ValueError, TypeError, SafetensorError) as error:
        problem = " ".join(str(error).split())[:200].rstrip(".:") or type(error).__name__
        raise ModelError(
            f"Cannot read the weights in {path}: {problem}. Train the model again."
        ) from error
    for name, weight in network.named_parameters():
        if weight.dtype != torch.float32:
            raise ModelError(f"{path} is damaged: {name} is {weight.dtype}, not torch.float32.")
        if not bool(weight.isfinite().all()):
            raise ModelError(f"{path} is damaged: {name} has values that are not finite.")
    return network.eval()


def _read_shape(folder: Path) -> Shape:
    path = folder / CONFIGURATION
    if not path.is_file():
        kinds = "|".join(get_args(Kind))
        raise ModelError(
            f"{folder} contains no recurrent model ({CONFIGURATION} is missing). Train one "
            f"with 'contstim train {kinds}'."
        )
    try:
        facts = read_json_object(path)
        if repr(facts.pop("format", None)) != str(_FORMAT):
            raise ValueError("written by another version of contstim")
        shape = _SHAPE.validate_json(json.dumps(facts), strict=True, extra="forbid")
        # Clusters end at rising numbers below the number of classes; a BiLSTM has no boundary class
        ends = (0, *shape.cutoffs, shape.words - shape.reads_both_sides)
        if len(ends) > _MOST_CLUSTERS or any(b <= a for a, b in pairwise(ends)):
            raise ValueError(f"cutoffs: {shortened(shape.cutoffs)} do not rise to below {ends[-1]}")
    except ValidationError as error:
        first = error.errors()[0]
        raise ModelError(
            f"{path} does not describe a recurrent model: {first['loc'][0]}: {first['msg']}, not "
            f"{shortened(first['input'])}."
        ) from error
    except ValueError as error:  # also invalid JSON
        raise ModelError(f"{path} does not describe a recurrent model ({error}).") from error
    return shape
