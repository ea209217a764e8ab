"""Transformer checkpoints from a folder or the hub: complete and sound, or refused.

loading   a network and its tokenizer; load_checkpoint, load_tokenizer
source    a folder, the local cache or the hub; the code that may run from there; how it fails
gguf      files with quantized weights
checks    whether configuration, weights and tokenizer belong together, and the network reads
"""

from contstim.models.checkpoints.loading import Checkpoint, Kind, load_checkpoint, load_tokenizer
from contstim.models.checkpoints.source import silence

__all__ = ["Checkpoint", "Kind", "load_checkpoint", "load_tokenizer", "silence"]
