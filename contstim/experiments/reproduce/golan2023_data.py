"""Experiment 1 of the 2023 study: reading its trials and 16,500 ratings, and importing them.

The published file is a list of ratings. Models and conditions of trials follow from the published
selections, and participants' groups from the sentences that they share.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.experiments.design.building import pair_trial, triplet_trials
from contstim.experiments.platforms.platform import Platform, Reader
from contstim.experiments.reproduce import published
from contstim.experiments.responses.alignment import Imported
from contstim.experiments.responses.table import UNKNOWN, Response
from contstim.files.tables import needed_columns, number, read_csv
from contstim.items.stimuli import Condition, Kind, Trial, content_id
from contstim.options import Help
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TRIALS_EACH = 165  # consecutive rows of each participant

_COLUMNS = ("sentence_pair", "Trial Number", "rating", "Reaction Time")


def read_experiment(
    contstimlang_folder: Path | str, ratings_file: Path | str
) -> tuple[tuple[Trial, ...], tuple[Response, ...]]:
    """Read the 1,650 trials and 16,500 responses of 100 participants in 10 groups.

    Participants are p001 … p100 in the order of the file; groups are numbered in the order of their
    first participant. Sides were not published (`left` is 0); `position` is the trial number in the
    file.

    Args:
        contstimlang_folder: folder of the repository dpmlab/contstimlang, with selections and
            stimuli.
        ratings_file: file of ratings, `data` in the repository LpZamora/contstimlang.

    Raises:
        InputError: if a file is missing or differs from the published one.
    """
    rows = _read_rows(ratings_file)
    groups = _assign_groups([pair for pair, *_ in rows], ratings_file)
    # The 1,440 controversial trials by their sentences, in either order; groups are assigned below
    candidates = [pair_trial(pair) for pair in published.read_natural_pairs(contstimlang_folder)]
    for triplet in published.read_triplets(contstimlang_folder, selected=True):
        candidates += triplet_trials(triplet, twins=True)
    selected = {frozenset((trial.sentence_1, trial.sentence_2)): trial for trial in candidates}
    order = published.read_stimulus_scores(contstimlang_folder).rows
    trials: dict[frozenset[Sentence], Trial] = {}
    responses = []
    for row, (pair, rating, position, rt_ms) in enumerate(rows):
        # Participants are blocks of rows; the first one who saw a trial determines its group
        participant = row // TRIALS_EACH
        key = frozenset(pair)
        if key not in trials:
            trial = selected.get(key) or _unselected_trial(pair, order, ratings_file)
            trials[key] = replace(trial, group=groups[participant])
        trial = trials[key]
        responses.append(
            Response(
                f"p{participant + 1:03}",
                trial.group,
                trial.trial_id,
                # The file rates from its first sentence to its second, we from sentence_1
                rating if pair[0] == trial.sentence_1 else trial.scale.mirrored(rating),
                UNKNOWN,
                position,
                rt_ms,
            )
        )
    conditions = list(Condition)
    ordered = sorted(trials.values(), key=lambda t: (t.group, conditions.index(t.condition)))
    return tuple(ordered), tuple(responses)


_RatingRow = tuple[tuple[Sentence, Sentence], int, int, float]


def _read_rows(path: Path | str) -> list[_RatingRow]:
    """Read sentences, rating from first to second, position, and reaction time (ms) of each row.

    In the file, an underscore joins the two sentences; no sentence contains one.
    """
    rows, columns = [], needed_columns(path, read_csv(path), _COLUMNS)
    for row, cells in enumerate(zip(*columns, strict=True)):
        try:
            first, second = map(Sentence.parse, cells[0].split("_"))
            rating, position = (
                int(number(cell, must_be_whole=True)) for cell in (cells[2], cells[1])
            )
            rows.append(((first, second), rating, position, float(number(cells[3]))))
        except ValueError:
            raise InputError(f"{path}, row {row}: {cells} is not a published rating.") from None
    return rows


def _assign_groups(pairs: Sequence[tuple[Sentence, Sentence]], path: Path | str) -> list[int]:
    """Return the group of each participant: participants with the same pairs share a group."""
    if not pairs or len(pairs) % TRIALS_EACH:
        raise InputError(
            f"{path} has {len(pairs):,} ratings, which is not a multiple of {TRIALS_EACH} "
            "per participant."
        )
    seen = [
        frozenset(map(frozenset, pairs[start : start + TRIALS_EACH]))
        for start in range(0, len(pairs), TRIALS_EACH)
    ]
    # Groups share no pairs. A pair in two different sets of 165 pairs means that rows are missing
    # or out of order
    numbers = {pairs_seen: n for n, pairs_seen in enumerate(dict.fromkeys(seen), start=1)}
    owners = Counter(pair for pairs_seen in numbers for pair in pairs_seen)
    if any(len(pairs_seen) < TRIALS_EACH for pairs_seen in seen) or max(owners.values()) > 1:
        raise InputError(
            f"{path} must have blocks of {TRIALS_EACH} rows, one per participant: a block "
            "repeats a pair, or participants of different groups share a pair."
        )
    return [numbers[pairs_seen] for pairs_seen in seen]


def _unselected_trial(
    pair: tuple[Sentence, Sentence], order: Mapping[Sentence, int], path: Path | str
) -> Trial:
    """Build a catch trial if both sentences have the same words, otherwise a random natural pair.

    The published table of stimuli ends with the shuffled sentences, so the later sentence is the
    shuffled one.
    """
    absent = [sentence.text for sentence in pair if sentence not in order]
    if absent:
        raise InputError(f"{path}: {absent[0]!r} has no published scores.")
    first, second = pair
    condition, kind = Condition.RANDOM_NATURAL, Kind.NATURAL
    if sorted(first.words) == sorted(second.words):
        condition, kind = Condition.CATCH, Kind.SHUFFLED
        first, second = sorted(pair, key=order.__getitem__)
    trial_id = content_id("trial", first, second)
    return Trial(trial_id, 0, condition, "", "", first, second, Kind.NATURAL, kind, "")


@dataclass(frozen=True)
class Golan2023Reading:
    """Paths of the published data, and of the file to write their scores to."""

    data: Annotated[
        Path, Help("The folder that contains `contstimlang` and `contstimlang-fork`.", folder=True)
    ]
    scores_out: Annotated[
        Path | None, Help("Output file with the published scores of the sentences.")
    ] = None


def import_golan2023(
    files: Sequence[Path], trials: Sequence[Trial], settings: Golan2023Reading
) -> Imported:
    """Rebuild experiment 1 of the 2023 study: 16,500 ratings of 100 participants.

    Example: `contstim import golan2023 --data data --out responses.csv --trials-out trials.csv
    --scores-out scores.csv`

    Raises:
        InputError: if a file is missing or differs from the published one.
    """
    del files, trials  # files are in the folder of the settings, trials are built from them
    folder = settings.data / "contstimlang"
    published_trials, responses = read_experiment(
        folder, settings.data / "contstimlang-fork" / "data"
    )
    if settings.scores_out is not None:
        published.read_stimulus_scores(folder).write(settings.scores_out)
    return Imported(published_trials, responses)


PLATFORM = Platform(
    "golan2023", reader=Reader(import_golan2023, Golan2023Reading, builds_trials=True)
)
