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

    method: Annotated[tuple[Method, ...], Help("Methods of comparison; by default all.")] = ()
    ties: Annotated[TieRule, Help("Value of a tie.")] = "wrong"
    sample: Annotated[int | None, Help("Number of random pairs of each paradigm.", at_least=1)] = (
        None
    )
    seed: Seed = 0


MINIMAL_PAIRS = MinimalPairSettings()


@dataclass(frozen=True, kw_only=True)
class AcceptabilitySettings:
    """Options of an evaluation on gradient judgements."""

    column: Annotated[tuple[str, ...], Help("Column of a model in --scores; by default all.")] = ()
    delta: Annotated[
        tuple[float, ...], Help("δ of the Acceptability Delta Criterion.", above=0)
    ] = (
        0.5,
        1.0,
        5.0,
    )  # values of Vázquez Martínez (2021)
    scores_as_given: Annotated[bool, Help("The scores are already z-scores.")] = False
    human_z_scores: Annotated[bool, Help("Convert judgements to z-scores, too.")] = False
    allow_missing: Annotated[bool, Help("Exclude sentences without scores.")] = False


ACCEPTABILITY = AcceptabilitySettings()


@dataclass(frozen=True, kw_only=True)
class DesiderataSettings:
    """Options of an evaluation of scoring rules."""

    sample: Annotated[int, Help("Number of random sentences; 0 for all.", at_least=0)] = 0
    words: Annotated[int, Help("Number of words to draw from the frequencies.", at_least=1)] = 500
    carrier: Annotated[tuple[str, ...], Help("Carrier sentence, with '_' for the word.")] = (
        "My word is _",
        "The next word is _",
        "She wrote down the word _",
        GAP,
    )
    seed: Seed = 0


DESIDERATA = DesiderataSettings()
