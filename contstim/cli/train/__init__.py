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
for recurrent, summary in (
    ("rnn", "Train a recurrent network over words (Elman's), with the sizes of the 2023 study."),
    ("lstm", "Train a long short-term memory over words, with the sizes of the 2023 study."),
    ("bilstm", "Train an LSTM that predicts each word from the words before and after it."),
):
    app.add(recurrent, network_command(RecurrentSettings(recurrent), RECURRENT_TRAINING, summary))
for transformer, summary in (
    ("gpt2", "Train a small GPT-2 with a byte-level BPE tokenizer of its own."),
    ("bert", "Train a small BERT with a WordPiece tokenizer of its own."),
):
    network = TransformerSettings(transformer)
    app.add(transformer, network_command(network, TRANSFORMER_TRAINING, summary))
app.add("acceptability", acceptability)
