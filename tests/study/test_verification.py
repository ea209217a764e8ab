"""Verification of folders with edited, deleted or swapped files.

Witnesses: expectations written by hand before the first run; for random chains of commands, a
literal recursion.
"""

import hashlib
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.files.records import recorded_as, write_record
from contstim.models.ngram.training import DiscountWarning
from contstim.steps.training import TrainNgram
from contstim.study.handing_on.manifest import ArchivedFile, Manifest
from contstim.study.verification import FileState, group_files, summary, verify_folder
from tests.cli.running import run

HOLDS, EDITED, STALE, MISSING, GIVEN = map(FileState, "holds edited stale missing given".split())

# corpus.txt --> natural.txt --> scores.csv --> pairs.csv and its certificate --> trials.csv
FILES = "corpus.txt natural.txt scores.csv pairs.csv pairs.csv.certificate.json trials.csv".split()
UNTOUCHED = (GIVEN, HOLDS, HOLDS, HOLDS, HOLDS, HOLDS)

# Change to the files → states of the six files, in the order of FILES
EXPECTED: dict[str, tuple[FileState, ...]] = {
    "nothing": UNTOUCHED,
    "edit corpus.txt": (GIVEN, STALE, STALE, STALE, STALE, STALE),
    "edit natural.txt": (GIVEN, EDITED, STALE, STALE, STALE, STALE),
    "edit scores.csv": (GIVEN, HOLDS, EDITED, STALE, STALE, STALE),
    "edit pairs.csv": (GIVEN, HOLDS, HOLDS, EDITED, HOLDS, STALE),
    "edit pairs.csv.certificate.json": (GIVEN, HOLDS, HOLDS, HOLDS, EDITED, HOLDS),
    "edit trials.csv": (GIVEN, HOLDS, HOLDS, HOLDS, HOLDS, EDITED),
    "delete corpus.txt": (MISSING, HOLDS, HOLDS, HOLDS, HOLDS, HOLDS),
    "delete natural.txt": (GIVEN, MISSING, HOLDS, HOLDS, HOLDS, HOLDS),
    "delete pairs.csv.certificate.json": (GIVEN, HOLDS, HOLDS, HOLDS, MISSING, HOLDS),
    "delete trials.csv": (GIVEN, HOLDS, HOLDS, HOLDS, HOLDS, MISSING),
    "swap natural.txt and scores.csv": (GIVEN, EDITED, EDITED, STALE, STALE, STALE),
    "swap scores.csv and trials.csv": (GIVEN, HOLDS, EDITED, STALE, STALE, EDITED),
    "swap corpus.txt and natural.txt": (GIVEN, EDITED, STALE, STALE, STALE, STALE),
    "make natural.txt again, as it was": UNTOUCHED,
    "make natural.txt again, differently": (GIVEN, HOLDS, STALE, STALE, STALE, STALE),
    "touch scores.csv": UNTOUCHED,
}


def _make(folder: Path, out: str, content: str, *inputs: str, extra: tuple[str, ...] = ()) -> None:
    """Write a file, additional outputs, and its record."""
    for name in (out, *extra):
        (folder / name).write_text(content + name)
    with recorded_as(("contstim", "make", out)):
        write_record(folder / out, [folder / i for i in inputs], [folder / path for path in extra])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus.txt").write_text("corpus")
    _make(tmp_path, "natural.txt", "a", "corpus.txt")
    _make(tmp_path, "scores.csv", "b", "natural.txt")
    _make(tmp_path, "pairs.csv", "c", "scores.csv", extra=("pairs.csv.certificate.json",))
    _make(tmp_path, "trials.csv", "d", "pairs.csv")
    return tmp_path


def _change(folder: Path, change: str) -> None:
    match change.replace(",", "").split():
        case ["edit", name]:
            (folder / name).write_text("by hand")
        case ["delete", name]:
            (folder / name).unlink()
        case ["touch", name]:
            (folder / name).touch()
        case ["swap", first, "and", second]:
            contents = [(folder / name).read_text() for name in (first, second)]
            for name, content in zip((second, first), contents, strict=True):
                (folder / name).write_text(content)
        case ["make", name, "again", *how]:
            _make(folder, name, "a" if how == ["as", "it", "was"] else "z", "corpus.txt")


@pytest.mark.parametrize("change", EXPECTED)
def test_states_of_a_chain(folder: Path, change: str) -> None:
    _change(folder, change)
    check = verify_folder(folder)
    states = {file.path: file.state for file in check.files}
    assert states == dict(zip(FILES, EXPECTED[change], strict=True))
    assert bool(check.wrong) == (EXPECTED[change] != UNTOUCHED)


