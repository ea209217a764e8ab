"""Qualtrics: a survey in the advanced TXT format, and the key to its questions.

Facts from qualtrics.com/support, *Import & Export Surveys: Preparing an Advanced Format TXT File*:
the file begins with `[[AdvancedFormat]]`; `[[Block:name]]` begins a block; a question is its type,
its `[[ID:tag]]` (the name of its column in the data), its text as HTML, and its choices, which
`[[AdvancedChoices]]` lets carry the values that are exported; `[[PageBreak]]` ends a page. What
shows a block to some people only is set in the survey flow, after the import. Qualtrics shuffles
the questions of a block without their page breaks, so that the order of a list is fixed here.

`[[Question:Timing]]` is used by many and not in that documentation: it is written on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.experiments.platforms.display import BUTTONS, QUESTION
from contstim.experiments.platforms.folder import ExportFolder
from contstim.experiments.platforms.lists import sides, stimulus_lists
from contstim.experiments.platforms.markup import as_html

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.experiments.design.presentation import Shown
    from contstim.experiments.platforms.lists import StimulusList
    from contstim.stimuli import Trial

KEY = ("tag", "list_name", "group", "trial_id", "left", "position")


def export_qualtrics(
    trials: Sequence[Trial],
    out: Path | str,
    *,
    lists_per_group: int = 2,
    timing: bool = False,
    seed: int = 0,
) -> Path:
    """Write survey.txt, key.csv (which question shows which trial), lists.csv and a README.

    Each list is a block, with an order of its own; lists 1 and 2, 3 and 4, … of a group are
    mirrored in their sides. Sentences are escaped (`as_html`).

    Args:
        trials: a design's.
        out: the folder, new or of an earlier export.
        lists_per_group: how many orders each group has; more make a larger survey.
        timing: add a timing question to each trial.
        seed: decides orders and sides.

    Raises:
        InputError: the trials cannot be traced back, or the folder holds other files.
    """
    folder = ExportFolder(out)
    lists = stimulus_lists(trials, per_group=lists_per_group, seed=seed)
    lines = ["[[AdvancedFormat]]", ""]
    for one in lists:
        lines += [f"[[Block:{one.name}]]", ""]
        for shown in one.shown:
            lines += _question(question_tag(one, shown), shown, timing=timing)
    key = [_key_row(one, shown) for one in lists for shown in one.shown]
    folder.text("survey.txt", "\n".join(lines))
    folder.rows("key.csv", key, KEY)
    folder.lists(lists)
    folder.readme("qualtrics.md", lists=len(lists), questions=f"{len(key):,}")
    return folder.finish("qualtrics", seed=seed, lists_per_group=lists_per_group, timing=timing)


def _key_row(one: StimulusList, shown: Shown) -> dict[str, object]:
    return {
        "tag": question_tag(one, shown),
        "list_name": one.name,
        "group": one.group,
        "trial_id": shown.trial.trial_id,
        "left": shown.left,
        "position": shown.position,
    }


def question_tag(one: StimulusList, shown: Shown) -> str:
    """The name of a question's column: letters and digits only, which Qualtrics never changes."""
    return f"{one.name}Q{shown.position:03}"


def timing_tag(tag: str) -> str:
    """The name of the timing question beside a question."""
    return tag.replace("Q", "T")


def _question(tag: str, shown: Shown, *, timing: bool) -> list[str]:
    left, right = map(as_html, sides(shown))
    cell = '<td style="width:50%;padding:1em;text-align:center;vertical-align:middle">'
    lines = [
        "[[Question:MC:SingleAnswer:Horizontal]]",
        f"[[ID:{tag}]]",
        f'<table style="width:100%"><tr>{cell}{left}</td>{cell}{right}</td></tr></table>'
        f"<p>{as_html(QUESTION)}</p>",
        "[[AdvancedChoices]]",
    ]
    for number, label in enumerate(BUTTONS, start=1):
        lines += [f"[[Choice:{number}]]", as_html(label)]
    if timing:
        lines += ["", "[[Question:Timing]]", f"[[ID:{timing_tag(tag)}]]"]
    return [*lines, "", "[[PageBreak]]", ""]
