"""Archives: their files, and the same study run from them.

Witnesses: the libraries zipfile and hashlib.
"""

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
def replica(study: Path, tmp_path: Path) -> Path:
    """The small study, unpacked from its archive."""
    succeed(study, "archive", "--out", "../small.zip", "--quiet")
    with zipfile.ZipFile(tmp_path / "small.zip") as archive:
        archive.extractall(tmp_path / "elsewhere")
    return tmp_path / "elsewhere" / "small"


def test_manifest_lists_every_file_with_its_checksum(replica: Path) -> None:
    manifest = json.loads((replica / "archive.json").read_text())
    files = {
        path.relative_to(replica).as_posix(): path.read_bytes()
        for path in replica.rglob("*")
        if path.is_file() and path.name != "archive.json"
    }
    listed = {file["name"]: (file["sha256"], file["size"]) for file in manifest["files"]}
    assert listed == {n: (hashlib.sha256(c).hexdigest(), len(c)) for n, c in files.items()}
    for name in ("study.toml", "corpus.txt", "more.txt", "README.md", "constraints.txt"):
        assert name in files
    assert "archived-results/models/bigram.arpa.counts.csv" in files
    assert "psych-ds/dataset_description.json" in files
    assert not any("sqlite" in name or "/." in name.partition("psych-ds")[0] for name in files)
    assert succeed(replica, "verify") == ""
    # One file of each kind in each folder
    for name in {(Path(name).parent, Path(name).suffix): name for name in sorted(files)}.values():
        content = (replica / name).read_bytes()
        (replica / name).write_bytes(content + b" ")
        assert FileState.EDITED in states_of(replica, name), name
        (replica / name).unlink()
        assert FileState.MISSING in states_of(replica, name), name
        (replica / name).write_bytes(content)
    results = "archived-results"
    for name in (".hidden", "new.md", f"{results}/new.csv", f"{results}/new.csv.meta.json"):
        (replica / name).write_text("{}")
        assert states_of(replica, name), name
        (replica / name).unlink()
    assert not verify_folder(replica).wrong
    (replica / "archive.json").unlink()
    assert states_of(replica, "archive.json") == {FileState.MISSING}


def states_of(folder: Path, name: str) -> set[FileState]:
    """Return the states of a wrong file and of the folder written with it."""
    return {file.state for file in verify_folder(folder).wrong if file.path == name}


@pytest.mark.usefixtures("replica")
def test_zip_with_a_file_outside_the_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.zip"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/small/._study.toml", "added by macOS")
    assert not verify_folder(path).wrong
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("new.py", "added")
    with pytest.raises(InputError, match=r"new\.py"):
        verify_folder(path)


@pytest.mark.usefixtures("replica")
def test_zip_is_verified_like_its_folder(tmp_path: Path) -> None:
    assert succeed(tmp_path, "verify", "small.zip") == ""
    with zipfile.ZipFile(tmp_path / "small.zip", "a") as archive:
        archive.writestr("small/new.md", "added")
    assert "new.md" in run(tmp_path, "verify", "small.zip", status=1).stdout
    with (
        pytest.warns(UserWarning, match="Duplicate"),
        zipfile.ZipFile(tmp_path / "small.zip", "a") as archive,
    ):
        archive.writestr("small/README.md", "twice")
    for name in ("small.zip", "damaged.zip"):
        (tmp_path / "damaged.zip").write_bytes(b"PK")
        assert run(tmp_path, "verify", name).returncode == 2


def test_same_study_makes_the_same_zip(study: Path, tmp_path: Path) -> None:
    zip_contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with mock.patch.dict(os.environ, DATE):
            archive_study(read_study(study), tmp_path / name / "study.zip")
        zip_contents.append((tmp_path / name / "study.zip").read_bytes())
    assert zip_contents[0] == zip_contents[1]
    with zipfile.ZipFile(tmp_path / "one" / "study.zip") as archive:
        # 14 November 2023, 22:13:20 UTC, is 1,700,000,000 seconds after 1970
        assert {info.date_time for info in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}
        assert archive.namelist() == sorted(archive.namelist())


@pytest.mark.slow
def test_unpacked_archive_reproduces_the_results(replica: Path) -> None:
    succeed(replica, "run", "--quiet")
    old_paths = sorted((replica / "archived-results").rglob("*.csv"))
    assert len(old_paths) > 20
    for path in old_paths:  # byte by byte, without the comparison of contstim
        new_path = replica / "results" / path.relative_to(replica / "archived-results")
        assert new_path.read_bytes() == path.read_bytes(), path
    assert "results of the new run equal those in archived" in run(replica, "verify").stderr

    # The new results can be archived too
    succeed(replica, "archive", "--out", "../again", "--quiet")
    assert (replica.parent / "again" / "archived-results" / "triplets.csv").is_file()