def test_sentences_name_command_and_new_place_of_content(folder: Path) -> None:
    _change(folder, "swap natural.txt and trials.csv")
    texts = {file.path: file.sentence for file in verify_folder(folder).files}
    assert "another program, after 'contstim make natural.txt' (" in texts["natural.txt"]
    assert texts["natural.txt"].endswith("It now has the recorded content of trials.csv.")
    assert texts["scores.csv"].startswith("made of an earlier natural.txt by 'contstim make scores")
    assert "made of scores.csv, which is stale itself" in texts["pairs.csv"]


def test_outputs_made_from_an_edited_file_are_named(folder: Path) -> None:
    """The next step used a vocabulary that was edited by hand."""
    _change(folder, "edit natural.txt")
    _make(folder, "scores.csv", "y", "natural.txt")
    files = {file.path: file for file in verify_folder(folder).files}
    assert files["natural.txt"].state is EDITED
    sentence = "With its current content, it was used for scores.csv."
    assert files["natural.txt"].sentence.endswith(sentence)
    assert files["scores.csv"].state is HOLDS
    assert files["pairs.csv"].state is STALE


def test_unreadable_and_missing_records(folder: Path) -> None:
    """A damaged record, a database, a note, a hidden file."""
    (folder / "broken.csv").write_text("x")
    (folder / "broken.csv.meta.json").write_text('{"inputs": ')
    (folder / "odd.csv.meta.json").write_text('{"inputs": 3, "outputs": ["a"]}')
    hub = '{"inputs": {}, "outputs": {"pairs.csv": ""}, "commits": ["gpt2"]}'
    (folder / "hub.csv.meta.json").write_text(hub)
    (folder / "store.sqlite").write_text("rows")
    write_record(folder / "store.sqlite", [], None)
    (folder / "notes.txt").write_text("mine")
    (folder / ".hidden").write_text("mine")
    check = verify_folder(folder)
    states = {file.path: file.state for file in check.files if file.path not in FILES}
    assert states == {
        "broken.csv.meta.json": FileState.UNREADABLE,
        "broken.csv": FileState.UNRECORDED,
        "odd.csv.meta.json": FileState.UNREADABLE,
        "hub.csv.meta.json": FileState.UNREADABLE,
        "store.sqlite": FileState.CHANGING,
        "notes.txt": FileState.UNRECORDED,
    }


def test_interrupted_stage_is_reported(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("")
    (tmp_path / "index.html").write_text("")
    begun = tmp_path / "results" / "begun"
    begun.mkdir(parents=True)
    (tmp_path / "results" / "natural.txt").write_text("text")
    _make(tmp_path / "results", "scores.csv", "b", "natural.txt")
    assert not verify_folder(tmp_path).wrong
    (begun / "pairs.json").write_text("{}")
    wrong_states = {file.path: file.state for file in verify_folder(tmp_path).wrong}
    assert wrong_states == {"results/begun/pairs.json": FileState.UNFINISHED}


def test_retrained_model_makes_later_results_stale(study: Path) -> None:
    model = study / "results" / "models" / "bigram.arpa"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscountWarning)
        TrainNgram(text=study / "more.txt", out=model, order=2).run()
    states = {file.path: file.state for file in verify_folder(study).files}
    for name in ("vocabulary.txt", "natural.txt", "scores.csv", "triplets.csv", "selected.csv"):
        assert states[f"results/{name}"] is STALE
    assert states["results/models/unigram.arpa"] is HOLDS
    assert states["results/models/bigram.arpa"] is HOLDS  # as the later command wrote it


def test_folder_with_one_record(tmp_path: Path) -> None:
    """An added file changes the folder; an edited file with a record is named itself."""
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "page.html").write_text("page")
    write_record(tmp_path / "export")
    assert not verify_folder(tmp_path).wrong
    (tmp_path / "export" / "more.html").write_text("more")
    (file,) = verify_folder(tmp_path).wrong
    assert (file.path, file.state) == ("export", EDITED)
    assert file.sentence.startswith("a file in it was changed, added or removed, by hand or ")
    write_record(tmp_path / "export" / "page.html")
    (tmp_path / "export" / "page.html").write_text("by hand")
    assert [file.path for file in verify_folder(tmp_path).wrong] == ["export/page.html"]


