"""Made-up stimuli that several tests of experiments ask about."""

from itertools import combinations

from contstim.experiments.design.building import Design, build_design
from contstim.items.stimuli import KINDS, Condition, Kind, Pair, Trial, Triplet, content_id
from contstim.words.sentence import Sentence

MODELS = ("ngram", "rnn", "bert", "gpt")


def new_trial(
    name: str,
    group: int,
    first: str,
    second: str,
    condition: Condition = Condition.RANDOM_NATURAL,
    models: tuple[str, str] = ("", ""),
    kinds: tuple[Kind, Kind] | None = None,
) -> Trial:
    """A trial of two texts; kinds are by default the first that its condition allows."""
    sentences = (Sentence.parse(first), Sentence.parse(second))
    return Trial(name, group, condition, *models, *sentences, *(kinds or KINDS[condition][0]), "")


def some_pairs(per_pair: int, models: tuple[str, ...] = MODELS) -> list[Pair]:
    return [
        Pair(
            *(content_id("pair", one, two, i), one, two),
            Sentence.parse(f"{one} dislikes what {two} said {i}."),
            Sentence.parse(f"{two} dislikes what {one} said {i}!"),
            *(2 * i, 2 * i + 1),
            *(0.1, 0.9, 0.9, 0.1),
        )
        for one, two in combinations(models, 2)
        for i in range(per_pair)
    ]


def some_triplets(per_pair: int, models: tuple[str, ...] = MODELS) -> list[Triplet]:
    # Two words or more lie between any two: those of other triplets may not be more alike
    return [
        Triplet(
            *(content_id("triplet", one, two, i), one, two),
            Sentence.parse(f"Nature made {one} and {two} number {i} {one}{two}{i}."),
            Sentence.parse(f"Nobody made {one} after {two} number {i} {one}{two}{i}."),
            Sentence.parse(f"Machines made {one} before {two} number {i} {one}{two}{i}."),
            *(-20.0, -20.0, -40.0, -19.0, -19.0, -40.0, 40.0),
        )
        for one, two in combinations(models, 2)
        for i in range(per_pair)
    ]


def natural(n: int) -> list[Sentence]:
    return [Sentence.parse(f"The dog number {i} sees the cat") for i in range(n)]


def small_design() -> Design:
    """Trials of every condition for three groups."""
    stimuli = (some_pairs(3), some_triplets(3), natural(60))
    return build_design(*stimuli, groups=3, random_per_group=5, catch_per_group=4, twins=True)
