"""A real browser, the files of jsPsych, and servers of responses and of static files."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from contstim.experiments.platforms.jspsych import PageSettings, export_jspsych
from contstim.items.stimuli import Trial
from tests.experiments.collection.conftest import serve
from tests.experiments.responses.experiment import make_trials

__all__ = ["serve"]

PAIRS = 3  # trials of each of the two groups
TRIALS = [trial for trial in make_trials(2, catch=1) if int(trial.trial_id[-1]) < PAIRS]

# The first two load pages for the address bar, which take longer than the pages of the tests.
# Playwright disables the others, but only the last --disable-features has an effect.
DISABLED_FEATURES = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)

Export = Callable[..., Path]
Visit = Callable[..., Any]
Host = Callable[[Path], str]


@pytest.fixture(scope="session")
def library() -> Path:
    """Folder with the files of jsPsych, which are not part of this repository."""
    folder = os.environ.get("CONTSTIM_JSPSYCH")
    if not folder:
        pytest.skip("CONTSTIM_JSPSYCH must name the folder of jsPsych (see fetch_library)")
    return Path(folder)


@pytest.fixture(scope="package")  # other folders' tests start event loops
def chromium() -> Iterator[Any]:
    """Chromium, driven by Playwright."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    names = (os.environ.get("CONTSTIM_CHROMIUM", ""), "chromium", "chromium-browser")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("Chromium is not installed")
    arguments = [
        "--no-sandbox",
        "--host-resolver-rules=MAP lab.example 127.0.0.1",
        f"--disable-features={','.join(DISABLED_FEATURES)}",
    ]
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open a page in a new browser context; errors on pages fail the test."""
    contexts: list[Any] = []
    problems: list[str] = []

    def open_page(address: str | None = None, **options: Any) -> Any:
        context = chromium.new_context(**options)
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        if address is not None:
            page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def export(tmp_path: Path, library: Path) -> Export:
    """Export a page with jsPsych in its folder, by default with short texts."""

    def write(trials: list[Trial] | None = None, *, brief: bool = True, **settings: Any) -> Path:
        folder = tmp_path / "page"
        export_jspsych(trials or TRIALS, folder, PageSettings(library=library, **settings))
        if brief:
            (folder / "instructions.md").write_text("Choose one of {pairs}.\n")
            (folder / "examples.csv").write_text("sentence_1,sentence_2,rating,explanation\n")
        return folder

    return write


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def host() -> Iterator[Host]:
    """Serve a folder of static files and return its address."""
    with ExitStack() as stack:

        def start(folder: Path) -> str:
            handler = partial(_QuietHandler, directory=str(folder))
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
            stack.callback(server.shutdown)
            Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            return f"http://127.0.0.1:{server.server_port}/"

        yield start
