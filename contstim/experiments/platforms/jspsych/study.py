"""study.json: what the page and the collecting server know of an experiment."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.experiments.design.golan2023 import SECONDS_PER_TRIAL
from contstim.experiments.platforms.jspsych.settings import SaveTo
from contstim.experiments.platforms.lists import require_scale
from contstim.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.experiments.platforms.jspsych.settings import PageSettings
    from contstim.stimuli import Trial

VERSION = 1
_MINUTES_OF_READING = 3  # consent, instructions, examples, debriefing

# Numbers, because participants can read the source of a page.
_STRATA = {condition: number for number, condition in enumerate(Condition)}


def build_study(
    trials: Sequence[Trial], settings: PageSettings, texts: Mapping[str, str]
) -> dict[str, Any]:
    """The content of study.json.

    Sentences are as people see them, without end marks. `stratum` numbers a trial's condition, so
    that the page can balance sides within each without naming any. `id` changes with the trials: a
    browser does not go on with another version of the experiment.

    Raises:
        InputError: there are no trials, two with one identifier, or they ask for choices.
        SentenceError: a text has no words.
    """
    names = [trial.trial_id for trial in trials]
    if not trials or len(set(names)) < len(names):
        raise InputError(
            "A page needs trials with an identifier each; these are none, or some share one."
        )
    require_scale(trials)
    groups: dict[str, list[dict[str, Any]]] = {}
    # Sorted, so that the same trials in another order are the same version.
    for trial in sorted(trials, key=lambda trial: (trial.group, trial.trial_id)):
        groups.setdefault(str(trial.group), []).append(
            {
                "trial_id": trial.trial_id,
                "sentence_1": trial.sentence_1.bare,
                "sentence_2": trial.sentence_2.bare,
                "stratum": _STRATA[trial.condition],
                **({"instead_of": trial.instead_of} if trial.instead_of else {}),
            }
        )
    # Only what people see decides the identifier: a text may be edited during an experiment.
    content = json.dumps(groups, sort_keys=True)
    # `{minutes}` of the consent text: the longest group at the pace of 2023, and reading.
    pairs = max(map(len, groups.values()))
    save = {"to": str(settings.save)}
    if settings.save is SaveTo.DATAPIPE:
        save |= {"experiment": settings.datapipe_id, "address": settings.datapipe_address}
    return {
        "version": VERSION,
        "id": hashlib.sha256(content.encode()).hexdigest()[:16],
        "title": settings.title,
        "minutes": math.ceil(pairs * SECONDS_PER_TRIAL / 60) + _MINUTES_OF_READING,
        "save": save,
        "completion": {
            "code": settings.completion_code or None,
            "redirect": settings.redirect or None,
        },
        "texts": dict(texts),
        "groups": groups,
    }


def study_script(study: Mapping[str, Any]) -> str:
    """study.js: the same for a page opened from disk, which may not read files.

    The collecting server hands out codes and redirects itself, so there the page does not hold
    them.
    """
    shown = dict(study)
    if study["save"]["to"] == SaveTo.SERVER:
        shown["completion"] = None
    return f'"use strict";\n\ncontstim.study = {json.dumps(shown, indent=1)};\n'
