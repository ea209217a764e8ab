"""Transformer checkpoints from a folder or the hub, checked for completeness and consistency.

loading   load_checkpoint, load_tokenizer
source    location of a checkpoint: folder, GGUF file, local cache or hub; permission to run its
          code; errors of libraries
checks    consistency of configuration, weights and tokenizer; behaviour of the network
"""

from contstim.models.checkpoints.loading import Checkpoint, Kind, load_checkpoint, load_tokenizer
from contstim.models.checkpoints.source import silence

__all__ = ["Checkpoint", "Kind", "load_checkpoint", "load_tokenizer", "silence"]
