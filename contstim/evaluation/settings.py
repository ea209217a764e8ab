"""Settings of evaluations, with the help texts of their options."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from contstim.options import Help, Seed

TieRule: TypeAlias = Literal["wrong", "half"]
GAP = "_"


class Method(StrEnum):
    """Method of comparing the two sides of a pair (Warstadt et al. 2020, section 4.2)."""

    FULL_SENTENCE = "full-sentence"
    """The scores of the two sentences."""
    ONE_PREFIX = "one-prefix"
    """Two words after the same prefix."""
    TWO_PREFIX = "two-prefix"
    """The same word after two prefixes."""


@dataclass(frozen=True, kw_only=True)
class MinimalPairSettings:
    """Options of an evaluation on minimal pairs."""

    method: Annotated[tuple[Method, ...], Help("What to compare. By default all.")] = ()
    ties: Annotated[TieRule, Help("How a tie counts.")] = "wrong"
    sample: Annotated[int | None, Help("Pairs of each paradigm, at random.", at_least=1)] = None
    seed: Seed = 0


MINIMAL_PAIRS = MinimalPairSettings()


@dataclass(frozen=True, kw_only=True)
class AcceptabilitySettings:
    """Options of an evaluation on gradient judgements."""

    column: Annotated[tuple[str, ...], Help("A model's column of --scores; else all.")] = ()
    delta: Annotated[
        tuple[float, ...], Help("δ of the Acceptability Delta Criterion.", above=0)
    ] = (
        0.5,
        1.0,
        5.0,
    )  # values of Vázquez Martínez (2021)
    scores_as_given: Annotated[bool, Help("The scores are z-scores already.")] = False
    human_z_scores: Annotated[bool, Help("Turn the judgements into z-scores too.")] = False
    allow_missing: Annotated[bool, Help("Leave out what a table of scores lacks.")] = False


ACCEPTABILITY = AcceptabilitySettings()


@dataclass(frozen=True, kw_only=True)
class DesiderataSettings:
    """Options of an evaluation of scoring rules."""

    sample: Annotated[int, Help("Sentences to draw by chance; 0 for all.", at_least=0)] = 0
    words: Annotated[int, Help("Words to draw from the frequencies.", at_least=1)] = 500
    carrier: Annotated[tuple[str, ...], Help("A sentence with '_' for the word.")] = (
        "My word is _",
        "The next word is _",
        "She wrote down the word _",
        GAP,
    )
    seed: Seed = 0


DESIDERATA = DesiderataSettings()
