"""Platforms by name, added ones too; an export is written whole or not at all."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.folder import staging_folder
from contstim.experiments.platforms.platform import platform_named, platform_names
from contstim.experiments.responses.table import write_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import trial_columns
from contstim.testing.platform import TRIALS, contents
from tests.cli.running import run
from tests.experiments.platforms.conftest import TRIALS as PAGE_TRIALS
from tests.experiments.platforms.test_psych_ds import RESPONSES, scores
from tests.experiments.platforms.test_psych_ds import TRIALS as RATED_TRIALS

PACKAGE = '''
from contstim.experiments.platforms.folder import ExportFolder
from contstim.experiments.platforms.platform import Exporter, Platform
from contstim.options import Seed


def export_letters(trials, out, *, seed: Seed = 0):
    """Write trials as letters.

    Raises:
        InputError: they are too long.
    """
    folder = ExportFolder(out, "letters")
    folder.text("letter.txt", f"Dear participant {seed}, rate {len(trials)} pairs.")
    folder.readme("# Letters\\n\\nPost them.")
    return folder.finish()


PLATFORM = Platform("letters", Exporter(export_letters))
'''


def install(site: Path, package: str, code: str, entry: str) -> None:
    """Lay out what an installer lays out, the `.dist-info` included."""
    (site / f"{package}.py").write_text(code, encoding="utf-8")
    info = site / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[contstim.platforms]\n{entry}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages on the path of this process."""
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, "post", PACKAGE, "letters = post:PLATFORM")
    write_table(tmp_path / "trials.csv", trial_columns(TRIALS))
    monkeypatch.syspath_prepend(folder)
    for package in ("post", "other"):
        monkeypatch.delitem(sys.modules, package, raising=False)
    return folder


def test_a_package_adds_a_platform_with_its_commands(site: Path) -> None:
    done = run(site.parent, "export letters --trials trials.csv --out post --seed 4", status=0)
    assert done.stderr == "The export is in post/; post/README.md describes the next steps.\n"
    letter = (site.parent / "post" / "letter.txt").read_text()
    assert letter == f"Dear participant 4, rate {len(TRIALS)} pairs."
    listed = run(site.parent, "export", "--help").stdout
    assert "Write trials as letters " in listed
    assert "too long" not in run(site.parent, "export", "letters", "--help").stdout
    assert "letters" not in run(site.parent, "import", "--help").stdout
    assert "No such command 'letters'" in run(site.parent, "import", "letters").stderr


@pytest.mark.parametrize(
    ("code", "entry", "message"),
    [
        ("import nowhere", "broken = other:PLATFORM", "'broken' of other (other:PLATFORM) cannot"),
        ("PLATFORM = 3", "broken = other:PLATFORM", "must be a Platform of this name, got 3"),
        (
            "PLATFORM = 3",
            "letters = other:PLATFORM",
            "Several packages provide the platform 'letters'",
        ),
    ],
)
def test_broken_additions_name_the_package(site: Path, code: str, entry: str, message: str) -> None:
    install(site, "other", code, entry)
    done = run(site.parent, "export", entry.split()[0], "--help", status=2)
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_no_platform_is_imported_before_it_is_asked_for() -> None:
    """Witness: the modules of a process that has made every command but these."""
    code = (
        "import sys, typer; from contstim.cli.program import app; typer.main.get_command(app); "
        "print([name for name in sys.modules if '.platforms.' in name or name == 'numpy'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


PLATFORMS = [platform for name in platform_names() if (platform := platform_named(name))]
EXPORTERS = {each.name: each.exporter for each in PLATFORMS if each.exporter}


@pytest.mark.parametrize("platform", EXPORTERS)
def test_a_full_disk_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    """The third file fails, in a new folder and in that of an earlier export."""
    exporter = EXPORTERS[platform]
    needed, trials = {}, PAGE_TRIALS
    if platform == "r":
        # Its table is of what people answered
        needed = {"responses": tmp_path / "responses.csv", "scores": tmp_path / "scores.csv"}
        write_responses(needed["responses"], RESPONSES)
        scores().write(needed["scores"])
        trials = RATED_TRIALS

    def export(out: Path) -> None:
        exporter.run(trials, out, exporter.options(**exporter.fixed, **needed))

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
    with staging_folder(tmp_path / "link") as work:
        (work / "a.txt").write_text("a")
    assert (tmp_path / "link").is_symlink()
    assert contents(tmp_path / "real") == {"a.txt": b"a"}


def test_what_stops_the_program_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with staging_folder(tmp_path / "a" / "b") as work:
            (work / "half").write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "out", tmp_path / "file", Path("/dev/null")):
        with pytest.raises(InputError, match="Cannot write"), staging_folder(place):
            pass
