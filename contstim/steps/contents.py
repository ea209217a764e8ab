"""Readers of files by their required content, to check a study before it runs."""

from __future__ import annotations

import os
import warnings
from collections import deque
from importlib import import_module
from itertools import combinations, islice
from operator import attrgetter
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.files.documents import shortened
from contstim.files.files import is_file, is_folder
from contstim.items.counts import read_pair_counts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.options import Help

_LINES = 1_000  # of a text; a corpus may be large

_READERS = {
    "attention": "contstim.steps.design:read_attention",
    "minimal pair scores": "contstim.items.minimal_pair_scores:MinimalPairScores.from_file",
    "minimal pairs": "contstim.items.stimuli:read_controversial_minimal_pairs",
    "pair counts": "contstim.items.counts:read_pair_counts",
    "pairs": "contstim.items.stimuli:read_pairs",
    "practice": "contstim.experiments.platforms.jspsych.folder:check_practice",
    "questions": "contstim.experiments.responses.questionnaire:read_questions",
    "repeatable words": "contstim.words.vocabulary:read_repeatable",
    "scores": "contstim.items.scores:ScoreTable.from_file",
    "sentences": "contstim.items.stimuli:read_stimuli",
    "stimuli": "contstim.items.stimuli:read_stimulus_table",
    "tags": "contstim.english.words:tag_table",
    "token counts": "contstim.items.counts:read_token_counts",
    "trials": "contstim.items.stimuli:read_trials",
    "triplets": "contstim.items.stimuli:read_triplets",
    "vocabulary": "contstim.words.vocabulary:Vocabulary.load",
    "words": "contstim.words.word_rules:read_words",
}


def check_input(path: Path, note: Help, models: Sequence[str] = ()) -> None:
    """Check a file or folder that is read, as its field declares it.

    Args:
        path: the file or folder.
        note: declaration of the field.
        models: names of models that tables may be about.

    Raises:
        ContstimError: if it is missing, or holds something else.
    """
    if not is_file(path) and not (note.folder and is_folder(path)):
        name = shortened(str(path))
        problem = f"{name} is not a file" if os.path.lexists(path) else f"there is no file {name}"
        problem = f"{name} is a folder; name a file" if is_folder(path) else problem
        raise InputError(f"{problem}.")
    if note.content == "contrasts":
        from contstim.experiments.analysis.families import read_contrasts

        read_contrasts(path, models)
    elif note.content:
        check_content(path, note.content)
    if note.content == "pair counts":
        for pair in read_pair_counts(path).keys() - set(combinations(models, 2)):
            raise InputError(
                f"{path} has a number for {', '.join(pair)}, which are not two models of the study "
                f"in its order: {', '.join(models)}."
            )


def check_content(path: Path, content: str) -> None:
    """Check the content of a file, or of the beginning of a text.

    Args:
        path: a file, or of minimal pairs a folder.
        content: `text`, `reviews`, `responses`, `minimal pair data`, or a name of a table or list
            of words.

    Raises:
        InputError: if the file has another content.
    """
    from contstim.evaluation.minimal_pairs import pair_files, read_minimal_pairs
    from contstim.experiments.responses.table import read_responses
    from contstim.files.records import record_path
    from contstim.items.reviews import read_reviews
    from contstim.items.scale import Scale
    from contstim.words.corpus import read_lines

    if content == "text":
        deque(islice(read_lines(path), _LINES), maxlen=0)
    elif content == "reviews":
        read_reviews([path])
    elif content == "responses":
        # Any scale will do where no record names one
        scale = None if record_path(path).is_file() else Scale.CONFIDENCE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said by the step that reads them
            read_responses(path, scale=scale)
    elif content == "minimal pair data":
        read_minimal_pairs(pair_files(path))
    else:
        module, _, name = _READERS[content].partition(":")
        attrgetter(name)(import_module(module))(path)