def test_folders_without_records(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"has no record .* nothing to verify"):
        verify_folder(tmp_path)
    with pytest.raises(InputError, match="is neither a folder nor a zip"):
        verify_folder(tmp_path / "notes.txt")


def test_files_with_the_same_state_share_a_row(folder: Path) -> None:
    names = tuple(f"table-{n}.csv" for n in range(5))
    (folder / "sub").mkdir()
    for name in names:
        (folder / "sub" / name).write_text(name)
    paths = [folder / "sub" / name for name in names]
    write_record(paths[0], [folder / "corpus.txt"], paths[1:])
    _change(folder, "edit corpus.txt")
    rows = [row.path for row in group_files(verify_folder(folder).wrong)]
    assert rows.count("5 files in sub") == 1
    assert not any("table" in row for row in rows)


def test_new_results_are_compared_with_archived_ones(tmp_path: Path) -> None:
    """By hand. Certificates contain seconds, and the store is a cache; neither is compared."""
    for results in ("archived-results", "results"):
        (tmp_path / results).mkdir()
        certificate = "pairs.csv.certificate.json"
        _make(tmp_path / results, "pairs.csv", "c", extra=(certificate,))
        _make(tmp_path / results, "trials.csv", "d", "pairs.csv")
    (tmp_path / "results" / "contstim.sqlite").write_text("memory")
    write_manifest(tmp_path)
    check = verify_folder(tmp_path)
    assert {file.state for file in check.files} == {HOLDS}
    assert check.done_again == {"results/pairs.csv": True, "results/trials.csv": True}
    assert summary(check) == (
        "all files are up to date (holds 8). 2 results of the new run equal those in "
        "archived-results."
    )
    _make(tmp_path / "results", "trials.csv", "e", "pairs.csv")
    text = "Of 2 results of the new run, these differ from archived-results: results/trials.csv."
    assert summary(verify_folder(tmp_path)).endswith(text)


def write_manifest(folder: Path) -> None:
    paths = sorted((folder / "archived-results").iterdir())
    archived = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    files = tuple(
        ArchivedFile(name, hashlib.sha256(content).hexdigest(), len(content))
        for name, content in archived.items()
    )
    manifest = Manifest("", "study.toml", "", "", files, (), (), (), (), ())
    (folder / "archive.json").write_text(manifest.json)


def test_verify_command(folder: Path) -> None:
    """Exit statuses 0, 1 and 2, and the printed table, also of a folder that was moved."""
    folder = folder.rename(f"{folder}-moved")
    result = run(folder, "verify", "--all")
    assert (result.returncode, "all files are up to date" in result.stderr) == (0, True)
    assert "made of scores.csv by 'contstim make pairs.csv'" in result.stdout
    _change(folder, "edit scores.csv")
    result = run(folder, "verify", str(folder), status=1)
    assert "scores.csv" in result.stdout
    assert "corpus.txt" not in result.stdout
    assert "4 of 6 files must be checked (edited 1, stale 3, given 1, holds 1)" in result.stderr
    assert run(folder, "verify", "nowhere").returncode == 2


@given(st.data())
def test_random_chains_of_commands(data: st.DataObject) -> None:
    """Witness: the inputs of each file, followed recursively."""
    number = data.draw(st.integers(2, 7))
    sources = [data.draw(st.sets(st.integers(0, n - 1))) if n else set() for n in range(number)]
    fates = [data.draw(st.sampled_from(("left", "left", "edited", "gone"))) for _ in sources]
    expected: list[FileState] = []
    for n, fate in enumerate(fates):
        stale = any(fates[i] == "edited" or expected[i] is STALE for i in sources[n])
        default = STALE if stale else HOLDS
        expected.append({"left": default, "edited": EDITED, "gone": MISSING}[fate])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for n, inputs in enumerate(sources):
            _make(folder, f"{n}.csv", str(n), *(f"{i}.csv" for i in sorted(inputs)))
        for n, fate in enumerate(fates):
            if fate != "left":
                _change(folder, f"{'edit' if fate == 'edited' else 'delete'} {n}.csv")
                if fate == "edited":
                    (folder / f"{n}.csv").write_text(f"by hand {n}")
        check = verify_folder(folder)
    states = {f"{n}.csv": state for n, state in enumerate(expected)}
    assert {file.path: file.state for file in check.files} == states
    beginning = f"{len(check.wrong)} " if check.wrong else "all files are up to date"
    assert summary(check).startswith(beginning)
