"""`contstim train rnn|lstm|bilstm|gpt2|bert`: options made from the settings' fields."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from contstim.cli.commands import as_command, field_options, option
from contstim.cli.options import Device, Prose, Quiet, Text
from contstim.cli.progress import ProgressBars
from contstim.models.training.settings import (
    RecurrentSettings,
    TrainingPrecision,
    TrainingSettings,
    TransformerSettings,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_Settings = TypeVar("_Settings", bound=RecurrentSettings | TransformerSettings | TrainingSettings)
_OUT = Annotated[Path, typer.Option(help="The folder of the model.")]
Precision = Annotated[
    TrainingPrecision,
    typer.Option(help="What the network computes in; auto: bfloat16 on a GPU that has it."),
]


def network_command(
    network: RecurrentSettings | TransformerSettings, training: TrainingSettings, summary: str
) -> Callable[..., None]:
    """The command that trains a kind of network, with an option for each setting."""

    # The values of `network` and `training` are the options' defaults: those of a study, or ours.
    def command(**given: Any) -> None:
        from contstim.steps.training import train_network

        train_network(
            _chosen(network, given),
            given["text"],
            given["out"],
            training=_chosen(training, given),
            prose=given["prose"],
            device=given["device"],
            precision=given["precision"],
            watch=ProgressBars(quiet=given["quiet"]),
        )

    page = f"""{summary}

    The folder gets the model, training.json (settings, versions, losses) and curve.png. A training
    that was interrupted goes on from its last checkpoint (after every epoch, and every five
    minutes) when the same command is given again.

    Example: `contstim train {network.kind} --text corpus.txt --out {network.kind} --epochs 4`
    """
    unmasked = network.kind == "gpt2"  # which reads from left to right and hides nothing
    options = [
        option("text", Text),
        option("out", _OUT),
        *field_options(network, leave_out=["mask_share", "masking"] if unmasked else []),
        *field_options(training),
        option("prose", Prose, False),
        option("device", Device, "auto"),
        option("precision", Precision, "auto"),
        option("quiet", Quiet, False),
    ]
    return as_command(command, options, page)


def _chosen(settings: _Settings, given: dict[str, Any]) -> _Settings:
    return replace(settings, **{f.name: given[f.name] for f in fields(settings) if f.name in given})
