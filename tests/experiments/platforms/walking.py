"""Steps of a participant through the page, by mouse and keyboard."""

import os
from pathlib import Path
from typing import Any

SAVED = "n => JSON.parse(Object.values(localStorage)[0]).saved.length === n"


def read_state(page: Any) -> str:
    return str(page.evaluate("document.body.dataset.state"))


def wait_for(page: Any, *states: str) -> None:
    page.wait_for_selector(",".join(f'body[data-state="{name}"]' for name in states))


def screenshot(page: Any, name: str) -> None:
    """Save a screenshot in the folder CONTSTIM_ARTIFACTS, if it is set."""
    folder = os.environ.get("CONTSTIM_ARTIFACTS")
    if folder:
        width = page.viewport_size["width"]
        page.screenshot(path=Path(folder) / f"experiment-{width}-{name}.png", full_page=True)


def begin(page: Any, *, pictures: bool = False) -> None:
    """Give consent and read all instructions."""
    wait_for(page, "consent")
    if pictures:
        screenshot(page, "1-consent")
    page.click("button.next >> nth=0")
    wait_for(page, "instructions")
    number = 0
    while read_state(page) == "instructions":
        number += 1
        if pictures:
            screenshot(page, f"2-instructions-{number}")
        text = page.inner_text("#jspsych-content")
        page.locator("button.next").last.click()
        page.wait_for_function(
            "before => document.querySelector('#jspsych-content').innerText !== before", arg=text
        )


def read_sentences(page: Any) -> tuple[str, str]:
    """Return the sentences on the page, from left to right."""
    first, second = page.locator(".sentence").all_inner_texts()
    return first, second


def answer(page: Any, button: int, *, key: bool = False) -> tuple[str, str]:
    """Press a button, 1 to 6 from the left; return the sentences of the trial."""
    wait_for(page, "trials", "practice")
    page.wait_for_selector(f"button.confidence:enabled >> nth={button - 1}")
    sentences = read_sentences(page)
    stimulus = page.locator("#jspsych-html-button-response-stimulus").element_handle()
    if key:
        page.keyboard.press(str(button))
    else:
        page.locator("button.confidence").nth(button - 1).click()
    page.wait_for_function("element => !element.isConnected", arg=stimulus)
    return sentences
