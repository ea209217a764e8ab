"""Causal networks read what came before and nothing else; masked ones read both sides.

The witness is the mathematics of the kind: the probability of the next token cannot depend on what
follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contstim.errors import ModelError
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from tests.models.checkpoints.conftest import edit

if TYPE_CHECKING:
    from tests.models.checkpoints.conftest import Copy


def test_a_masked_network_that_reads_one_side_is_refused(copy: Copy) -> None:
    folder = copy("bert")
    edit(folder / "config.json", is_decoder=True)
    with pytest.raises(ModelError, match="does not depend on the words that follow"):
        load_checkpoint(str(folder), Loading(device="cpu"))