def test_stale_and_edited_stages_need_as_it_is_option(study: Path, tmp_path: Path) -> None:
    with (study / "results" / "natural.txt").open("a", encoding="utf-8") as file:
        file.write("The dog saw the cat again today now.\n")
    change(study, ("random_per_group = 2", "random_per_group = 1"))
    refusal = run(study, "archive", "--out", str(tmp_path / "no.zip"), status=2)
    assert "results/natural.txt was changed by hand" in refusal.stderr
    assert "design is stale" in refusal.stderr
    assert not (tmp_path / "no.zip").exists()
    result = run(study, "archive", "--out", str(tmp_path / "folder"), "--as-it-is", status=0)
    assert " MB. " in result.stderr  # a folder is not packed
    for name in ("README.md", "datasheet.md"):
        text = (tmp_path / "folder" / name).read_text()
        assert "results/natural.txt was changed by hand" in text
    assert json.loads((tmp_path / "folder" / "archive.json").read_text())["as_it_is"]
    repetition = run(study, "archive", "--out", str(tmp_path / "folder"), "--as-it-is")
    assert "exists already" in repetition.stderr


def test_run_requests_an_input_missing_from_the_archive(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "without"
    succeed(study, "archive", "--out", str(out), "--without", "corpus.txt", "--largest", "100")
    assert not (out / "corpus.txt").exists()
    content = (study / "corpus.txt").read_bytes()
    result = run(out, "run", status=2)
    assert f"corpus.txt: {len(content):,} bytes" in result.stderr
    assert hashlib.sha256(content).hexdigest() in result.stderr
    assert hashlib.sha256(content).hexdigest() in (out / "README.md").read_text()
    (out / "corpus.txt").write_text("Another text.\n")
    mismatch = run(out, "run", "--until", "model", "--quiet")
    assert "corpus.txt differs from the file with which the archive was made" in mismatch.stderr
    result = run(study, "archive", "--out", str(tmp_path / "x"), "--without", "corpus")
    assert "there is no such file" in result.stderr


def test_responses_are_archived_without_server_database(study: Path, tmp_path: Path) -> None:
    """The database identifies participants, and its record may contain payment codes."""
    section = '[simulate]\nmodel = "bigram"\nparticipants = 12'
    change(study, (section, '[import.collected]\nfiles = ["people.sqlite"]'))
    for name in ("people.sqlite", "people.sqlite.meta.json"):
        (study / name).write_text("{}", encoding="utf-8")
    archive = tmp_path / "public"
    succeed(study, "archive", "--out", str(archive), "--as-it-is")
    assert [*archive.rglob("people*")] == []
    responses = (study / "results" / "responses.csv").read_bytes()
    assert (archive / "inputs" / "collected.csv").read_bytes() == responses
    archived_study = read_study(archive)
    assert archived_study.files["responses"] == Path("inputs/collected.csv")
    assert "import collected" not in {stage.name for stage in archived_study.stages}
    change(study, ("[import.collected]", '[import."collected"]'))
    result = run(study, "archive", "--out", str(tmp_path / "no"), "--as-it-is")
    assert "on a line of its own" in result.stderr


def test_large_inputs_are_listed_and_not_copied(study: Path, tmp_path: Path) -> None:
    manifest, _ = archive_study(read_study(study), tmp_path / "large", largest=0.000001)
    assert {file.name for file in manifest.to_supply} == {"corpus.txt", "more.txt"}


def test_paths_of_other_folders_are_replaced_in_study_file(study: Path, tmp_path: Path) -> None:
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
    text, files = _study_inputs(study)
    models = (f"inputs/old=1.arpa{e}" for e in ("", ".counts.csv", ".sentences.npy"))
    assert set(files) == {"inputs/corpus.txt", "inputs/README.md", "more.txt", *models}
    for line in (
        'training = "inputs/corpus.txt" # "corpus.txt"',
        'old = "kenlm:inputs/old=1.arpa"',
        'exclude = ["inputs/README.md"]',
        'natural = "more.txt"',
        'title = "Small"',
    ):
        assert f"{line}\n" in text


def _study_inputs(study: Path) -> tuple[str, dict[str, Path]]:
    with chdir(study):
        return study_inputs(read_study("study.toml"), Path("study.toml").read_text())


def test_archive_that_changes_model_order_is_refused(study: Path, tmp_path: Path) -> None:
    arpa = study / "results" / "models" / "unigram.arpa"
    (study / "aa.arpa").write_bytes(arpa.read_bytes())
    (tmp_path / "zz.arpa").write_bytes(arpa.read_bytes())
    # ../zz sorts before aa, and inputs/zz after it
    change(study, ("[vocabulary]", 'a = "kenlm:aa.arpa"\nz = "kenlm:../zz.arpa"\n[vocabulary]'))
    with pytest.raises(InputError, match="another order"):
        _study_inputs(study)
