"""A study writes only inside its folder, and each of its paths belongs to one stage."""

from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.study.handing_on.archive import archive_study
from contstim.study.handing_on.manifest import study_inputs
from contstim.study.study_file import read_study
from tests.cli.running import run
from tests.study import small
from tests.study.small import change

STUDY = """\
[texts]
training = "text.txt"
[models]
a = { train = "ngram", order = 1%s }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study that trains a model on a text, next to files outside the study."""
    (tmp_path / "other").mkdir()
    (tmp_path / "KEEP.txt").write_text("kept\n")
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "text.txt").write_text("The dog saw a cat.\nA cat saw the dog.\n" * 20)
    (folder / "study.toml").write_text(STUDY % "")
    return folder


def _assert_unchanged_outside(tmp_path: Path) -> None:
    assert {path.name for path in tmp_path.iterdir()} <= {"KEEP.txt", "other", "study"}
    assert (tmp_path / "KEEP.txt").read_text() == "kept\n"
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.parametrize("part", ["rule", "transform"])
def test_rule_that_is_a_path_is_refused(folder: Path, tmp_path: Path, part: str) -> None:
    text = STUDY % f', {part} = "/../../../../KEEP.txt"'
    (folder / "study.toml").write_text(text)
    result = run(folder, "run", status=2)
    assert "line 4, [models] a: " in result.stderr
    assert not (folder / "results").exists()
    _assert_unchanged_outside(tmp_path)


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
        result = run(folder, *command, status=2)
        assert f"{link!r} is, or is inside, a link that leads out of {folder}" in result.stderr
        _assert_unchanged_outside(tmp_path)


def test_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "large").mkdir()
    (folder / "results").symlink_to("large")
    assert run(folder, "run").returncode == 0
    assert (folder / "large" / "models" / "a.arpa").is_file()


def test_paths_in_an_archive_stay_inside_it(study: Path, tmp_path: Path) -> None:
    """An input above the study, and a file name that other systems read as a path."""
    (study / "more.txt").rename(tmp_path / "..\\more.txt")
    change(study, ('"more.txt"', r'"../..\\more.txt"'))
    with pytest.raises(InputError, match="must be a file in"):
        archive_study(read_study(study), tmp_path / "out.zip", as_it_is=True)
    assert not (tmp_path / "out.zip").exists()


def test_archive_renames_parent_folders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "inside").mkdir()
    (folder / "inside" / "study.toml").write_text("")
    monkeypatch.chdir(folder / "inside")
    monkeypatch.setattr("contstim.study.handing_on.manifest._paths", lambda _: [Path("..")])
    _, files = study_inputs(read_study("study.toml"), 'a = "hf:.."')
    assert files["inputs/study/text.txt"] == Path("../text.txt")


def write_texts(folder: Path) -> None:
    for name in ("corpus.txt", "more.txt"):
        (folder / name).write_text("The cat sat on the small mat today.\n" * 2000)


# Paths of outputs, under `results/`, and their owner in the error
OUTS = {
    "the store of the study": "contstim.sqlite contstim.sqlite-wal contstim.sqlite-shm "
    "contstim.sqlite.times.json Contstim.SQLite ./contstim.sqlite/x",
    "the lock of the study": ".lock",
    "the folder of begun stages": "begun/x",
    "the stage 'sentences'": "natural.txt NATURAL.txt",
    "the stage 'model bigram'": "models models/bigram.arpa models/bigram.arpa.counts.csv",
    "the stage 'select natural'": "pairs.csv.certificate.json",
    "the stage 'analyze'": "analysis/x",
    "the stage 'simulate'": "responses.csv.questions.csv",
    "must not end in .meta.json": "natural.txt.meta.json",
    "the study file": "link/study.toml",
    "the page of the study": "link/INDEX.html",
    "name a path in results/": "../index.html ../study.toml",
}


@pytest.mark.parametrize(
    ("out", "owner"), [(f"results/{out}", owner) for owner in OUTS for out in OUTS[owner].split()]
)
def test_step_cannot_write_paths_of_other_stages(tmp_path: Path, out: str, owner: str) -> None:
    write_texts(tmp_path)
    text = f'{small.STUDY}[train.ngram]\nout = "{out}"\n'
    (tmp_path / "study.toml").write_text(text)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "link").symlink_to("..")
    with pytest.raises(InputError) as error:
        read_study(tmp_path)
    assert owner in str(error.value)
    line = text.splitlines().index(f'out = "{out}"') + 1
    assert any(f"line {number}, [train.ngram]" in str(error.value) for number in (line - 1, line))


def test_models_with_one_path_are_refused(tmp_path: Path) -> None:
    write_texts(tmp_path)
    network = '[models]\n"bigram.arpa" = { train = "lstm" }'
    (tmp_path / "study.toml").write_text(small.STUDY.replace("[models]", network))
    with pytest.raises(InputError, match=r"\[models\] bigram.*belongs to the stage 'model bigram"):
        read_study(tmp_path)
