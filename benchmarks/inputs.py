"""Folders of data and models for benchmarks, which are not part of the repository.

The environment variables CONTSTIM_DATA and CONTSTIM_MODELS name them. By default, they are
../shared/data and ../shared/models, relative to the repository.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CONTSTIM_DATA", ROOT.parent / "shared" / "data"))
MODELS = Path(os.environ.get("CONTSTIM_MODELS", ROOT.parent / "shared" / "models"))
STUDY = DATA / "contstimlang"
"""The published data of the 2023 study."""
OPENSTAX = DATA / "text" / "openstax.train.txt"
"""Sentences of textbooks for training."""
