"""Transformer checkpoints from a folder or the hub: complete and sound, or refused.

loading      load_checkpoint, load_tokenizer, new_classifier
source       a folder, the local cache or the hub, and the code that may run from there
weights      whether configuration and weights belong together
tokenizers   whether the tokenizer belongs to the network
probes       whether the network reads what its kind promises, and no more
checkpoint   a network and its tokenizer: their kind, how many tokens they read
devices      where networks run, over how many devices, in what precision
memory       what a network needs before it is loaded, and what is free
foreign      what `transformers` says while it loads: kept quiet, or raised as a ModelError
"""

from contstim.models.checkpoints.checkpoint import Checkpoint, Kind
from contstim.models.checkpoints.devices import (
    Device,
    DeviceMap,
    Precision,
    Quantization,
    resolve_device,
)
from contstim.models.checkpoints.foreign import silence
from contstim.models.checkpoints.loading import (
    load_checkpoint,
    load_tokenizer,
    new_classifier,
)

__all__ = [
    "Checkpoint",
    "Device",
    "DeviceMap",
    "Kind",
    "Precision",
    "Quantization",
    "load_checkpoint",
    "load_tokenizer",
    "new_classifier",
    "resolve_device",
    "silence",
]
