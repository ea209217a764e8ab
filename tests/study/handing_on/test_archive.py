"""Archives: what they hold, by plain zip and hash code; and the same study from them elsewhere."""

import hashlib
import json
import os
import zipfile
from contextlib import chdir
from pathlib import Path
from unittest import mock

import pytest

from contstim.errors import InputError
from contstim.study.handing_on.archive import archive_study
from contstim.study.handing_on.manifest import study_inputs
from contstim.study.study_file import read_study
from contstim.study.verification import FileState, verify_folder
from tests.cli.running import run, succeed
from tests.study.small import change

pytestmark = pytest.mark.slow

DATE = {"SOURCE_DATE_EPOCH": "1700000000"}


@pytest.fixture
def unpacked(study: Path, tmp_path: Path) -> Path:
    """The archive of the small study, in a folder of its own."""
    succeed(study, "archive", "--out", "../small.zip", "--quiet")
    with zipfile.ZipFile(tmp_path / "small.zip") as archive:
        archive.extractall(tmp_path / "elsewhere")
    return tmp_path / "elsewhere" / "small"


def test_every_file_of_an_archive_is_listed_with_its_checksum(unpacked: Path) -> None:
    manifest = json.loads((unpacked / "archive.json").read_text())
    there = {
        path.relative_to(unpacked).as_posix(): path.read_bytes()
        for path in unpacked.rglob("*")
        if path.is_file() and path.name != "archive.json"
    }
    stated = {file["name"]: (file["sha256"], file["size"]) for file in manifest["files"]}
    assert stated == {n: (hashlib.sha256(c).hexdigest(), len(c)) for n, c in there.items()}
    for name in ("study.toml", "corpus.txt", "more.txt", "README.md", "constraints.txt"):
        assert name in there
    assert "archived-results/models/bigram.arpa.counts.csv" in there
    assert "psych-ds/dataset_description.json" in there
    assert not any("sqlite" in name or "/." in name.partition("psych-ds")[0] for name in there)
    verified = run(unpacked, "verify")
    assert (verified.returncode, verified.stdout) == (0, "")
    # One file of each kind in each folder
    for name in {(Path(name).parent, Path(name).suffix): name for name in sorted(there)}.values():
        content = (unpacked / name).read_bytes()
        (unpacked / name).write_bytes(content + b" ")
        assert FileState.EDITED in states_of(unpacked, name), name
        (unpacked / name).unlink()
        assert FileState.MISSING in states_of(unpacked, name), name
        (unpacked / name).write_bytes(content)
    for name in (
        ".hidden",
        "new.md",
        "archived-results/new.csv",
        "archived-results/new.csv.meta.json",
    ):
        (unpacked / name).write_text("{}")
        assert states_of(unpacked, name), name
        (unpacked / name).unlink()
    assert not verify_folder(unpacked).wrong
    (unpacked / "archive.json").unlink()
    assert states_of(unpacked, "archive.json") == {FileState.MISSING}


def states_of(folder: Path, name: str) -> set[FileState]:
    """The states of a wrong file, and of the folder that was written with it."""
    return {file.state for file in verify_folder(folder).wrong if file.path == name}


@pytest.mark.usefixtures("unpacked")
def test_a_zip_with_a_file_next_to_the_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.zip"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/small/._study.toml", "added by macOS")
    assert not verify_folder(path).wrong
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("new.py", "added")
    with pytest.raises(InputError, match=r"new\.py"):
        verify_folder(path)


@pytest.mark.usefixtures("unpacked")
def test_a_zip_is_verified_as_its_folder_is(tmp_path: Path) -> None:
    verified = run(tmp_path, "verify", "small.zip")
    assert (verified.returncode, verified.stdout) == (0, "")
    with zipfile.ZipFile(tmp_path / "small.zip", "a") as archive:
        archive.writestr("small/new.md", "added")
    verified = run(tmp_path, "verify", "small.zip")
    assert (verified.returncode, "new.md" in verified.stdout) == (1, True)
    with (
        pytest.warns(UserWarning, match="Duplicate"),
        zipfile.ZipFile(tmp_path / "small.zip", "a") as archive,
    ):
        archive.writestr("small/README.md", "twice")
    for name in ("small.zip", "damaged.zip"):
        (tmp_path / "damaged.zip").write_bytes(b"PK")
        assert run(tmp_path, "verify", name).returncode == 2


def test_the_same_study_makes_the_same_zip(study: Path, tmp_path: Path) -> None:
    made = []
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        with mock.patch.dict(os.environ, DATE):
            archive_study(read_study(study), tmp_path / place / "study.zip")
        made.append((tmp_path / place / "study.zip").read_bytes())
    assert made[0] == made[1]
    with zipfile.ZipFile(tmp_path / "one" / "study.zip") as archive:
        # 14 November 2023, 22:13:20 UTC, is 1,700,000,000 seconds after 1970
        assert {info.date_time for info in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}
        assert archive.namelist() == sorted(archive.namelist())


@pytest.mark.slow
def test_an_unpacked_archive_does_the_study_again(unpacked: Path) -> None:
    succeed(unpacked, "run", "--quiet")
    old = sorted((unpacked / "archived-results").rglob("*.csv"))
    assert len(old) > 20
    for path in old:  # byte for byte, without our own comparison
        new = unpacked / "results" / path.relative_to(unpacked / "archived-results")
        assert new.read_bytes() == path.read_bytes(), path
    assert "results of the new run and archived-results agree" in run(unpacked, "verify").stderr

    # What was made anew can be handed on in turn
    succeed(unpacked, "archive", "--out", "../again", "--quiet")
    assert (unpacked.parent / "again" / "archived-results" / "triplets.csv").is_file()


