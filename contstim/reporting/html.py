"""A report as an HTML page that stands alone: no scripts, nothing fetched."""

from __future__ import annotations

import functools
from base64 import b64encode
from typing import TYPE_CHECKING

from contstim.reporting.report import spans

if TYPE_CHECKING:
    from jinja2 import Template

    from contstim.reporting.report import Report

_PIXELS = 0.36  # for each of a figure's 300 dots an inch: type of 8 points has 12 pixels


def write_html(report: Report) -> str:
    """The page; every text of the report is escaped. See `report.html.jinja`."""
    return page_template("contstim.reporting", "report.html.jinja").render(
        report=report,
        spans=spans,
        base64=lambda png: b64encode(png).decode(),
        # the number of columns stands in a PNG's first chunk
        pixels=lambda png: round(int.from_bytes(png[16:20]) * _PIXELS),
    )


@functools.cache  # a study writes its page twice a stage; compiling takes longer than filling in
def page_template(package: str, name: str) -> Template:
    """A page's form beside a package's modules; texts that are filled in are escaped for HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)
