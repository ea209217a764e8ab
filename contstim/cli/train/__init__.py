"""`contstim train …`: a command for each kind of model."""

from __future__ import annotations

from contstim.cli.commands import CommandGroup
from contstim.cli.train.acceptability import acceptability
from contstim.cli.train.network import network_command
from contstim.cli.train.ngram import ngram
from contstim.models.training.settings import (
    RECURRENT_TRAINING,
    TRANSFORMER_TRAINING,
    RecurrentSettings,
    TransformerSettings,
)

app = CommandGroup("Train a model on a text.")
app.add("ngram", ngram)
for network, training, summary in (
    (
        RecurrentSettings("rnn"),
        RECURRENT_TRAINING,
        "Train a recurrent network over words (Elman's), with the sizes of the 2023 study.",
    ),
    (
        RecurrentSettings("lstm"),
        RECURRENT_TRAINING,
        "Train a long short-term memory over words, with the sizes of the 2023 study.",
    ),
    (
        RecurrentSettings("bilstm"),
        RECURRENT_TRAINING,
        "Train an LSTM that predicts each word from the words before and after it.",
    ),
    (
        TransformerSettings("gpt2"),
        TRANSFORMER_TRAINING,
        "Train a small GPT-2 with a byte-level BPE tokenizer of its own.",
    ),
    (
        TransformerSettings("bert"),
        TRANSFORMER_TRAINING,
        "Train a small BERT with a WordPiece tokenizer of its own.",
    ),
):
    app.add(network.kind, network_command(network, training, summary))
app.add("acceptability", acceptability)
