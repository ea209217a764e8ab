"""Lines of keys: counted by hand, and against Python's own reader of TOML."""

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contstim.study.problems import line_of, lines_of_keys

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
