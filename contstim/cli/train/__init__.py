"""`contstim train …`: a command for each kind of model."""

from __future__ import annotations

import typer

from contstim.cli.train.acceptability import acceptability
from contstim.cli.train.network import network_command
from contstim.cli.train.ngram import ngram
from contstim.models.training.settings import (
    RECURRENT_TRAINING,
    TRANSFORMER_TRAINING,
    RecurrentSettings,
    TransformerSettings,
)

app = typer.Typer(help="Train a model on a text.", no_args_is_help=True)

app.command("ngram")(ngram)
for settings, summary in (
    (
        RecurrentSettings("rnn"),
        "Train a recurrent network over words (Elman's), with the sizes of the 2023 study.",
    ),
    (
        RecurrentSettings("lstm"),
        "Train a long short-term memory over words, with the sizes of the 2023 study.",
    ),
    (
        RecurrentSettings("bilstm"),
        "Train an LSTM that predicts each word from the words before and after it.",
    ),
):
    app.command(settings.kind)(network_command(settings, RECURRENT_TRAINING, summary))
for small, summary in (
    (
        TransformerSettings("gpt2"),
        "Train a small GPT-2 with a byte-level BPE tokenizer of its own.",
    ),
    (
        TransformerSettings("bert"),
        "Train a small BERT with a WordPiece tokenizer of its own.",
    ),
):
    app.command(small.kind)(network_command(small, TRANSFORMER_TRAINING, summary))
app.command("acceptability")(acceptability)


@app.callback()
def _train() -> None:
    """Train a model on a text."""
