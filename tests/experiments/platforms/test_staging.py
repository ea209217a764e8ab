"""An export is written whole or not at all, whatever fails and whatever is there already."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from contstim.errors import ContstimError, InputError
from contstim.experiments.platforms.csv import export_csv
from contstim.experiments.platforms.folder import staged
from contstim.experiments.platforms.gorilla.export import export_gorilla
from contstim.experiments.platforms.jatos import export_jatos
from contstim.experiments.platforms.jspsych import PageSettings, SaveTo, export_jspsych
from contstim.experiments.platforms.pcibex import export_pcibex
from contstim.experiments.platforms.psych_ds import Description, export_psych_ds
from contstim.experiments.platforms.psychopy import export_psychopy
from contstim.experiments.platforms.qualtrics import export_qualtrics
from tests.experiments.platforms.conftest import TRIALS
from tests.experiments.platforms.hostile import hostile_trials

JATOS = PageSettings(save=SaveTo.JATOS)
EXPORTS: dict[str, Callable[[Path], object]] = {
    "jspsych": lambda out: export_jspsych(TRIALS, out),
    "jatos": lambda out: export_jatos(TRIALS, out, JATOS),
    "pcibex": lambda out: export_pcibex(TRIALS, out),
    "psychopy": lambda out: export_psychopy(TRIALS, out),
    "gorilla": lambda out: export_gorilla(TRIALS, out),
    "qualtrics": lambda out: export_qualtrics(TRIALS, out),
    "csv": lambda out: export_csv(TRIALS, out),
    "psych-ds": lambda out: export_psych_ds(TRIALS, out, Description("pairs")),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("platform", EXPORTS)
def test_a_full_disk_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    """The third file fails, in a new folder and in that of an earlier export."""
    export = EXPORTS[platform]
    export(tmp_path / "earlier")
    before = contents(tmp_path)
    written = 0
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        nonlocal written
        written += 1
        if written == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    for folder in (tmp_path / "earlier", tmp_path / "new" / "deep"):
        written = 0
        with pytest.raises(InputError, match="No space left on device"):
            export(folder)
        assert contents(tmp_path) == before


@pytest.mark.parametrize("platform", EXPORTS)
def test_other_files_are_never_touched(tmp_path: Path, platform: str) -> None:
    (tmp_path / "index.html").write_text("mine")
    (tmp_path / "README.md").write_text("mine, too")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="holds other files"):
        EXPORTS[platform](tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("platform", EXPORTS)
def test_an_export_again_gives_the_same_and_keeps_what_was_added(
    tmp_path: Path, platform: str
) -> None:
    export = EXPORTS[platform]
    export(tmp_path / "out")
    before = contents(tmp_path)
    (tmp_path / "out" / "notes.txt").write_text("added")
    export(tmp_path / "out")
    assert contents(tmp_path) == {**before, "out/notes.txt": b"added"}


def test_a_sentence_that_a_platform_cannot_show_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ContstimError):
        export_psychopy(hostile_trials(brackets=True), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with staged(tmp_path / "link") as work:
        (work / "a.txt").write_text("a")
    assert (tmp_path / "link").is_symlink()
    assert contents(tmp_path / "real") == {"a.txt": b"a"}


def test_what_stops_the_program_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with staged(tmp_path / "a" / "b") as work:
            (work / "half").write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "out", tmp_path / "file", Path("/dev/null")):
        with pytest.raises(InputError, match="Cannot write"), staged(place):
            pass
