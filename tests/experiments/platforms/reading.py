"""How a person would read an HTML text: Python's own parser, entities resolved, tags dropped."""

from __future__ import annotations

from html.parser import HTMLParser


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self.tags: list[str] = []

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.append(tag)


def read_html(markup: str) -> tuple[str, list[str]]:
    """The text, and the tags that the markup opens."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return "".join(reader.text), reader.tags
