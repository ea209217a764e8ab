"""PCIbex Farm: a table of items and a PennController 2 script.

Facts from doc.pcibex.net (*Template*, *GetTable*, *Sequence*, *Counterbalancing*) and the source of
PennController 2.0: columns named group, item and label in any case have meanings of their own; a
participant runs the rows of one group, which is number (counter modulo groups) in the order of
their names, compared as text (in earlier versions: of their first rows; both agree here); a Text
element takes its content for HTML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.experiments.platforms.display import BUTTONS, QUESTION
from contstim.experiments.platforms.folder import ExportFolder, template
from contstim.experiments.platforms.lists import sides, stimulus_lists
from contstim.experiments.platforms.markup import as_html

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.experiments.design.presentation import Shown
    from contstim.experiments.platforms.lists import StimulusList
    from contstim.stimuli import Trial

COLUMNS = (
    *("group", "item", "label", "trial_id", "stimulus_group", "left"),
    *("left_html", "right_html"),
)


def export_pcibex(trials: Sequence[Trial], out: Path | str, *, seed: int = 0) -> Path:
    """Write trials.csv and main.js for a PCIbex experiment, with a README.

    Each group of the trials is two groups of PCIbex, mirrored in their sides; PCIbex draws the
    order. Sentences are escaped (`as_html`).

    Args:
        trials: a design's.
        out: the folder, new or of an earlier export.
        seed: decides sides.

    Raises:
        InputError: the trials cannot be traced back, or the folder holds other files.
    """
    folder = ExportFolder(out)
    lists = stimulus_lists(trials, seed=seed)
    item = {trial.trial_id: number for number, trial in enumerate(trials, start=1)}
    rows = [_row(one, shown, item[shown.trial.trial_id]) for one in lists for shown in one.shown]
    folder.rows("trials.csv", rows, COLUMNS)
    folder.text("main.js", _script())
    folder.lists(lists)
    folder.readme("pcibex.md", lists=len(lists))
    return folder.finish("pcibex", seed=seed)


def _row(one: StimulusList, shown: Shown, item: int) -> dict[str, object]:
    left, right = map(as_html, sides(shown))
    return {
        "group": one.name,
        "item": item,
        "label": "trial",
        "trial_id": shown.trial.trial_id,
        "stimulus_group": one.group,
        "left": shown.left,
        "left_html": left,
        "right_html": right,
    }


def _script() -> str:
    script = template("pcibex.js").replace("QUESTION", as_html(QUESTION))
    for number, label in enumerate(BUTTONS, start=1):
        script = script.replace(f"LABEL_{number}", as_html(label))
    return script
