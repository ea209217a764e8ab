"""How sure people are of each item: mean ratings, drawn towards the middle by their chance.

Ten people's mean rating of a trial holds what people in general think of it, and chance. In trials
of one condition, with n people each,

    variance of mean ratings around the middle of the scale = V(items) + V(people) / n

where V(people) is the variance of ratings within trials. The share that is not chance, V(items) /
(V(items) + V(people) / n), is the reliability of a mean rating, and by it the mean is drawn towards
the middle, which is what nobody having a preference would give (empirical Bayes; James & Stein
1961, Efron & Morris 1975). Around the middle and not around a mean, because which sentence is
called sentence_1 is a convention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.scale import Scale
    from contstim.stimuli import Trial


@dataclass(frozen=True)
class ItemReliability:
    """What people in general think of a trial, as far as those who rated it tell.

    Attributes:
        shrunken_rating: the mean rating, drawn towards the middle of the scale, which it is where
            nothing but chance is in it.
        standard_error: of the shrunken rating, in steps of the scale.
        reliability: of the mean rating, 0 (chance) to 1.
        sure_of_2: how likely it is that people in general prefer sentence_2, 0 to 1.
    """

    shrunken_rating: float
    standard_error: float
    reliability: float
    sure_of_2: float

    @property
    def sureness(self) -> float:
        """How likely it is that people in general prefer the sentence that most raters did."""
        return max(self.sure_of_2, 1 - self.sure_of_2)


def item_reliabilities(ratings: Ratings) -> dict[str, ItemReliability | None]:
    """What is known of each trial of an experiment, by its identifier; see `reliabilities_of`."""
    rated = [
        (trial, group.ratings[:, column])
        for group in ratings.groups
        for column, trial in enumerate(group.trials)
    ]
    return reliabilities_of(rated, ratings.scale)


def reliabilities_of(
    rated_trials: Iterable[tuple[Trial, FloatArray]], scale: Scale
) -> dict[str, ItemReliability | None]:
    """What is known of each trial, by its identifier.

    Variances are estimated for each condition. None where no trial of the condition was rated by
    two people, so that nobody knows what is chance.

    Args:
        rated_trials: trials with their ratings, (n_people,), one at least.
        scale: of the ratings.
    """
    from scipy.stats import norm

    middle = scale.middle
    # By condition a row a trial: its name, its mean rating, its number of people, and the sum of
    # squares around the mean.
    rows: dict[str, list[tuple[str, float, int, float]]] = {}
    for trial, rated in rated_trials:
        mean_rating = float(rated.mean())
        squares = float(((rated - mean_rating) ** 2).sum())
        row = trial.trial_id, mean_rating, len(rated), squares
        rows.setdefault(trial.condition, []).append(row)
    reliabilities: dict[str, ItemReliability | None] = {}
    for of_condition in rows.values():
        names = [name for name, *_ in of_condition]
        mean, people_of, squares_of = np.array([row[1:] for row in of_condition]).T  # (n_trials,)
        freedom = (people_of - 1).sum()
        if freedom == 0:
            reliabilities |= dict.fromkeys(names)
            continue
        chance = squares_of.sum() / freedom / people_of  # (n_trials,) variance of a mean rating
        items = max(0.0, float(((mean - middle) ** 2 - chance).mean()))
        # Where both are zero everybody chose the middle, which the scale does not have
        share = items / np.maximum(items + chance, 1e-300)
        shrunken = middle + share * (mean - middle)
        errors = np.sqrt(share * chance)
        # Without any chance the side is certain, and without any preference it is open
        away = shrunken - middle
        distance = np.where(away > 0, np.inf, np.where(away < 0, -np.inf, 0.0))
        np.divide(away, errors, out=distance, where=errors > 0)
        sure = norm.cdf(distance)
        reliabilities |= {
            name: ItemReliability(*values)
            for name, *values in zip(
                names,
                shrunken.tolist(),
                errors.tolist(),
                share.tolist(),
                sure.tolist(),
                strict=True,
            )
        }
    return reliabilities
