"""For tests of your own: models without a download, contracts, artificial participants.

toy           ToyModel: a true distribution over sentences, spelled from a seed
mock          MockModel: scores that you give; TableModel: scores from a seed, and hints
contract      ScorerContract and LanguageModelContract, to inherit in tests; needs pytest
platform      PlatformContract, ExportContract and ReadContract, to inherit in tests; needs pytest
participants  artificial participants who take part in a running study, over HTTP or in a browser
"""

from __future__ import annotations

from contstim.testing.mock import MockModel, TableModel
from contstim.testing.toy import ToyModel

__all__ = ["MockModel", "TableModel", "ToyModel"]