def test_stale_and_edited_stages_are_archived_as_they_are(study: Path, tmp_path: Path) -> None:
    with (study / "results" / "natural.txt").open("a", encoding="utf-8") as file:
        file.write("The dog saw the cat again today now.\n")
    change(study, ("random_per_group = 2", "random_per_group = 1"))
    refused = run(study, "archive", "--out", str(tmp_path / "no.zip"), status=2)
    assert "results/natural.txt was changed by hand" in refused.stderr
    assert "design is stale" in refused.stderr
    assert not (tmp_path / "no.zip").exists()
    told = run(study, "archive", "--out", str(tmp_path / "folder"), "--as-it-is", status=0)
    assert " MB. " in told.stderr  # of a folder nothing is packed
    for name in ("README.md", "datasheet.md"):
        text = (tmp_path / "folder" / name).read_text()
        assert "results/natural.txt was changed by hand" in text
    assert json.loads((tmp_path / "folder" / "archive.json").read_text())["as_it_is"]
    again = run(study, "archive", "--out", str(tmp_path / "folder"), "--as-it-is")
    assert "exists already" in again.stderr


def test_an_input_that_is_left_out_is_asked_for(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "without"
    succeed(study, "archive", "--out", str(out), "--without", "corpus.txt", "--largest", "100")
    assert not (out / "corpus.txt").exists()
    content = (study / "corpus.txt").read_bytes()
    refused = run(out, "run", status=2)
    assert f"corpus.txt: {len(content):,} bytes" in refused.stderr
    assert hashlib.sha256(content).hexdigest() in refused.stderr
    assert hashlib.sha256(content).hexdigest() in (out / "README.md").read_text()
    (out / "corpus.txt").write_text("Another text.\n")
    other = run(out, "run", "--until", "model", "--quiet")
    assert "corpus.txt differs from the file with which the archive was made" in other.stderr
    refused = run(study, "archive", "--out", str(tmp_path / "x"), "--without", "corpus")
    assert "there is no such file" in refused.stderr


def test_answers_are_archived_and_the_server_database_is_not(study: Path, tmp_path: Path) -> None:
    """It says who people are, and its record may hold what they are paid by."""
    simulated = '[simulate]\nmodel = "bigram"\nparticipants = 12'
    change(study, (simulated, '[import.collected]\nfiles = ["people.sqlite"]'))
    for name in ("people.sqlite", "people.sqlite.meta.json"):
        (study / name).write_text("{}", encoding="utf-8")
    public = tmp_path / "public"
    succeed(study, "archive", "--out", str(public), "--as-it-is")
    assert [*public.rglob("people*")] == []
    answers = (study / "results" / "responses.csv").read_bytes()
    assert (public / "inputs" / "collected.csv").read_bytes() == answers
    again = read_study(public)
    assert again.files["responses"] == Path("inputs/collected.csv")
    assert "import collected" not in {stage.name for stage in again.stages}
    change(study, ("[import.collected]", '[import."collected"]'))
    refused = run(study, "archive", "--out", str(tmp_path / "no"), "--as-it-is")
    assert "on separate lines" in refused.stderr


def test_large_inputs_are_named_and_not_copied(study: Path, tmp_path: Path) -> None:
    manifest, _ = archive_study(read_study(study), tmp_path / "large", largest=0.000001)
    assert {file.name for file in manifest.to_supply} == {"corpus.txt", "more.txt"}


def test_files_of_other_folders_are_renamed_in_the_study_file(study: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (study / "corpus.txt").rename(tmp_path / "elsewhere" / "corpus.txt")
    (study / "README.md").write_text("The girl saw a small dog in town today.\n")
    arpa = study / "results" / "models" / "bigram.arpa"
    for ending in ("", ".counts.csv", ".sentences.npy"):
        (tmp_path / f"old=1.arpa{ending}").write_bytes(Path(f"{arpa}{ending}").read_bytes())
    change(
        study,
        ('training = "corpus.txt"', f'training = "{tmp_path}/elsewhere/corpus.txt" # "corpus.txt"'),
        ("[vocabulary]", 'old = "kenlm:../old=1.arpa"\n[vocabulary]'),
        ('words = "8"', 'words = "8"\nexclude = ["README.md"]'),
    )
    read = read_study(study)
    text, files = _inputs(study)
    assert set(files) == {
        *("inputs/corpus.txt", "inputs/README.md", "more.txt"),
        *(f"inputs/old=1.arpa{e}" for e in ("", ".counts.csv", ".sentences.npy")),
    }
    assert 'training = "inputs/corpus.txt" # "corpus.txt"' in text
    assert 'old = "kenlm:inputs/old=1.arpa"' in text
    assert 'exclude = ["inputs/README.md"]' in text
    assert 'natural = "more.txt"' in text
    assert read.title in text


def _inputs(study: Path) -> tuple[str, dict[str, Path]]:
    with chdir(study):
        return study_inputs(read_study("study.toml"), Path("study.toml").read_text())


def test_models_that_would_change_their_order_are_refused(study: Path, tmp_path: Path) -> None:
    arpa = study / "results" / "models" / "unigram.arpa"
    (study / "aa.arpa").write_bytes(arpa.read_bytes())
    (tmp_path / "zz.arpa").write_bytes(arpa.read_bytes())
    # ../zz stands before aa, and inputs/zz behind it
    change(study, ("[vocabulary]", 'a = "kenlm:aa.arpa"\nz = "kenlm:../zz.arpa"\n[vocabulary]'))
    with pytest.raises(InputError, match="another order"):
        _inputs(study)
