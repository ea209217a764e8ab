"""Find the new word on which two models disagree most.

A new word replaces one word of a natural sentence. Two models disagree on the new word if one model
finds the new sentence likelier, and the other model finds the natural sentence likelier.

The gain of a word is log p(sentence with the word) - log p(natural sentence), in nats. If the
scores of a model have another unit, the gains of all models are standardised. Each model's gains
are then divided by the standard deviation of the model's scores of natural sentences.

If one model's gain is positive and the other's negative, the models disagree. The size of the
disagreement is the smaller absolute gain:

    The dog sleeps           cat    boy    idea
    gain under model 1        +3     +1      -9
    gain under model 2        -2     -6      -8
    disagreement               2      1    none

The search finds the best word without scoring all words under both models. The cheaper model scores
first. A word's absolute gain under this model is an upper bound of the disagreement on the word. If
the bound does not exceed the largest disagreement so far, the other model does not score the word.
"""

from __future__ import annotations

from itertools import combinations, compress
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.models.base import Scorer
    from contstim.optimization.search.constraints import Candidates

_BATCH_SIZE = 64  # words; after each batch, the search checks whether more scores are needed
_ROUNDING = 1e-4  # nats; a score may differ by this much between batches (rounding errors)


def near_pairs(
    models: Sequence[Scorer],
    candidates: Candidates,
    sds: Mapping[str, float] | None = None,
) -> dict[tuple[str, str], tuple[int, str]]:
    """For each pair of models, find the new word on which the two models disagree most.

    Disagreements within rounding errors do not count. Models that give the natural sentence
    probability zero are ignored. Ties are resolved in favour of the first word.

    Args:
        models: models to compare.
        candidates: natural sentence, its positions and allowed words.
        sds: name of a model → standard deviation of its scores of natural sentences. It is required
            if the scores of a model are not in nats.

    Returns:
        Names of two models that disagree → 0-based position and new word.

    Raises:
        ModelError: if a model cannot score a sentence, for instance because it is too long.
    """
    natural, words = candidates.natural, candidates.vocabulary
    new = [
        (position, word)
        for position in candidates.positions
        for word in compress(words.at(position), candidates.allowed(natural, position))
    ]
    positions = np.array([position for position, _ in new])
    gains = np.full((len(models), len(new)), np.nan)  # nan: not scored yet
    log_probs = np.array([model.scores([natural])[0] for model in models])
    sizes = np.array([sds[model.name] if sds else 1.0 for model in models])
    tolerances = np.array([model.convention.tolerance for model in models])
    rounding = np.maximum(_ROUNDING, np.abs(log_probs) * tolerances) / sizes
    # Cost of a model's scores: 0 if exact scores are cheap; 2 if the model has a draft (a cheaper
    # scorer that estimates its scores), since it then needs many passes per word; otherwise 1
    costs = [2 if m.draft() is not None else int(not m.cheap_replacements) for m in models]
    words_by_pair = {}
    for pair in combinations(range(len(models)), 2) if new else ():
        while True:
            first, second = gains[[*pair]]
            bounds = np.fmin(np.abs(first), np.abs(second))  # smaller known gain, nan if none
            bounds[np.isnan(bounds)] = np.inf
            bounds[np.sign(first) == np.sign(second)] = 0
            top = int(bounds.argmax())
            unknown = [number for number in pair if np.isnan(gains[number, top])]
            if bounds[top] <= rounding[[*pair]].max() or not unknown:
                break
            number = min(unknown, key=costs.__getitem__)
            is_candidate = (positions == positions[top]) & np.isnan(gains[number]) & (bounds > 0)
            columns = np.flatnonzero(is_candidate)
            columns = columns[np.argsort(-bounds[columns], kind="stable")[:_BATCH_SIZE]]
            batch = [new[column][1] for column in columns.tolist()]
            scores = models[number].replacement_scores(natural, new[top][0], batch)
            gains[number, columns] = (scores - log_probs[number]) / sizes[number]
        if bounds[top] > rounding[[*pair]].max():
            words_by_pair[models[pair[0]].name, models[pair[1]].name] = new[top]
    return words_by_pair
