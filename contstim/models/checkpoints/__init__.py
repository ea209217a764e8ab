"""Transformer checkpoints from a folder or the hub: complete and sound, or refused.

loading      load_checkpoint, new_classifier
checkpoint   a network and its tokenizer
folders      where they lie: a folder, the local cache, the hub
kinds        causal, masked or classifier, by the configuration
devices      where networks run and in what precision
foreign      what the library says while it loads
"""

from contstim.models.checkpoints.checkpoint import Checkpoint, Kind
from contstim.models.checkpoints.devices import Device, Precision, resolve_device
from contstim.models.checkpoints.foreign import silence
from contstim.models.checkpoints.loading import load_checkpoint, new_classifier

__all__ = [
    "Checkpoint",
    "Device",
    "Kind",
    "Precision",
    "load_checkpoint",
    "new_classifier",
    "resolve_device",
    "silence",
]
