"""Tools for users' tests: models without downloads, tests to inherit, artificial participants.

models        MockModel: scores that a test defines. TableModel: random scores; also estimates and
              upper bounds of the scores of sentences in which one word is replaced. ToyModel:
              random probabilities that add up to 1 over all sentences
contract      ScorerContract and LanguageModelContract, to inherit in tests; needs pytest
platform      PlatformContract, ExportContract and ReadContract, to inherit in tests; needs pytest
participants  artificial participants who take part in a running study over HTTP, concurrently
browser       artificial participants who use the page itself, in Chromium
"""

from __future__ import annotations

from contstim.testing.models import MockModel, TableModel, ToyModel

__all__ = ["MockModel", "TableModel", "ToyModel"]
