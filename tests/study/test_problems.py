"""Problems of a study file: lines of keys, and bad values of every key, refused with their line."""

import os
import tomllib
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.models.loading import Loading
from contstim.options import LARGEST
from contstim.steps import step_named, step_names
from contstim.steps.step import fields_of
from contstim.study.problems import line_of, lines_of_keys
from contstim.study.study_file import KINDS, read_study
from tests.cli.running import run
from tests.study import small

TEXT = '''\
title = "a # no comment"  # a comment with [brackets]

[texts]
training = "a.txt"
[models]
small = { train = "ngram", order = 2 }
"large one" = """
[select.natural]
per_pair = 1
"""
[sentences]
exclude = [  # a list over lines
  "a]b",
  'c = 1',
]
words = "8"

[ export . jspsych ]
title = 'x'
'''


def test_each_key_has_its_line() -> None:
    assert lines_of_keys(TEXT) == {
        ("title",): 1,
        ("texts",): 3,
        ("texts", "training"): 4,
        ("models",): 5,
        ("models", "small"): 6,
        ("models", "large one"): 7,
        ("sentences",): 11,
        ("sentences", "exclude"): 12,
        ("sentences", "words"): 16,
        ("export", "jspsych"): 18,
        ("export", "jspsych", "title"): 19,
    }


def test_what_has_no_line_of_its_own_has_that_of_what_it_stands_in() -> None:
    lines = lines_of_keys(TEXT)
    assert line_of(lines, ("models", "small", "order")) == 6
    assert line_of(lines, ("export",)) is None


def _keys(table: dict[str, Any], above: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    keys = set()
    for name, value in table.items():
        keys.add((*above, name))
        if isinstance(value, dict):
            keys |= _keys(value, (*above, name))
    return keys


_NAMES = st.sampled_from(["a", "b-1", "c d", "é", "x.y"])
_VALUES = st.sampled_from(
    ["1", '"x"', "'#'", '"""\n[z]\ny = 2\n"""', "[\n1, # one\n2\n]", '"\\""', "true", "[[1], []]"]
)


@given(
    st.dictionaries(_NAMES, st.dictionaries(_NAMES, _VALUES, max_size=4), max_size=4),
    st.lists(st.integers(0, 2), min_size=30, max_size=30),
)
def test_keys_are_those_of_tomllib(tables: dict[str, dict[str, str]], blanks: list[int]) -> None:
    """Of texts with lists and texts over several lines; every line begins with its key."""
    lines: list[str] = []
    for table, keys in tables.items():
        lines += [""] * blanks[len(lines) % 30] + [f'["{table}"]']
        for key, value in keys.items():
            lines += [""] * blanks[len(lines) % 30] + [f'"{key}" = {value}']
    text = "\n".join(lines)
    places = lines_of_keys(text)
    assert set(places) == _keys(tomllib.loads(text))
    for place, number in places.items():
        assert text.split("\n")[number - 1].lstrip("[").startswith(f'"{place[-1]}"')


MODEL = '[texts]\ntraining = "corpus.txt"\n[models]\nbigram = { train = "ngram", order = 2 }\n'


def _declared() -> list[tuple[str, Any]]:
    """Heading of the section of each declared field of a step, and the field."""
    steps = ((name.replace(" ", ".").replace("-", "_"), step_named(name)) for name in step_names())
    kinds: list[tuple[str, Any]] = [*steps, ("loading", Loading)]
    return [(section, field) for section, kind in kinds if kind for field in fields_of(kind)]


def _number(hint: Any) -> type[Any] | None:
    kind = get_args(hint)[0]
    inner = get_args(kind) if get_origin(kind) not in (None, tuple) else (kind,)
    return next((number for number in (int, float) if number in inner), None)


NUMBERS = [(section, field) for section, field in _declared() if _number(field.hint)]
FILES = [
    (section, field)
    for section, field in _declared()
    if field.note.content and not section.startswith("export")
]


def _problems(folder: Path, text: str) -> str:
    for name in ("corpus.txt", "more.txt"):
        (folder / name).write_text("The dog saw the cat.\n" * 400, encoding="utf-8")
    (folder / "folder").mkdir(exist_ok=True)
    (folder / "binary").write_bytes(b"\x89PNG\x00\xff\xfe" * 99)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    try:
        read_study(folder)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("value", [-1, 0, 1e300, 10**12, 10**300])
def test_numbers_out_of_range_are_refused_with_line_and_key(tmp_path: Path, value: float) -> None:
    """Witness: the range of each field, applied here to each value."""
    assert len(NUMBERS) > 150
    lines, refused, section_before = MODEL.splitlines(), {}, ""
    for section, field in NUMBERS:
        number, note = _number(field.hint), field.note
        if section != section_before:
            lines.append(f"[{section}]")
        section_before = section
        low = -LARGEST if note.at_least is None else note.at_least
        high = LARGEST if note.at_most is None else note.at_most
        inside = low <= value <= high
        inside &= note.above is None or value > note.above
        inside &= note.below is None or value < note.below
        text = repr(number(value) if number is float else value)
        is_list = get_origin(get_args(field.hint)[0]) is tuple
        lines.append(f"{field.name} = [{text}]" if is_list else f"{field.name} = {text}")
        if not inside:
            refused[len(lines)] = f"[{section}]", field.name
    told = _problems(tmp_path, "\n".join(lines)).splitlines()
    for line, (section, name) in refused.items():
        assert any(
            row.startswith(f"  line {line}, {section}") and f"{name}: " in row for row in told
        ), (line, section, name)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "9" * 400])
