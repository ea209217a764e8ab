"""Nothing is let in: texts come out as texts, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.experiments.platforms.conftest import Collect, Export
from tests.experiments.platforms.walking import answer, begin, reach, shown
from tests.experiments.stimuli import new_trial

Visit = Callable[..., Any]

HOSTILE = (
    "<script>window.broken = 1</script>",
    '"><img src=x onerror="window.broken = 2">',
    "&lt;b&gt; &amp; \\u003cscript\\u003e ${window.broken = 3} '; DROP TABLE responses; --",
    '=HYPERLINK("http://example.org","x")',
    "</div></main></script><!-- {{constructor.constructor('window.broken = 4')()}}",
    "\u202eright to left\u202c \u0000 null".replace("\0", ""),
    "word" * 2_500,
    "many words " * 900 + "end",
)


def test_nothing_in_a_text_is_taken_for_anything_else(
    export: Export, collect: Collect, visit: Visit
) -> None:
    """Every hostile sentence, title, label and example is on the page as it was written."""
    trials = [
        new_trial(f"t'{n}\"<i>", 1, first, second)
        for n, (first, second) in enumerate(zip(HOSTILE[::2], HOSTILE[1::2], strict=True))
    ]
    folder = export(trials, title="</title><script>window.broken = 5</script>")
    consent = "# <img src=x onerror=window.broken=6>\n\n[x](javascript:window.broken=7) **<b>**"
    (folder / "consent.md").write_text(consent)
    labels = (folder / "labels.csv").read_text()
    hostile_label = "continue<script>window.broken=8</script>"
    (folder / "labels.csv").write_text(labels.replace("Continue", hostile_label))
    server = collect(folder)
    page = visit(server.address, viewport={"width": 1280, "height": 800})
    assert page.title() == "</title><script>window.broken = 5</script>"
    reach(page, "consent")
    assert page.inner_text("h1") == "<img src=x onerror=window.broken=6>"
    assert page.locator("#stage a").count() == 0
    assert page.inner_text("strong") == "<b>"
    begin(page)
    seen: set[str] = set()
    for _ in trials:
        page.wait_for_selector("button.confidence:enabled")
        seen.update(shown(page))
        assert page.locator(".sentence *").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("button.confidence").last.bounding_box()["y"] < 800
        answer(page, 1)
    reach(page, "saved")
    # Marks of direction, which no reader sees, leave a sentence when it is read
    written = [text.translate({0x202E: None, 0x202C: None}) for text in HOSTILE]
    expected = {" ".join(text.split()).rstrip(".!?") for text in written}
    assert expected <= {" ".join(text.split()) for text in seen}
    assert page.evaluate("window.broken") is None
    assert {row["trial_id"] for row in server.rows("p1")} == {t.trial_id for t in trials}
