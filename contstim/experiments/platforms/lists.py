"""Displayed texts of trials, presentation lists, and the export of these lists as a table.

Most platforms can show rows in random order. No platform can show sentence_1 on the left in exactly
half of the trials of each condition. So an export contains several presentation lists for each
group. A list states the side of each sentence in the group's trials. List 2 mirrors the sides of
list 1, list 4 mirrors the sides of list 3, and so on. `export csv` writes lists as a table for any
program that shows rows one after the other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from contstim.errors import InputError
from contstim.experiments.design.assignment import presentation
from contstim.experiments.platforms.folder import ExportFolder
from contstim.experiments.platforms.platform import Exported, Exporter, Platform
from contstim.experiments.platforms.texts import button_labels, labels
from contstim.experiments.responses.table import NO_BREAK_SPACE, escape_formula
from contstim.items.scale import Scale
from contstim.options import Help, Seed
from contstim.wording import find_duplicates

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from contstim.items.stimuli import Trial


def button_facts(scale: Scale, language: str) -> dict[str, str]:
    """Return the question to participants, and facts about a scale's buttons, for a README.

    The buttons are an indented Markdown list, because the README has them inside another list.
    """
    buttons = enumerate(button_labels(scale, language), start=1)
    return {
        "question": labels(language)["question"],
        "buttons": "\n".join(f"   {n}. {label}" for n, label in buttons),
        "last": str(scale.answers[-1]),
        "number": str(len(scale.answers)),
        "keys": ",".join(f"'{n}'" for n in scale.answers),
    }


_SPECIAL_CHARACTERS = re.compile(
    r"[&<>=@*_#`~|\\^$+\[\]{}]"  # used by HTML, Markdown, piped text and tags in double brackets
    r"|^[-\d＝＋－＠]"  # first characters of Markdown lists and spreadsheet formulas
)


def as_html(text: str) -> str:
    """Replace each special character by a numeric character reference.

    HTML and CommonMark display the character for such a reference, and never treat the reference as
    markup (CommonMark 0.31, section 2.5). So no platform reads the text as HTML, Markdown, piped
    text (`${…}`), a tag in double brackets, or a spreadsheet formula. `html.unescape` restores the
    text.
    """
    return _SPECIAL_CHARACTERS.sub(lambda match: f"&#{ord(match[0])};", text)


def stimulus_lists(
    trials: Sequence[Trial],
    show: Callable[[str], str],
    *,
    per_group: int = 2,
    seed: int = 0,
    scales: Collection[Scale] = (Scale.CONFIDENCE, Scale.CHOICE),
) -> list[list[dict[str, Any]]]:
    """Create the presentation lists of all groups; in a group, list 2 mirrors the sides of list 1.

    Each list has a row for every trial of its group, in order of presentation. Keys of a row are
    the column names of exports. The alphabetical order of the lists' names is the order of the
    lists.

    `per_group` is the number of lists of a group. If this number is odd, sides are not balanced
    over the lists of a group. `show` formats a displayed text as a cell. `scales` are the scales
    that the platform supports, by default the scales with buttons.

    Raises:
        InputError: if the trials are invalid (`check_trial_ids`), or the platform does not support
            their scale.
    """
    check_trial_ids(trials)
    if trials[0].scale not in scales:
        raise InputError(
            f"The trials need answers on the scale {trials[0].scale}, but this export supports "
            f"{' or '.join(scales)}. Use contstim export jspsych or jatos, or export csv "
            "for your own program."
        )
    groups = sorted({trial.group for trial in trials})
    # Each list is the presentation for one participant of a group. A participant with
    # an even number sees each sentence on the opposite side from the previous participant.
    group_participants = [(g, p) for g in groups for p in range(1, per_group + 1)]
    # Leading zeros, because platforms sort lists by name as text: L02 before L10
    width = max(2, len(str(len(group_participants))))
    return [
        [
            {
                "list_name": f"L{number:0{width}}",
                "group": group,
                "position": position,
                "trial_id": trial.trial_id,
                "condition": str(trial.condition),
                "left": left,
                "left_sentence": show(trial.displayed_texts[left - 1]),
                "right_sentence": show(trial.displayed_texts[2 - left]),
            }
            for position, (trial, left) in enumerate(
                presentation(trials, group=group, participant=participant, seed=seed), start=1
            )
        ]
        for number, (group, participant) in enumerate(group_participants, start=1)
    ]


def check_trial_ids(trials: Sequence[Trial]) -> None:
    """Raise an error if imported answers could not be matched to these trials.

    Raises:
        InputError: if there are no trials, or if a trial_id is repeated, empty, or would be treated
            as a formula by a spreadsheet.
    """
    trial_ids = [trial.trial_id for trial in trials]
    if not trial_ids:
        raise InputError("There are no trials to export.")
    if wrong := [*find_duplicates(trial_ids), *(name for name in trial_ids if not name.strip())]:
        raise InputError(
            f"The trial_id {wrong[0]!r} is empty or occurs twice. Give each trial a unique "
            "trial_id, which identifies its answers."
        )
    if formulas := [name for name in trial_ids if escape_formula(name) != name]:
        raise InputError(
            f"The trial_id {formulas[0]!r} begins like a spreadsheet formula. Use a trial_id that "
            "begins with a letter."
        )


def export_csv(
    trials: Sequence[Trial],
    out: Path | str,
    *,
    participants: Annotated[int, Help("Number of participants per group.", at_least=1)] = 10,
    seed: Seed = 0,
) -> Exported:
    """Write a table of each participant's trials, for any program.

    The rows are in order of presentation, and state the sides of the sentences.

    Example: `contstim export csv --trials trials.csv --participants 20 --out plain`

    Raises:
        InputError: if `check_trial_ids` refuses the trials, or the folder contains other files.
    """
    folder = ExportFolder(out, "csv")
    lists = stimulus_lists(
        trials,
        # Cells are displayed, so formulas are escaped with a no-break space, which is invisible
        lambda text: escape_formula(text, NO_BREAK_SPACE),
        per_group=participants,
        seed=seed,
        scales=tuple(Scale),
    )
    rows = [
        # Lists are in order of groups, so participants of each group are numbered from 1
        {"participant": number % participants + 1, **row}
        for number, list_rows in enumerate(lists)
        for row in list_rows
    ]
    columns = "participant group position trial_id condition left left_sentence right_sentence"
    folder.rows("presentation.csv", rows, columns.split())
    scale = trials[0].scale
    first, last = scale.answers[0], scale.answers[-1]
    display = f"a slider below them, from {first} (left) to {last} (right)"
    rated, buttons = "the value", ""
    if scale.buttons:
        display = f"{len(scale.answers)} buttons below them"
        rated, buttons = "the button", button_facts(scale, "en")["buttons"]
    folder.readme(
        rows=f"{len(rows):,}",
        participants=participants,
        shown=display,
        rated=rated,
        turned=first + last,
        buttons=buttons,
    )
    return folder.finish(seed=seed, participants=participants)


PLATFORM = Platform("csv", Exporter(export_csv))
