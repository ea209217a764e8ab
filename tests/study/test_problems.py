"""Problems of a study file: lines of keys, and bad values of every key."""

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


def test_lines_of_keys() -> None:
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


def test_key_in_an_inline_table_has_the_line_of_the_table() -> None:
    lines = lines_of_keys(TEXT)
    assert line_of(lines, ("models", "small", "order")) == 6
    assert line_of(lines, ("export",)) is None


def _key_paths(table: dict[str, Any], parents: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    keys = set()
    for name, value in table.items():
        keys.add((*parents, name))
        if isinstance(value, dict):
            keys |= _key_paths(value, (*parents, name))
    return keys


_NAMES = st.sampled_from(["a", "b-1", "c d", "é", "x.y"])
_VALUES = st.sampled_from(
    ["1", '"x"', "'#'", '"""\n[z]\ny = 2\n"""', "[\n1, # one\n2\n]", '"\\""', "true", "[[1], []]"]
)


@given(
    st.dictionaries(_NAMES, st.dictionaries(_NAMES, _VALUES, max_size=4), max_size=4),
    st.lists(st.integers(0, 2), min_size=30, max_size=30),
)
def test_keys_equal_those_of_tomllib(tables: dict[str, dict[str, str]], blanks: list[int]) -> None:
    """Texts have lists and multiline strings; every line begins with its key."""
    lines: list[str] = []
    for table, keys in tables.items():
        lines += [""] * blanks[len(lines) % 30] + [f'["{table}"]']
        for key, value in keys.items():
            lines += [""] * blanks[len(lines) % 30] + [f'"{key}" = {value}']
    text = "\n".join(lines)
    lines_by_key = lines_of_keys(text)
    assert set(lines_by_key) == _key_paths(tomllib.loads(text))
    for key_path, number in lines_by_key.items():
        assert text.split("\n")[number - 1].lstrip("[").startswith(f'"{key_path[-1]}"')


MODEL = '[texts]\ntraining = "corpus.txt"\n[models]\nbigram = { train = "ngram", order = 2 }\n'


def _declared_fields() -> list[tuple[str, Any]]:
    """Return the section and the field of each declared field of a step."""
    steps = ((name.replace(" ", ".").replace("-", "_"), step_named(name)) for name in step_names())
    kinds: list[tuple[str, Any]] = [*steps, ("loading", Loading)]
    return [(section, field) for section, kind in kinds if kind for field in fields_of(kind)]


def _number_type(hint: Any) -> type[Any] | None:
    kind = get_args(hint)[0]
    inner = get_args(kind) if get_origin(kind) not in (None, tuple) else (kind,)
    return next((number for number in (int, float) if number in inner), None)


NUMBERS = [(section, field) for section, field in _declared_fields() if _number_type(field.hint)]
FILES = [
    (section, field)
    for section, field in _declared_fields()
    if field.note.content and not section.startswith("export")
]


def _read_problems(folder: Path, text: str) -> str:
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
def test_error_gives_line_and_key_of_numbers_out_of_range(tmp_path: Path, value: float) -> None:
    """Witness: the range of each field, applied to each value."""
    assert len(NUMBERS) > 150
    lines, expected, last_section = MODEL.splitlines(), {}, ""
    for section, field in NUMBERS:
        number_type, note = _number_type(field.hint), field.note
        if section != last_section:
            lines.append(f"[{section}]")
        last_section = section
        lower = -LARGEST if note.at_least is None else note.at_least
        upper = LARGEST if note.at_most is None else note.at_most
        in_range = lower <= value <= upper
        in_range &= note.above is None or value > note.above
        in_range &= note.below is None or value < note.below
        text = repr(number_type(value) if number_type is float else value)
        is_list = get_origin(get_args(field.hint)[0]) is tuple
        lines.append(f"{field.name} = [{text}]" if is_list else f"{field.name} = {text}")
        if not in_range:
            expected[len(lines)] = f"[{section}]", field.name
    problems = _read_problems(tmp_path, "\n".join(lines)).splitlines()
    for line, (section, name) in expected.items():
        assert any(
            row.startswith(f"  line {line}, {section}") and f"{name}: " in row for row in problems
        ), (line, section, name)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "9" * 400])
def test_non_finite_numbers_are_refused(tmp_path: Path, value: str) -> None:
    text = _read_problems(tmp_path, f"{small.STUDY}[loading]\nbatch_rows = {value}\n")
    assert "not a finite number" in text or "too large" in text


@pytest.mark.parametrize(
    ("section", "field"), FILES, ids=[f"{section} {field.name}" for section, field in FILES]
)
def test_files_of_another_kind_are_refused(tmp_path: Path, section: str, field: Any) -> None:
    is_list = get_origin(get_args(field.hint)[0]) is tuple
    for name in ("missing", "binary", "folder"):
        value = f'["{name}"]' if is_list else f'"{name}"'
        text = _read_problems(tmp_path, f"{MODEL}[{section}]\n{field.name} = {value}\n")
        # Line 5 for keys that require each other
        assert f"line 6, [{section}]" in text or f"line 5, [{section}]" in text, (name, text)


@pytest.mark.parametrize("kind", KINDS)
def test_training_settings_have_ranges(tmp_path: Path, kind: str) -> None:
    step = step_named(f"train {kind}")
    assert step is not None
    names = [field.name for field in fields_of(step) if _number_type(field.hint)]
    models = [f'm{n} = {{ train = "{kind}", {name} = -1 }}' for n, name in enumerate(names)]
    problems = _read_problems(tmp_path, "\n".join((*MODEL.splitlines(), *models))).splitlines()
    for number, name in enumerate(names):
        prefix = f"line {5 + number}, [models] m{number}"
        assert any(prefix in row and name in row for row in problems), name


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
def test_unusual_values_are_refused_without_blocking(tmp_path: Path, table: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "problem" in _read_problems(tmp_path, f"{table}\n")


def test_control_characters_are_not_printed(tmp_path: Path) -> None:
    text = '[train.ngram]\ntext = "corpus.txt"\nout = "results/\\u001b[31mx\\u0007"\n[x]\n'
    _read_problems(tmp_path, text)
    done = run(tmp_path, "plan", status=2)
    assert not {"\x1b", "\x07"} & {*done.stdout, *done.stderr}


def test_pipe_is_refused_as_input(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    messages = run(tmp_path, "train ngram --text pipe --out x.arpa", status=2).stderr
    assert "pipe is a device or a pipe" in messages
