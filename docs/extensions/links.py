"""Whether all links within the built site lead somewhere: `python links.py build/site`."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and what can be linked to on it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = {"", "top"}
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note links, sources of images and scripts, and names."""
        for name, value in attrs:
            if name in ("href", "src") and value and tag != "base":
                self.targets.add(value)
            if name == "id" and value:
                self.anchors.add(value)


def dead_links(site: Path) -> list[str]:
    """Every link of a page to a file or an anchor of the site that is not there.

    Links to another host, and those that a script makes, are not looked at. Pages with a fragment
    that a script reads (`search.html`) have no dead anchors.
    """
    pages = {file.resolve(): Page(file) for file in sorted(site.rglob("*.html"))}
    dead = []
    for file, page in pages.items():
        for target in sorted(page.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            aim = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if aim.is_dir():
                aim /= "index.html"
            there = aim.exists() and (
                aim not in pages or unquote(parts.fragment) in pages[aim].anchors
            )
            if not there:
                dead.append(f"{file.relative_to(site.resolve())}: {target}")
    return dead


if __name__ == "__main__":
    dead = dead_links(Path(sys.argv[1]))
    print("\n".join(dead) or "All links within the site lead somewhere.")
    sys.exit(bool(dead))
