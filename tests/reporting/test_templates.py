"""Templates: whatever signs a value holds, it is text, where a template has it and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from contstim.reporting.report import Bullets, Paragraph, Report, Table, code, strong
from contstim.reporting.templates import fill_template

_SIGNS = st.text(st.sampled_from("\\*`#|-+{}<&a "))


@given(value=_SIGNS.map(lambda text: f"x{text}x") | st.just("# heading\n\n- item\n| cell |"))
def test_a_value_is_text_and_nothing_else(value: str) -> None:
    """Witness: the parts that a reader of the template expects, written down by hand."""
    shown = " ".join(value.split("\n")) if "\n\n" not in value else "# heading - item | cell |"
    report = fill_template("tests.reporting", "values.md.jinja", value=value)
    assert report == Report(
        shown,
        [
            Paragraph(shown),
            Paragraph((f"Before {shown}, ", strong(shown), ", ", code(shown), ", and after.")),
            Bullets([shown, f"{shown} and 1,200"]),
            Table(
                ["name", shown, "note"], [[shown, "0.5", (strong(shown),)]] * 2, texts=1, notes=1
            ),
        ],
    )


def test_a_value_that_is_lacking_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        fill_template("tests.reporting", "values.md.jinja")
