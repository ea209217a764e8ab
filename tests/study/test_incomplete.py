"""A study with a sentence for which there is nothing to find."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.cli.output import INCOMPLETE
from contstim.cli.program import app
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

STUDY = """\
title = "One sentence"
[models]
bigram = "kenlm:2gram.arpa"
trigram = "kenlm:3gram.arpa"
[triplets]
vocabulary = "few.txt"
sentences = "natural.txt"
per_pair = 1
frame = "none"
plausible = "none"
"""


def test_what_was_not_found_is_named_now_and_whenever_it_is_run_again(
    tmp_path: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Witness: a vocabulary of the sentence's own words, none of which may occur twice."""
    natural = Sentence.parse("She read a book")
    words = natural.words
    Vocabulary((words[0],), words[1:], frozenset()).save(tmp_path / "few.txt")
    (tmp_path / "natural.txt").write_text(f"{natural.text}\n", encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    for name in ("2gram.arpa", "3gram.arpa"):
        (tmp_path / name).symlink_to(trained / name)
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            app(["run", str(tmp_path)])
        assert ended.value.code == INCOMPLETE
        told = capsys.readouterr().err
        assert "warning: failed: bigram × trigram, 'She read a book" in told
        assert "triplets is incomplete" in told
