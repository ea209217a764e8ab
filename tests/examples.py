"""How many examples a property is tried on, by the profile of hypothesis."""

from hypothesis import settings

USUAL = 40  # of a property that says nothing else
THOROUGH = 1_000


def register_profiles() -> None:
    """Make the profiles known; neither has a deadline, since a slow machine is no defect."""
    settings.register_profile("untimed", deadline=None, max_examples=USUAL)
    settings.register_profile("thorough", deadline=None, max_examples=THOROUGH)
    settings.load_profile("untimed")


def examples(usual: int) -> int:
    """Number of examples in the profile that was asked for, `usual` in the one that is not.

    `--hypothesis-profile thorough` looks at 25 times as many.
    """
    return usual * settings().max_examples // USUAL
