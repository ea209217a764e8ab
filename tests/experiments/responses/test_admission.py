"""Who is left out, and why; counts of catch trials are planted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy.stats import binom

from contstim.errors import InputError
from contstim.experiments.responses.admission import DEFAULT_RULE, CatchRule, Exclusions, admit
from contstim.experiments.responses.table import Response
from contstim.items.stimuli import Condition
from tests.experiments.responses.experiment import make_responses, make_trials

TRIALS = make_trials()
CATCH = [t.trial_id for t in TRIALS if t.group == 1 and t.condition is Condition.CATCH]


def with_errors(wrong: dict[str, int]) -> list[Response]:
    """Responses of people who each prefer the shuffled sentence in so many catch trials."""
    responses = make_responses(TRIALS, dict.fromkeys(wrong, 1))
    return [
        replace(r, rating=5) if r.trial_id in CATCH[: wrong[r.participant]] else r
        for r in responses
    ]


def test_the_default_is_eleven_of_twelve() -> None:
    admitted = admit(TRIALS, with_errors({"none": 0, "one": 1, "two": 2}))
    assert admitted.participants == ("none", "one")
    assert admitted.excluded == {"two": "10 of 12 catch trials right, 11 are required"}
    assert "two: 10 of 12" in str(admitted)
    assert {r.participant for r in admitted.responses} == {"none", "one"}


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (CatchRule(number=0), 3),
        (CatchRule(number=12), 1),
        (CatchRule(number=10), 3),
        (CatchRule(share=0.9), 2),
        (CatchRule(share=10 / 12), 3),
        (CatchRule(share=1.0), 1),
    ],
)
def test_a_stated_number_or_share(rule: CatchRule, kept: int) -> None:
    responses = with_errors({"none": 0, "one": 1, "two": 2})
    stated = Exclusions(min_catch=rule.required(12))
    assert len(admit(TRIALS, responses, exclusions=stated).participants) == kept


@pytest.mark.parametrize("shown", range(1, 40))
def test_a_share_never_asks_for_one_too_many(shown: int) -> None:
    """Eleven of twelve in whole numbers: the least k with 12 k >= 11 n."""
    least = next(k for k in range(shown + 1) if 12 * k >= 11 * shown)
    assert CatchRule(share=11 / 12).required(shown) == least


@pytest.mark.parametrize("shown", range(1, 40))
def test_the_default_keeps_honest_people_and_is_never_stricter_than_the_share(shown: int) -> None:
    """Witness: scipy's binomial distribution, with an error in one of a hundred trials."""
    needed = DEFAULT_RULE.required(shown)
    assert binom.sf(needed - 1, shown, 0.99) >= 0.99 - 1e-9
    share = CatchRule(share=11 / 12).required(shown)
    assert needed == share or binom.sf(needed, shown, 0.99) < 0.99
    assert needed <= share
    for lapses in (0.02, 0.3, 1.0):
        expected = binom.cdf(needed - 1, shown, 1 - lapses / 2)
        assert DEFAULT_RULE.dropped(shown, lapses) == pytest.approx(expected, abs=1e-12)


def test_five_of_six_are_enough_by_default() -> None:
    """By hand: .99^6 = .941 have all right, and .9985 at least five."""
    assert [DEFAULT_RULE.required(shown) for shown in (3, 6, 12, 24)] == [2, 5, 11, 22]
    trials = make_trials(catch=6)
    catch = [t.trial_id for t in trials if t.group == 1 and t.condition is Condition.CATCH]
    responses = make_responses(trials, {"honest": 1, "careless": 1})
    wrong = {("honest", catch[0]), ("careless", catch[0]), ("careless", catch[1])}
    answered = [
        replace(r, rating=5) if (r.participant, r.trial_id) in wrong else r for r in responses
    ]
    assert admit(trials, answered).participants == ("honest",)


def test_who_did_not_finish_is_left_out_with_a_count() -> None:
    responses = make_responses(TRIALS, {"ann": 1, "bob": 1})
    half = [r for n, r in enumerate(responses) if r.participant != "bob" or n % 2]
    admitted = admit(TRIALS, half)
    assert admitted.participants == ("ann",)
    assert admitted.excluded == {"bob": "rated 10 of 20 trials"}


def test_impossible_rules_are_refused() -> None:
    with pytest.raises(InputError, match="either a number or a share"):
        CatchRule()
    with pytest.raises(InputError, match="from 0 to 1"):
        CatchRule(share=11)
    with pytest.raises(InputError, match="only 12 were shown"):
        admit(TRIALS, with_errors({"none": 0}), exclusions=Exclusions(min_catch=13))
