"""Transformer checkpoints from a folder or the hub: complete and sound, or refused.

loading      load_checkpoint, new_classifier
checkpoint   a network and its tokenizer
folders      where they lie: a folder, the local cache, the hub
kinds        causal, masked or classifier, by the configuration
devices      where networks run and in what precision
source       where the library reads, and what it may run
code         code of its own that a checkpoint wants to run
foreign      what the library says while it loads, as errors of ours
sizes        whether the configuration can be of these weights
stored       what the files of weights hold
weights      whether all weights are there, have a place, and are numbers
tokenizers   whether the tokenizer is the network's own
windows      how many tokens the network can read
probes       whether the network reads what its kind promises, and no more
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
