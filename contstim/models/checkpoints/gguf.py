"""GGUF files: a causal network with quantized weights and its tokenizer in one file.

`transformers` converts the quantized weights to the precision of the loaded model.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from contstim.errors import ModelError
from contstim.models.loading import require_packages

ENDING = ".gguf"
_MAGIC = b"GGUF"
_PART = re.compile(r"-\d{5}-of-(?!00001)\d{5}$")
_OTHER_WEIGHTS = ("*.safetensors", "*.bin")


def gguf_file(location: str) -> Path | None:
    """Return the GGUF file at a location; None if there is none.

    Args:
        location: path of the file, or of a folder with one GGUF file and no other weights.

    Raises:
        ModelError: if a folder without other weights has several GGUF files.
    """
    path = Path(location)
    if path.suffix.lower() == ENDING and not path.is_dir():
        return path
    files = sorted(file for file in path.glob("*") if file.suffix.lower() == ENDING)
    if not files or any(any(path.glob(pattern)) for pattern in _OTHER_WEIGHTS):
        return None
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise ModelError(
            f"{location} has several GGUF files: {names}. Name one of them, such as "
            f"hf:{path / files[0].name}."
        )
    return files[0]


def check_gguf(path: Path) -> None:
    """Check that a GGUF file exists, is complete and has its required packages.

    Only the first bytes are read.

    Raises:
        ModelError: if a check fails.
    """
    if not path.is_file():
        raise ModelError(f"{path} does not exist. Name a GGUF file, or a folder that contains one.")
    if _PART.search(path.stem):
        raise ModelError(
            f"{path} is one part of a GGUF model. Merge the parts with 'llama-gguf-split --merge'."
        )
    with path.open("rb") as file:
        magic = file.read(len(_MAGIC))
    if magic != _MAGIC:
        raise ModelError(
            f"{path} is not a GGUF file: it is {'damaged' if magic else 'empty'}. Download "
            "it again."
        )
    require_packages(str(path), "gguf", "gguf", "accelerate")


def check_use(location: str, *, classifier: bool, quantize: str | None) -> None:
    """Refuse to use a GGUF file as a classifier, or to quantize it again.

    Raises:
        ModelError: if `classifier` is true or `quantize` is given.
    """
    if classifier:
        raise ModelError(
            f"{location} is a GGUF file, which is a causal model. For a classifier or its "
            "training, use a folder or a name on the Hub."
        )
    if quantize is not None:
        raise ModelError(
            f"quantize must be empty for {location}, whose weights are quantized already, "
            f"got {quantize}. Remove --quantize."
        )


def hide_progress_bar() -> None:
    """Replace the progress bar of GGUF files by one that `transformers` can hide."""
    from transformers.utils import logging

    with suppress(ImportError):  # newer versions read most files without this module
        from transformers import modeling_gguf_pytorch_utils as reader

        cast("Any", reader).tqdm = logging.tqdm


def dequantization() -> dict[str, Any]:
    """Return options of `from_pretrained` that dequantize the weights on all devices.

    Without them, a GPU with the package `kernels` computes with quantized weights. Also, the file
    name becomes part of the configuration and changes the fingerprint.
    """
    import transformers

    config: Any = transformers.GgufConfig
    return {"quantization_config": config(dequantize=True)}
