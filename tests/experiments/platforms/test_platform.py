"""Platforms by name, including those of other packages; exports are complete or absent."""

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
    """Write the files of an installed package, including its `.dist-info`."""
    (site / f"{package}.py").write_text(code, encoding="utf-8")
    info = site / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[contstim.platforms]\n{entry}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages on the import path."""
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, "post", PACKAGE, "letters = post:PLATFORM")
    write_table(tmp_path / "trials.csv", trial_columns(TRIALS))
    monkeypatch.syspath_prepend(folder)
    for package in ("post", "other"):
        monkeypatch.delitem(sys.modules, package, raising=False)
    return folder


def test_package_adds_a_platform_and_its_commands(site: Path) -> None:
    result = run(site.parent, "export letters --trials trials.csv --out post --seed 4", status=0)
    assert result.stderr == "The export is in post/; post/README.md describes the next steps.\n"
    letter = (site.parent / "post" / "letter.txt").read_text()
    assert letter == f"Dear participant 4, rate {len(TRIALS)} pairs."
    help_text = run(site.parent, "export", "--help").stdout
    assert "Write trials as letters " in help_text
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
def test_error_names_the_broken_package(site: Path, code: str, entry: str, message: str) -> None:
    install(site, "other", code, entry)
    result = run(site.parent, "export", entry.split()[0], "--help", status=2)
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_platforms_are_imported_lazily() -> None:
    """Witness: the modules of a process that has built every other command."""
    code = (
        "import sys, typer; from contstim.cli.program import app; typer.main.get_command(app); "
        "print([name for name in sys.modules if '.platforms.' in name or name == 'numpy'])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.stdout == "[]\n", process.stderr


PLATFORMS = [platform for name in platform_names() if (platform := platform_named(name))]
EXPORTERS = {platform.name: platform.exporter for platform in PLATFORMS if platform.exporter}


@pytest.mark.parametrize("platform", EXPORTERS)
def test_full_disk_leaves_the_folder_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    """Writing the third file fails, in a new folder and in one of an earlier export."""
    exporter = EXPORTERS[platform]
    tables, trials = {}, PAGE_TRIALS
    if platform == "r":
        # This platform exports responses
        tables = {"responses": tmp_path / "responses.csv", "scores": tmp_path / "scores.csv"}
        write_responses(tables["responses"], RESPONSES)
        scores().write(tables["scores"])
        trials = RATED_TRIALS

    def export(out: Path) -> None:
        exporter.run(trials, out, exporter.options(**exporter.fixed, **tables))

    export(tmp_path / "earlier")
    contents_before = contents(tmp_path)
    written = 0
    original_replace = Path.replace

    def replace(self: Path, target: Path) -> Path:
        nonlocal written
        written += 1
        if written == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original_replace(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    for folder in (tmp_path / "earlier", tmp_path / "new" / "deep"):
        written = 0
        with pytest.raises(InputError, match="No space left on device"):
            export(folder)
        assert contents(tmp_path) == contents_before


def test_linked_folder_remains_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with staging_folder(tmp_path / "link") as work:
        (work / "a.txt").write_text("a")
    assert (tmp_path / "link").is_symlink()
    assert contents(tmp_path / "real") == {"a.txt": b"a"}


def test_interruption_leaves_no_files(tmp_path: Path) -> None:
    def write_and_interrupt() -> None:
        with staging_folder(tmp_path / "a" / "b") as work:
            (work / "half").write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_interrupt()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "out", tmp_path / "file", Path("/dev/null")):
        with pytest.raises(InputError, match="Cannot write"), staging_folder(path):
            pass
