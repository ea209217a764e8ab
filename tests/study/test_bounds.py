"""A study that was handed on writes nothing outside of its folder, whatever its file and links say.

Witness: what lies beside the folder, byte for byte.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.study.handing_on.archive import archive_study
from contstim.study.handing_on.manifest import study_inputs
from contstim.study.study_file import read_study
from tests.cli.running import run
from tests.study.small import change

TRAINED = """\
[texts]
training = "text.txt"
[models]
a = { train = "ngram", order = 1%s }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study that trains a model on a text, and beside it what is not the study's."""
    (tmp_path / "other").mkdir()
    (tmp_path / "KEEP.txt").write_text("kept\n")
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "text.txt").write_text("The dog saw a cat.\nA cat saw the dog.\n" * 20)
    (folder / "study.toml").write_text(TRAINED % "")
    return folder


def _assert_kept(tmp_path: Path) -> None:
    assert {path.name for path in tmp_path.iterdir()} <= {"KEEP.txt", "other", "study"}
    assert (tmp_path / "KEEP.txt").read_text() == "kept\n"
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.parametrize("part", ["rule", "transform"])
def test_a_rule_that_is_a_path_is_refused(folder: Path, tmp_path: Path, part: str) -> None:
    text = TRAINED % f', {part} = "/../../../../KEEP.txt"'
    (folder / "study.toml").write_text(text)
    done = run(folder, "run")
    assert done.returncode == 2
    assert "line 4, [models] a: " in done.stderr
    assert not (folder / "results").exists()
    _assert_kept(tmp_path)


LINKS = {
    "results": "../other",
    "results/models": "../../other",
    "results/models/a.arpa": "../../../KEEP.txt",
    "results/models/a.arpa.meta.json": "../../../new",
    "results/stages/model+a.json": "../../../KEEP.txt",
    "results/stages/begun": "../../../other",
    "results/.lock": "../../KEEP.txt",
    "results/.1.partial": "../../other",
    "index.html": "../new",
    "archived-results": "../other",
    "archived-results/export/jspsych/consent.md": "../../../../KEEP.txt",
}


@pytest.mark.parametrize("link", LINKS)
def test_links_out_of_the_folder_are_refused(folder: Path, tmp_path: Path, link: str) -> None:
    (folder / link).parent.mkdir(parents=True, exist_ok=True)
    (folder / link).symlink_to(LINKS[link])
    for command in (["run"], ["archive", "--as-it-is", "--out", str(folder / "out")]):
        done = run(folder, *command)
        assert done.returncode == 2, done
        assert f"{link!r} is, or is inside, a link that leads out of {folder}" in done.stderr
        _assert_kept(tmp_path)


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "large").mkdir()
    (folder / "results").symlink_to("large")
    assert run(folder, "run").returncode == 0
    assert (folder / "large" / "models" / "a.arpa").is_file()


def test_names_in_an_archive_stay_within_it(study: Path, tmp_path: Path) -> None:
    """A folder above the study, and a file whose name other systems read as a path."""
    (study / "more.txt").rename(tmp_path / "..\\more.txt")
    change(study, ('"more.txt"', r'"../..\\more.txt"'))
    with pytest.raises(InputError, match="must be a file in"):
        archive_study(read_study(study), tmp_path / "out.zip", as_it_is=True)
    assert not (tmp_path / "out.zip").exists()


def test_a_folder_above_the_study_has_its_own_name_in_an_archive(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "inside").mkdir()
    (folder / "inside" / "study.toml").write_text("")
    monkeypatch.chdir(folder / "inside")
    monkeypatch.setattr("contstim.study.handing_on.manifest._paths", lambda _: [Path("..")])
    _, files = study_inputs(read_study("study.toml"), 'a = "hf:.."')
    assert files["inputs/study/text.txt"] == Path("../text.txt")
