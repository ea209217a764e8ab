"""JSON and TOML, against the formats' own rules (RFC 8259, I-JSON RFC 7493, TOML 1.0)."""

import json
from itertools import product
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.files import documents

NOT_JSON = {
    "empty": "",
    "cut": '{"a": [1, 2',
    "cut text": '{"a": "b',
    "nan": '{"a": NaN}',
    "infinity": '{"a": -Infinity}',
    "overflow": '{"a": 1e999}',
    "large integer": '{"a": 1' + "0" * 400 + "}",
    "long integer": '{"a": ' + "7" * 5_000 + "}",
    "half surrogate": r'{"a": "\ud800"}',
    "half surrogate as a name": r'{"\udc00": 1}',
    "name twice": '{"a": 1, "a": 2}',
    "deep lists": '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep objects": '{"a": ' * 5_000 + "1" + "}" * 5_000,
    "a little too deep": "[" * (documents.DEEPEST + 1) + "1" + "]" * (documents.DEEPEST + 1),
    "two values": "{} {}",
    "control character": '{"a": "\x01"}',
}
NOT_TOML = {
    "cut": "a = [1, 2",
    "nan": "a = nan",
    "infinity": "a = inf",
    "overflow": "a = 1e999",
    "large integer": "a = 1" + "0" * 400,
    "long integer": "a = " + "7" * 5_000,
    "half surrogate": r'a = "\ud800"',
    "name twice": "a = 1\na = 2",
    "deep lists": "a = " + "[" * 5_000 + "]" * 5_000,
    "deep tables": "a = " + "{a = " * 5_000 + "1" + "}" * 5_000,
    "deep names": "a" + ".a" * 5_000 + " = 1",
}


@pytest.mark.parametrize("text", NOT_JSON.values(), ids=NOT_JSON)
def test_invalid_json_error_names_the_source(text: str) -> None:
    with pytest.raises(InputError, match=r"^study\.json is not readable JSON: .{3,120}$"):
        documents.parse_json(text, "study.json")


@pytest.mark.parametrize("text", NOT_TOML.values(), ids=NOT_TOML)
def test_invalid_toml_error_names_the_source(text: str) -> None:
    with pytest.raises(InputError, match=r"^own\.toml is not readable TOML: .{3,120}$"):
        documents.parse_toml(text, "own.toml")


def test_json_of_the_standard_library_is_read() -> None:
    values: tuple[object, ...] = (
        {"names": ["á", "😀", "\0", "\\u0000", "\x7f"], "": {"n": [1, -2.5, 1e300, None, True]}},
        ["[" * 1_000, 10**308, 0.1],
        [[[[[[[[]]]]]]]],
    )
    for value, ascii_only in product(values, (True, False)):
        assert documents.parse_json(json.dumps(value, ensure_ascii=ascii_only), "x") == value
    for text in ("[]", "null", "3", '"text"'):
        assert documents.parse_json(text, "x") == json.loads(text)
        with pytest.raises(InputError, match="is not a JSON object"):
            documents.parse_json_object(text, "x")


def test_bytes_are_utf_8_with_or_without_a_byte_order_mark() -> None:
    assert documents.parse_json(b'\xef\xbb\xbf{"a": "\xc3\xa1"}', "x") == {"a": "á"}
    assert documents.parse_toml(b'\xef\xbb\xbfa = "\xc3\xa1"\r\nb = 1', "x") == {"a": "á", "b": 1}
    for encoding in ("utf-16", "latin-1"):
        with pytest.raises(InputError, match=r"^x is not UTF-8 \(byte"):
            documents.parse_json('{"a": "á"}'.encode(encoding), "x")


def test_unreadable_files_are_errors(tmp_path: Path) -> None:
    for reader in (documents.read_json_object, documents.read_json_lines, documents.read_toml):
        with pytest.raises(InputError, match=r"Cannot read .*absent: No such file"):
            reader(tmp_path / "absent")
        with pytest.raises(InputError, match=r"Cannot read .*: Is a directory"):
            reader(tmp_path)
        with pytest.raises(InputError, match=r"Cannot read /dev/zero: it is a device"):
            reader("/dev/zero")


def test_invalid_line_of_json_lines_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": "x\u2028y"}\n\n{"a": 2}\n')
    assert documents.read_json_lines(path) == [(1, {"a": "x\u2028y"}), (3, {"a": 2})]
    path.write_text('{"a": 1}\n\n[2]\n')
    with pytest.raises(InputError, match=r"rows\.jsonl, line 3 is not a JSON object"):
        documents.read_json_lines(path)
