"""For tests of your own: models without a download, contracts, artificial participants.

models        MockModel: scores that you give; TableModel: scores from a seed, and hints;
              ToyModel: a true distribution over sentences, spelled from a seed
contract      ScorerContract and LanguageModelContract, to inherit in tests; needs pytest
platform      PlatformContract, ExportContract and ReadContract, to inherit in tests; needs pytest
participants  artificial participants who take part in a running study over HTTP, many at once
browser       the same through the page itself, in Chromium
"""

from __future__ import annotations

from contstim.testing.models import MockModel, TableModel, ToyModel

__all__ = ["MockModel", "TableModel", "ToyModel"]
