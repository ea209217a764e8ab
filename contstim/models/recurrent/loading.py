"""From a folder that `contstim train` wrote to a model that scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import ModelError
from contstim.models.checkpoints import resolve_device
from contstim.models.recurrent.both_sides import BothSidesModel
from contstim.models.recurrent.folder import read_folder
from contstim.models.recurrent.left_to_right import LeftToRightModel
from contstim.models.training_text import TrainingText

if TYPE_CHECKING:
    from pathlib import Path

    from contstim.models.checkpoints import Device
    from contstim.models.recurrent.adapter import RecurrentModel


def load_recurrent(
    location: str | Path, *, name: str | None = None, family: str = "", device: Device = "auto"
) -> RecurrentModel:
    """Load the model of a folder that `contstim train` wrote.

    Args:
        location: the folder.
        name: the folder where none is given.
        family: `rnn`, `lstm` or `bilstm`, where the model must be of that kind.
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
