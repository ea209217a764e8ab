"""The GPUs of this machine, told without loading PyTorch."""

from __future__ import annotations

import os
import re
import subprocess


def visible_gpus() -> list[str]:
    """What `CUDA_VISIBLE_DEVICES` may name, one by one; empty where there is no GPU."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [gpu.strip() for gpu in named.split(",") if gpu.strip() not in ("", "-1")]
    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return re.findall(r"^GPU (\d+):", listed, re.MULTILINE)