def test_numbers_that_are_not_finite_are_refused(tmp_path: Path, value: str) -> None:
    told = _problems(tmp_path, f"{small.STUDY}[loading]\nbatch_rows = {value}\n")
    assert "problem" in told or "not readable TOML" in told


@pytest.mark.parametrize(
    ("section", "field"), FILES, ids=[f"{section} {field.name}" for section, field in FILES]
)
def test_files_of_another_kind_are_refused(tmp_path: Path, section: str, field: Any) -> None:
    is_list = get_origin(get_args(field.hint)[0]) is tuple
    for name in ("missing", "binary", "folder"):
        value = f'["{name}"]' if is_list else f'"{name}"'
        told = _problems(tmp_path, f"{MODEL}[{section}]\n{field.name} = {value}\n")
        # In line 5 where keys need each other
        assert f"line 6, [{section}]" in told or f"line 5, [{section}]" in told, (name, told)


@pytest.mark.parametrize("kind", KINDS)
def test_trainings_have_ranges(tmp_path: Path, kind: str) -> None:
    step = step_named(f"train {kind}")
    assert step is not None
    names = [field.name for field in fields_of(step) if _number(field.hint)]
    models = [f'm{n} = {{ train = "{kind}", {name} = -1 }}' for n, name in enumerate(names)]
    told = _problems(tmp_path, "\n".join((*MODEL.splitlines(), *models))).splitlines()
    for number, name in enumerate(names):
        place = f"line {5 + number}, [models] m{number}"
        assert any(place in row and name in row for row in told), name


@pytest.mark.parametrize(
    "table",
    [
        '[models]\na = { train = ["x"] }',
        "[models]\na = { train = {} }",
        "[models]\na = 1979-05-27",
        '[models]\na = { same = ["x"] }',
        f'[models]\n{"n" * 5000} = {{ train = "ngram" }}',
        f"[{'n' * 5000}]\nx = 1",
        f'[texts]\ntraining = "{"p" * 5000}"',
        '[texts]\ntraining = "pipe"',
        '[train.ngram]\ntext = "corpus.txt"\nout = ""',
        f'[train.ngram]\ntext = "corpus.txt"\nout = "results/{"p" * 5000}"',
        "[select.natural]\nper_pair = 1979-05-27",
        "[select.natural]\nper_pair = [[1]]",
        "[export]\njspsych = 3",
        "seed = 9999999999999999999999999",
        '[evaluate.blimp]\ndata = "pipe"',
        '[review]\njudge = "x"',
    ],
)
def test_hostile_values_are_refused_and_nothing_waits(tmp_path: Path, table: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "problem" in _problems(tmp_path, f"{table}\n")


def test_control_characters_of_a_file_do_not_reach_the_terminal(tmp_path: Path) -> None:
    text = '[train.ngram]\ntext = "corpus.txt"\nout = "results/\\u001b[31mx\\u0007"\n[x]\n'
    _problems(tmp_path, text)
    done = run(tmp_path, "plan", status=2)
    assert not {"\x1b", "\x07"} & {*done.stdout, *done.stderr}


def test_a_pipe_is_no_input(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = run(tmp_path, "train", "ngram", "--text", "pipe", "--out", "x.arpa")
    assert (done.returncode, "pipe is a device or a pipe" in done.stderr) == (2, True)
