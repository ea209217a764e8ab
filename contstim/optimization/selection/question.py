"""Questions that a selection answers: how many stimuli, of what worth, and under which rules."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Literal

from contstim.errors import InputError
from contstim.options import Help, check_ranges
from contstim.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Iterable

ModelPair = tuple[str, str]
PairCounts = tuple[tuple[str, str, int], ...]
Objective = Literal["controversiality", "worst-rank"]


@dataclass(frozen=True, kw_only=True)
class NaturalRules:
    """Controversial pairs of natural sentences: how many, and the rules that they keep."""

    per_pair: Annotated[int, Help("Sentence pairs for each pair of models.", at_least=0)] = 10
    no_repeats: Annotated[bool, Help("Leave out sentences in which a word repeats.")] = False
    same_length: Annotated[
        bool,
        Help(
            "Give both sentences of a pair the same number of words, with ranks among "
            "sentences of that length; each length gets its share of every model pair's pairs.",
        ),
    ] = False
    agreeing: Annotated[
        bool,
        Help(
            "Allow pairs of which both models prefer the same sentence, as in the 2023 study: a "
            "sentence need not rank below the median of the model that rejects it.",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class NaturalQuestion(NaturalRules):
    """The same with the files that say more read.

    Attributes:
        counts: (model_1, model_2, pairs) for model pairs, in the order of the scores, that need
            another number than `per_pair`; 0 leaves one out.
        repeatable: words that `no_repeats` exempts; case does not count.

    Raises:
        InputError: a number is out of range.
    """

    counts: PairCounts = ()
    repeatable: frozenset[str] = REPEATABLE_ENGLISH

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, kw_only=True)
class TripletRules:
    """Triplets: how many, what they are worth, and the rules that they keep.

    Attributes:
        objective: `controversiality` maximises the summed Eq. 4 of the 2023 study; `worst-rank`
            minimises summed ranks as its authors' code does (see `worst_ranks`).
        quantiles: groups of p(n|m1), and of p(n|m2), over which natural sentences are spread.
        word_cap: of occurrences in the chosen sentences, compared in lower case.
        token_balance: a bound on the difference of mean lengths, in each model pair, under the
            model.
    """

    per_pair: Annotated[int, Help("Triplets for each pair of models.", at_least=0)] = 10
    objective: Annotated[Objective, Help("Greatest sum of Eq. 4, or least sum of worst ranks.")] = (
        "controversiality"
    )
    quantiles: Annotated[
        int,
        Help(
            "Spread natural sentences evenly over this many quantiles of either model's "
            "probability; 0: no matter which.",
            at_least=0,
        ),
    ] = 10
    natural_once: Annotated[bool, Help("No natural sentence serves two model pairs.")] = False
    word_cap: Annotated[
        int | None, Help("How often one word may stand in the whole set.", at_least=1)
    ] = None
    token_balance: Annotated[
        float | None,
        Help(
            "By how many tokens, on average, the sentences that a model rejects may be longer "
            "or shorter than those it accepts; needs --tokens.",
            at_least=0.0,
        ),
    ] = None
    seconds: Annotated[
        float, Help("How long a search may take; the rest is in the bound.", at_least=0.0)
    ] = 60.0


@dataclass(frozen=True, kw_only=True)
class TripletQuestion(TripletRules):
    """The same with the files that say more read.

    Attributes:
        counts: (model_1, model_2, triplets) for model pairs, as they stand in the triplets, that
            need another number than `per_pair`; 0 leaves one out.
        uncapped: words for which `word_cap` does not count.
        edges: (model_1, model_2, model, edges) of quantile groups, nats, as they were in an earlier
            selection; others are those of the triplets.

    Raises:
        InputError: a number is out of range.
    """

    counts: PairCounts = ()
    uncapped: frozenset[str] = REPEATABLE_ENGLISH
    edges: tuple[tuple[str, str, str, tuple[float, ...]], ...] = ()

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.token_balance is not None and not isfinite(self.token_balance):
            raise InputError("token_balance must be a finite number of tokens.")


def demand(
    question: NaturalQuestion | TripletQuestion, pairs: Iterable[ModelPair]
) -> dict[ModelPair, int]:
    """Number of stimuli that each model pair needs.

    Raises:
        InputError: a count is negative or of other models, or no pair needs any.
    """
    needed = dict.fromkeys(pairs, question.per_pair)
    for first, second, count in question.counts:
        if (first, second) not in needed:
            raise InputError(
                f"A count is asked for {first}, {second}, which are not a pair in this order; "
                f"there are {'; '.join(', '.join(pair) for pair in needed)}."
            )
        if count < 0:
            raise InputError(f"The count for {first}, {second} must be 0 or more, not {count}.")
        needed[first, second] = count
    if not any(needed.values()):
        raise InputError(
            "No model pair needs any stimuli: per_pair or one count must be 1 or more."
        )
    return needed
