"""Invented stimuli for tests of experiments."""

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
    """Build a trial from two texts; `kinds` default to the first that the condition allows."""
    sentences = (Sentence.parse(first), Sentence.parse(second))
    return Trial(name, group, condition, *models, *sentences, *(kinds or KINDS[condition][0]), "")


def some_pairs(per_pair: int, models: tuple[str, ...] = MODELS) -> list[Pair]:
    return [
        Pair(
            *(content_id("pair", model_1, model_2, i), model_1, model_2),
            Sentence.parse(f"{model_1} dislikes what {model_2} said {i}."),
            Sentence.parse(f"{model_2} dislikes what {model_1} said {i}!"),
            *(2 * i, 2 * i + 1),
            *(0.1, 0.9, 0.9, 0.1),
        )
        for model_1, model_2 in combinations(models, 2)
        for i in range(per_pair)
    ]


def some_triplets(per_pair: int, models: tuple[str, ...] = MODELS) -> list[Triplet]:
    # Sentences differ in two words or more, because close sentences may not share a design
    return [
        Triplet(
            *(content_id("triplet", first, second, i), first, second),
            Sentence.parse(f"Nature made {first} and {second} number {i} {first}{second}{i}."),
            Sentence.parse(f"Nobody made {first} after {second} number {i} {first}{second}{i}."),
            Sentence.parse(f"Machines made {first} before {second} number {i} {first}{second}{i}."),
            *(-20.0, -20.0, -40.0, -19.0, -19.0, -40.0, 40.0),
        )
        for first, second in combinations(models, 2)
        for i in range(per_pair)
    ]


def natural(n: int) -> list[Sentence]:
    return [Sentence.parse(f"The dog number {i} sees the cat") for i in range(n)]


def small_design() -> Design:
    """Build a design with trials of every condition for three groups."""
    stimuli = (some_pairs(3), some_triplets(3), natural(60))
    return build_design(*stimuli, groups=3, random_per_group=5, catch_per_group=4, twins=True)
