"""The one new word for which two models disagree most on which of two sentences is likelier.

Gains are log-probabilities of the sentence with a new word less those of the natural one, in nats.
Where one model gains by a word and another loses, they disagree, by the smaller of the two numbers:

    The dog sleeps           cat    boy    idea
    gain under model 1        +3     +1      -9
    gain under model 2        -2     -6      -8
    they disagree by           2      1     not

No word is missed: one is left unscored under a model only where the gain under the other, which is
less work, tells that they disagree no more by it than by another word.
"""

from __future__ import annotations

from itertools import combinations, compress
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import LanguageModel
    from contstim.optimization.search.constraints import Candidates

_AT_ONCE = 64  # words that are scored before it is asked again whether others need be
_ROUNDING = 1e-4  # nats; how far any score may differ between batches


def near_pairs(
    models: Sequence[LanguageModel], candidates: Candidates
) -> dict[tuple[str, str], tuple[int, str]]:
    """The new word on which they disagree most, for each two models that disagree on any.

    By the models' names its position in the natural sentence, 0-based, and the word.

    Disagreements no larger than the rounding of scores are none, as are those of a model that finds
    the natural sentence impossible. Of equal ones the first counts.

    Args:
        models: two or more.
        candidates: the natural sentence, and the words that may stand at each position.

    Raises:
        ModelError: a model cannot score a sentence, for instance because it is too long.
    """
    natural, words = candidates.natural, candidates.vocabulary
    new = [
        (position, word)
        for position in candidates.positions
        for word in compress(words.at(position), candidates.allowed(natural, position))
    ]
    positions = np.array([position for position, _ in new])
    gains = np.full((len(models), len(new)), np.nan)  # of words that are not scored yet
    log_probs = np.array([model.log_probs([natural])[0] for model in models])
    tolerances = np.array([model.convention.tolerance for model in models])
    rounding = np.maximum(_ROUNDING, np.abs(log_probs) * tolerances)
    # n-gram models score all words at once, and those with drafts take many passes for each
    costs = [2 if each.draft() is not None else int(not each.cheap_replacements) for each in models]
    found = {}
    for pair in combinations(range(len(models)), 2) if new else ():
        while True:
            first, second = gains[[*pair]]
            most = np.fmin(np.abs(first), np.abs(second))  # of two the one that is known
            most[np.isnan(most)] = np.inf
            most[np.sign(first) == np.sign(second)] = 0
            top = int(most.argmax())
            unknown = [number for number in pair if np.isnan(gains[number, top])]
            if most[top] <= rounding[[*pair]].max() or not unknown:
                break
            # The most promising words at that position, all at once
            number, here = min(unknown, key=costs.__getitem__), positions == positions[top]
            columns = np.flatnonzero(here & np.isnan(gains[number]) & (most > 0))
            columns = columns[np.argsort(-most[columns], kind="stable")[:_AT_ONCE]]
            some = [new[column][1] for column in columns.tolist()]
            scores = models[number].replacement_log_probs(natural, new[top][0], some)
            gains[number, columns] = scores - log_probs[number]
        if most[top] > rounding[[*pair]].max():
            found[models[pair[0]].name, models[pair[1]].name] = new[top]
    return found
