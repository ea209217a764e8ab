"""Certificate of a design: how its trials were allocated, and that it passed its check."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from contstim.files import write_text

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class DesignCertificate:
    """Certificate of how an allocation came about, and that it passed its independent check.

    Attributes:
        status: `verified`: every rule of the design was checked on the finished trials.
        method: `matched share by share`, `searched over all allocations`, `left in place as far as
            possible`, or `nothing to allocate`.
        seconds: from stimuli to the verified design.
        reviewed: how many trials stood before; all 0 where there was no review.
        rejected: how many of these were rejected, or their pair or triplet.
        kept: how many of them stay in their groups.
        kept_bound: more than so many cannot.
    """

    status: str
    method: str
    solver: str
    version: str
    groups: int
    trials: int
    trials_per_group: int
    seed: int
    seconds: float
    reviewed: int = 0
    rejected: int = 0
    kept: int = 0
    kept_bound: int = 0

    def save(self, path: Path | str) -> None:
        """Write the certificate as JSON.

        Raises:
            InputError: the file cannot be written.
        """
        write_text(path, json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n")
