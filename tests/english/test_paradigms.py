"""Paradigms that users write, and errors about them."""

import json
from pathlib import Path

import pytest

from contstim.english.minimal_pairs import generate_pairs, refuse_other_pairs, write_pairs
from contstim.english.paradigm import choose_paradigms, read_paradigms, shipped_paradigms
from contstim.errors import InputError

HEAD = 'field = "morphology"\nphenomenon = "mine"\n'
OWN_RULE = "[one]\ngood = 'X NAME'\nbad = 'NAME X'"
SIMPLE = """
[simple]
good = "NAME[sem=adult, agr=?a] REFL"
bad = "NAME"
"""


@pytest.fixture(autouse=True)
def low_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop soon when no new pair is drawn: these paradigms have few pairs."""
    monkeypatch.setattr("contstim.english.minimal_pairs.PATIENCE", 500)


def _write_paradigms(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(HEAD + text, encoding="utf-8")
    return path


def test_user_paradigm_with_own_phrases(tmp_path: Path) -> None:
    """External witness: its few possible sentences, written by hand."""
    text = '''
rules = """
TITLE[agr=?a] -> THE N[sem=adult, agr=?a, num=sg, gender=?g, kin=no, prof=yes] [1.0]
"""
[waitress]
either = [{a = "she", b = "him"}]
good = 'TITLE[agr=$a] "saw|heard" REFL[agr=$a]'
bad = 'TITLE verb:"saw" "$b self"'
'''
    (paradigm,) = read_paradigms(_write_paradigms(tmp_path, text))
    pairs = generate_pairs(4, seed=0, paradigms=[paradigm])
    assert {(p.sentence_good, p.sentence_bad) for p in pairs} == {
        (f"The {noun} {verb} herself.", f"The {noun} saw him self.")
        for noun in ("waitress", "actress")
        for verb in ("saw", "heard")
    }
    with pytest.raises(InputError, match="waitress has only 4 distinct pairs, but 5"):
        generate_pairs(5, seed=0, paradigms=[paradigm])


def test_files_have_the_fields_of_blimp(tmp_path: Path) -> None:
    """External witness: the fields of the published files, written by hand."""
    common_fields = {
        *("sentence_good", "sentence_bad", "field", "linguistics_term", "UID", "pairID"),
        *("simple_LM_method", "one_prefix_method", "two_prefix_method", "lexically_identical"),
    }
    one_prefix_fields = {"one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad"}
    two_prefix_fields = {"two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word"}
    fields_by_uid = {"anaphor_gender": one_prefix_fields, "subject_number": two_prefix_fields}
    fields_by_uid["adjunct_island"] = set()
    paradigms = [p for p in shipped_paradigms() if p.uid in fields_by_uid]
    paths = write_pairs(tmp_path, generate_pairs(3, seed=0, paradigms=paradigms))
    assert {path.name for path in paths} == {f"{uid}.jsonl" for uid in fields_by_uid}
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            row = json.loads(line)
            assert set(row) == common_fields | fields_by_uid[path.stem]
            assert row["UID"] == path.stem
            assert row["pairID"] == str(number)
            assert row["one_prefix_method"] is (fields_by_uid[path.stem] is one_prefix_fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no paradigm"),
        ("[one]\ngood = 'NP'", r"\[one\]: `bad`: Field required"),
        ("[one]\ngood = 'A'\nbad = 'A'\nbat = 'A'", "`bat`: Extra inputs"),
        ("[one]\ngood = 'NP ['\nbad = 'NP'", "Cannot read"),
        ("[one]\ngood = 'NP NP'\nbad = 'NP'", "Several items are named NP"),
        ("[one]\ngood = 'NP'\nbad = 'V'", "'V' is not in the good sentence, which has NP"),
        ("[one]\ngood = 'V{agr=he}'\nbad = 'V'", "the bad sentence only"),
        ("[one]\ngood = 'V'\nbad = 'V{agr}'", "feature=value"),
        ("[one]\ngood = 'V'\nbad = 'V[agr=he]'", "another name"),
        ("[one]\ngood = 'V'\nbad = 'V'\nend = ','", "`end`: Input should be"),
        ("[one]\ngood = 'V'\nbad = 'V'\nprefix = 'three'", "`prefix`: .*'one' or 'two'"),
        ("[one]\ngood = 'V'\nbad = 'V'\nprefix = 'two'", "'critical' is needed with"),
        ("[one]\ngood = 'V N'\nbad = 'N V'\nprefix = 'two'\ncritical = 'V'", "must follow another"),
        ("[one]\ngood = 'V'\nbad = 'V'\neither = []", "`either`: List should have at least 1"),
        ("[one]\ngood = 'V'\nbad = 'V'\nwith = 'V'", "both name V"),
        ("[one]\ngood = 'V'\nbad = 'V N[]'\nwith = 'N'", "'bad' and 'with' both name N"),
        ("['../one']\ngood = 'V'\nbad = 'V'", "got '../one'"),
        ("[one]\ngood = '\"a|\"'\nbad = 'V'", "empty alternative"),
        ("[one]\ngood = ''\nbad = 'V'", "at least one"),
        ("[one]\ngood = 3\nbad = 'V'", "`good`: Input should be a valid string"),
    ],
)
def test_invalid_paradigm_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_paradigms(_write_paradigms(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[one]\ngood = 'XYZ'\nbad = '\"a\"'", "XYZ is not a category .* the categories are .*NP"),
        ("[one]\ngood = 'N[sem=unicorn]'\nbad = '\"a\"'", r"no words match N.sem=unicorn."),
        (
            "[one]\ngood = 'NAME[sem=adult] V[form=past, frame=unicorn] REFL'\nbad = '\"a\"'",
            r"no words match NAME.sem=adult. V.form=past, frame=unicorn. REFL",
        ),
        (
            "[one]\ngood = 'NAME[sem=adult] N[sem=adult x] REFL'\nbad = '\"a\"'",
            r"cannot read 'N.sem=adult x.': Expected comma",
        ),
        ("[one]\ngood = 'NAME'\nbad = 'NAME{agr=they}'", "has only 0 distinct pairs"),
        ("[one]\ngood = 'NP[role=asked, sem=adult]'\nbad = 'NP{agr=they}'", "is a phrase"),
        ("[one]\ngood = 'NAME \"a\"'\nbad = '\"b\"'\nprefix = 'one'", "do not begin in the same"),
        (
            "[one]\ngood = 'NAME N'\nbad = 'NAME N'\nprefix = 'two'\ncritical = 'N'",
            "has only 0 distinct",
        ),
        (f"rules = 'X -> X THE [1.0]'\n{OWN_RULE}", "is recursive"),
        (f"rules = 'X -> THE'\n{OWN_RULE}", "rules of X must end in a probability"),
        (f"rules = 'X -> THE[ [1.0]'\n{OWN_RULE}", "Cannot read the rules of a paradigm file"),
        (f"rules = 'X -> \"the\" [1.0]'\n{OWN_RULE}", "'the' is not a category"),
        (f"rules = 'X -> THE [nan]'\n{OWN_RULE}", "is not a category"),
    ],
)
def test_impossible_paradigms_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate_pairs(1, seed=0, paradigms=read_paradigms(_write_paradigms(tmp_path, text)))


def test_repeated_names_and_zero_pairs_are_refused(tmp_path: Path) -> None:
    paradigms = read_paradigms(_write_paradigms(tmp_path, SIMPLE))
    with pytest.raises(InputError, match="Several paradigms have the name simple"):
        generate_pairs(1, seed=0, paradigms=[*paradigms, *paradigms])
    with pytest.raises(InputError, match="at least 1"):
        generate_pairs(0, seed=0, paradigms=paradigms)


def test_paradigms_are_selected_by_name_or_phenomenon() -> None:
    """External witness: names in the documentation and in the paradigm files."""
    paradigms = shipped_paradigms()
    assert choose_paradigms(paradigms, ()) == paradigms
    (selected,) = choose_paradigms(paradigms, ["reflexive_is_no_subject"])
    of_binding = choose_paradigms(paradigms, ["binding"])
    assert selected in of_binding
    assert {paradigm.phenomenon for paradigm in of_binding} == {"binding"}
    with pytest.raises(InputError, match="Unknown paradigm or phenomenon nonsense; the names are"):
        choose_paradigms(paradigms, ["binding", "nonsense"])


def test_folder_with_other_paradigms_is_refused(tmp_path: Path) -> None:
    for name in ("old.jsonl", "older.jsonl", "mine.jsonl", "notes.txt"):
        (tmp_path / name).touch()
    refuse_other_pairs(tmp_path, ["mine", "old", "older"])
    with pytest.raises(InputError, match=r"old\.jsonl is not a paradigm .* and 1 other such files"):
        refuse_other_pairs(tmp_path, ["mine"])
