"""Recurrent models on disk: a folder of three files, none of which can run code.

recurrent.json     the kind and the sizes
model.safetensors  the weights
vocabulary.csv     the words in the order of their numbers, and how often each occurred
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import safetensors.torch
from safetensors import SafetensorError

from contstim.errors import ModelError
from contstim.files import write_text
from contstim.models.catalog import RECURRENT_CONFIGURATION as CONFIGURATION
from contstim.models.recurrent.network import Kind, RecurrentNetwork, Shape
from contstim.models.recurrent.words import WordList
from contstim.models.tensors import write_tensors

_WEIGHTS, _WORDS = "model.safetensors", "vocabulary.csv"
_FORMAT = 1


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
    network = RecurrentNetwork(shape)
    try:
        network.load_state_dict(safetensors.torch.load_file(folder / _WEIGHTS))
    except (OSError, RuntimeError, SafetensorError) as error:
        first = str(error).splitlines()[0].rstrip(".:")
        raise ModelError(
            f"Cannot read the weights in {folder / _WEIGHTS}: {first}. Train the model anew."
        ) from error
    return network.eval(), words


def _read_shape(folder: Path) -> Shape:
    path = folder / CONFIGURATION
    if not path.is_file():
        raise ModelError(
            f"There is no recurrent model in {folder} ({CONFIGURATION} is missing). Train one with "
            f"'contstim train {'|'.join(get_args(Kind))}'."
        )
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts.pop("format") != _FORMAT or facts["kind"] not in get_args(Kind):
            raise ValueError("written by another version of contstim")
        return Shape(**facts | {"cutoffs": tuple(facts["cutoffs"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} describes no recurrent model ({error}).") from error
