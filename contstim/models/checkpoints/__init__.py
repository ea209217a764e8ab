"""Transformer checkpoints from a folder or the hub: complete and sound, or refused.

loading      load_checkpoint, load_tokenizer, new_classifier
source       a folder, the local cache or the hub; the code that may run from there; how it fails
weights      whether configuration and weights belong together
tokenizers   whether the tokenizer belongs to the network
probes       whether the network reads what its kind promises, and no more
checkpoint   a network and its tokenizer: their kind, how many tokens they read
"""

from contstim.models.checkpoints.loading import (
    Checkpoint,
    Kind,
    load_checkpoint,
    load_tokenizer,
    new_classifier,
)
from contstim.models.checkpoints.source import silence

__all__ = ["Checkpoint", "Kind", "load_checkpoint", "load_tokenizer", "new_classifier", "silence"]
