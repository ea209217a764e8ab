"""An export is written whole or not at all, whatever fails and whatever is there already."""

import errno
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.folder import staged
from contstim.experiments.platforms.platform import platforms
from contstim.experiments.responses.table import write_responses
from contstim.testing.platform import contents
from tests.experiments.platforms.conftest import TRIALS
from tests.experiments.platforms.test_psych_ds import RESPONSES, scores
from tests.experiments.platforms.test_psych_ds import TRIALS as RATED_TRIALS

EXPORTERS = {each.name: each.exporter for each in platforms() if each.exporter}


@pytest.mark.parametrize("platform", EXPORTERS)
def test_a_full_disk_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    """The third file fails, in a new folder and in that of an earlier export."""
    exporter = EXPORTERS[platform]
    needed, trials = {}, TRIALS
    if platform == "r":
        # Its table is of what people answered
        needed = {"responses": tmp_path / "responses.csv", "scores": tmp_path / "scores.csv"}
        write_responses(needed["responses"], RESPONSES)
        scores().write(needed["scores"])
        trials = RATED_TRIALS

    def export(out: Path) -> None:
        exporter.export(trials, out, exporter.settings(**exporter.fixed, **needed))

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
