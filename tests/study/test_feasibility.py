"""Paths of a study have one owner each: what would write over another's is refused when read."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.study.study_file import read_study
from tests.study import small

OUTS = {
    "results/contstim.sqlite": "the store of the study",
    "results/contstim.sqlite-wal": "the store of the study",
    "results/contstim.sqlite-shm": "the store of the study",
    "results/contstim.sqlite.times.json": "the store of the study",
    "results/Contstim.SQLite": "the store of the study",
    "results/./contstim.sqlite/x": "the store of the study",
    "results/.lock": "the lock of the study",
    "results/begun/x": "the record of begun stages",
    "results/natural.txt": "the stage 'sentences'",
    "results/NATURAL.txt": "the stage 'sentences'",
    "results/models/bigram.arpa": "the stage 'model bigram'",
    "results/models/bigram.arpa.counts.csv": "the stage 'model bigram'",
    "results/pairs.csv.certificate.json": "the stage 'select natural'",
    "results/analysis/x": "the stage 'analyze'",
    "results/models": "the stage 'model bigram'",
    "results/responses.csv.questions.csv": "the stage 'simulate'",
    "results/natural.txt.meta.json": "must not end in .meta.json",
    "results/link/study.toml": "the study file",
    "results/link/INDEX.html": "the page of the study",
    "index.html": "name a path in results/",
    "study.toml": "name a path in results/",
}


@pytest.mark.parametrize("out", OUTS)
def test_a_single_step_does_not_write_what_another_owns(tmp_path: Path, out: str) -> None:
    for name in ("corpus.txt", "more.txt"):
        (tmp_path / name).write_text("The cat sat on the small mat today.\n" * 2000)
    text = f'{small.STUDY}[train.ngram]\nout = "{out}"\n'
    (tmp_path / "study.toml").write_text(text)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "link").symlink_to("..")
    with pytest.raises(InputError) as refused:
        read_study(tmp_path)
    assert OUTS[out] in str(refused.value)
    line = text.splitlines().index(f'out = "{out}"') + 1
    assert any(f"line {number}, [train.ngram]" in str(refused.value) for number in (line - 1, line))


def test_models_with_one_path_are_refused(tmp_path: Path) -> None:
    for name in ("corpus.txt", "more.txt"):
        (tmp_path / name).write_text("The cat sat on the small mat today.\n" * 2000)
    network = '[models]\n"bigram.arpa" = { train = "lstm" }'
    (tmp_path / "study.toml").write_text(small.STUDY.replace("[models]", network))
    with pytest.raises(InputError, match=r"\[models\] bigram.*belongs to the stage 'model bigram"):
        read_study(tmp_path)
