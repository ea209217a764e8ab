"""Check all links within the built site: `python links.py build/site`."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Link targets and anchors of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = {"", "top"}
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record links, sources of images and scripts, and anchors."""
        for name, value in attrs:
            if name in ("href", "src") and value and tag != "base":
                self.targets.add(value)
            if name == "id" and value:
                self.anchors.add(value)


def dead_links(site: Path) -> list[str]:
    """Return every link to a missing file or anchor of the site, as `page: target`.

    Links to other hosts and links made by scripts are not checked.
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
    print("\n".join(dead) or "All links within the site are valid.")
    sys.exit(bool(dead))
