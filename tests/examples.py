"""Number of hypothesis examples in each profile."""

from hypothesis import settings

USUAL = 40  # examples of a property by default
THOROUGH = 1_000


def register_profiles() -> None:
    """Register the profiles, without deadlines because machines may be slow."""
    settings.register_profile("untimed", deadline=None, max_examples=USUAL)
    settings.register_profile("thorough", deadline=None, max_examples=THOROUGH)
    settings.load_profile("untimed")


def examples(usual: int) -> int:
    """Return the number of examples: `usual`, or 25 times as many in the profile `thorough`."""
    return usual * settings().max_examples // USUAL
