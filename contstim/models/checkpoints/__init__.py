"""Transformer checkpoints from a folder or the hub, checked for completeness and consistency.

loading   load_checkpoint, load_tokenizer
source    a folder, a GGUF file, the local cache or the hub; permission to run its code; errors
checks    consistency of configuration, weights and tokenizer; behaviour of the network
"""

from contstim.models.checkpoints.loading import Checkpoint, Kind, load_checkpoint, load_tokenizer
from contstim.models.checkpoints.source import silence

__all__ = ["Checkpoint", "Kind", "load_checkpoint", "load_tokenizer", "silence"]
