"""Who is left out by catch trials and by rules, and why; expected numbers are counted by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

from contstim.errors import InputError
from contstim.experiments.responses.admission import (
    Exclusions,
    admit,
    excluded_share,
    required_catch,
)
from contstim.experiments.responses.checks import Problem, ResponseFinding, check_responses
from contstim.experiments.responses.table import UNRATED, Response, write_responses
from contstim.items.scale import Scale
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


@pytest.mark.parametrize(("number", "kept"), [(0, 3), (12, 1), (10, 3), (11, 2)])
def test_a_stated_number(number: int, kept: int) -> None:
    responses = with_errors({"none": 0, "one": 1, "two": 2})
    stated = Exclusions(min_catch=number)
    assert len(admit(TRIALS, responses, exclusions=stated).participants) == kept
    for impossible in (-1, 13):
        with pytest.raises(InputError, match=f"from 0 to 12, .* got {impossible}"):
            admit(TRIALS, responses, exclusions=Exclusions(min_catch=impossible))


@pytest.mark.parametrize("shown", range(1, 40))
def test_the_default_keeps_honest_people_and_is_never_stricter_than_the_share(shown: int) -> None:
    """Witness: scipy's binomial distribution, with an error in one of a hundred trials."""
    needed = required_catch(shown)
    assert binom.sf(needed - 1, shown, 0.99) >= 0.99 - 1e-9
    # Eleven of twelve in whole numbers: the least k with 12 k >= 11 n
    share = next(k for k in range(shown + 1) if 12 * k >= 11 * shown)
    assert needed == share or binom.sf(needed, shown, 0.99) < 0.99
    assert needed <= share
    for lapses in (0.02, 0.3, 1.0):
        expected = binom.cdf(needed - 1, shown, 1 - lapses / 2)
        assert excluded_share(shown, lapses) == pytest.approx(expected, abs=1e-12)


def test_five_of_six_are_enough_by_default() -> None:
    """By hand: .99^6 = .941 have all right, and .9985 at least five."""
    assert [*map(required_catch, (3, 6, 12, 24))] == [2, 5, 11, 22]
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


ONE_GROUP = make_trials(1)
SIZE = len(ONE_GROUP)


def planted(**people: dict[str, Any]) -> list[Response]:
    """People who answer every trial in 2 s, left 1, and otherwise as their fields say."""
    made = make_responses(ONE_GROUP, dict.fromkeys(people, 1))
    return [replace(r, **{"rt_ms": 2_000.0, "left": 1, **people[r.participant]}) for r in made]


OF: dict[str, dict[str, Any]] = {
    "quick": {"rt_ms": 700.0},
    "slow": {"rt_ms": 9_000.0},
    "restless": {"blurs": 1, "away_ms": 3_000.0},
    "calm": {"blurs": 0, "away_ms": 0.0},
}
ALL = [*OF]


@pytest.mark.parametrize(
    ("rule", "out", "phrase"),
    [
        ({}, [], None),
        ({"min_median_rt": 700}, [], "a median reaction time below 700 ms"),
        ({"min_median_rt": 701}, ["quick"], "a median reaction time below 701 ms"),
        ({"max_median_rt": 8_999}, ["slow"], "a median reaction time above 8999 ms"),
        # 20 trials: 14 s, 180 s, and 40 s twice
        ({"min_minutes": 0.25}, ["quick"], "reaction times below 0.25 minutes in all"),
        ({"max_minutes": 2.9}, ["slow"], "reaction times above 2.9 minutes in all"),
        ({"max_minutes": 3}, [], "reaction times above 3 minutes in all"),
        ({"max_blurs": SIZE - 1}, ["restless"], f"losses of the page's focus above {SIZE - 1}"),
        ({"max_blurs": SIZE}, [], f"losses of the page's focus above {SIZE}"),
        ({"max_away": 59}, ["restless"], "absences from the page above 59 s in all"),
    ],
)
def test_rules_exclude_and_count(rule: dict[str, Any], out: list[str], phrase: str | None) -> None:
    admitted = admit(ONE_GROUP, planted(**OF), exclusions=Exclusions(**rule))
    assert list(admitted.excluded) == out
    assert admitted.participants == tuple(name for name in ALL if name not in out)
    counts = {"an unfinished session": 0, "too few catch trials right": 0}
    assert admitted.counts == counts | ({phrase: len(out)} if phrase else {})


def test_sameness_is_of_buttons_and_not_of_ratings() -> None:
    """Left to right: who always presses one button gives mirrored ratings on the other side."""
    scale = Scale.CONFIDENCE
    made = planted(one={}, other={})
    sides = [replace(r, left=1 + n % 2) for n, r in enumerate(made)]
    answered = [
        replace(r, rating=(2 if r.left == 1 else scale.mirrored(2)))
        if r.participant == "one"
        else replace(r, rating=1 + n % 6)
        for n, r in enumerate(sides)
    ]
    rules = Exclusions(max_same_button=0.9, min_catch=0)
    admitted = admit(ONE_GROUP, answered, exclusions=rules)
    assert admitted.excluded == {"one": "a share of answers by one button above 0.9: 1"}
    found = check_responses(ONE_GROUP, answered).findings
    assert found == (ResponseFinding(Problem.ONE_BUTTON, "one", ("2",)),)


def test_impossible_times_and_long_absences_are_named_and_nobody_is_left_out() -> None:
    people: dict[str, dict[str, Any]] = {
        "fast": {"rt_ms": 499.9},
        "just": {"rt_ms": 500.0},
        "gone": {"away_ms": 60_001.0},
        "back": {"away_ms": 60_000.0},
        "long": {"rt_ms": 300_001.0},
    }
    admitted = admit(ONE_GROUP, planted(**people))
    assert len(admitted.participants) == len(people)
    assert {(f.problem, f.participant) for f in admitted.report.findings} == {
        (Problem.TOO_FAST, "fast"),
        (Problem.ABSENT, "gone"),
        (Problem.ABSENT, "long"),
    }
    assert "fast answered in less than 500 ms" in str(admitted.report)


def test_a_table_names_people_and_another_says_something_of_them(tmp_path: Path) -> None:
    named, people = tmp_path / "out.csv", tmp_path / "people.csv"
    named.write_text("participant,reason\nslow,withdrew\ncalm,\n")
    people.write_text("participant,first_language\nquick, english\nslow,German\ncalm,German\n")
    rules = Exclusions(exclude=named, participants=people, require=("first_language=English",))
    admitted = admit(ONE_GROUP, planted(**OF), exclusions=rules)
    assert admitted.excluded == {
        "slow": "withdrew",
        "restless": "first_language is not stated, not English",
        "calm": "named in out.csv",
    }
    people.write_text(
        "participant,question,answer\nquick,age,30\nquick,first_language,English\n"
        "slow,first_language,German\ncalm,first_language,German\n"
    )
    assert admit(ONE_GROUP, planted(**OF), exclusions=rules).excluded == admitted.excluded
    assert [*admitted.counts.items()][2:] == [
        ("named in a table", 2),
        ("first_language other than English", 1),
    ]


def test_unfinished_sessions_are_kept_on_request_unless_they_break_a_rule() -> None:
    """The catch trials that somebody saw: eleven of twelve allow one error, also in six."""
    made = planted(all={}, some={}, careless={}, quick={"rt_ms": 100.0}, mute={"rating": UNRATED})
    catch = {t.trial_id for t in ONE_GROUP if t.condition == "catch"}
    seen = {*sorted(catch)[:6]} | {t.trial_id for t in ONE_GROUP if t.trial_id not in catch}
    wrong = sorted(catch)[:2]
    part = [
        replace(r, rating=6) if r.participant == "careless" and r.trial_id in wrong else r
        for r in made
        if r.participant == "all" or r.trial_id in seen
    ]
    rules = Exclusions(partial=True, min_median_rt=500)
    admitted = admit(ONE_GROUP, part, exclusions=rules)
    assert admitted.participants == ("all",)
    assert {r.participant for r in admitted.partial} == {"some"}
    assert len(admitted.partial) == len(seen) == 14
    assert admitted.excluded["some"] == "rated 14 of 20 trials"
    assert "1 unfinished session (14 ratings) kept for regressions" in admitted.partial_note
    assert "4 of 6 catch trials right, 5 are required" in admitted.excluded["careless"]
    assert admitted.counts == {
        "no rating at all": 1,
        "too few catch trials right": 1,
        "a median reaction time below 500 ms": 1,
        "an unfinished session, kept in regressions and mixed models alone": 1,
    }
    assert len(admitted.excluded) == sum(admitted.counts.values()) == 4
    assert admit(ONE_GROUP, part).partial == ()


def test_tables_of_people_are_read_as_they_are_written(tmp_path: Path) -> None:
    """A spreadsheet is kept from taking a name such as @x for a formula by a mark before it."""
    made = planted(**{"@x": {}, "ben": {}})
    write_responses(tmp_path / "responses.csv", made)
    assert "'@x" in (tmp_path / "responses.csv").read_text()
    people, named = tmp_path / "people.csv", tmp_path / "out.csv"
    people.write_text("participant,language\n'@x , English\nben,German\n")
    named.write_text("participant,reason\n'@x,'=left\n")
    asked = Exclusions(participants=people, require=("language=English",))
    assert [*admit(ONE_GROUP, made, exclusions=asked).participants] == ["@x"]
    people.write_text("participant,question,answer\n'@x,language,English\nben,age,30\n")
    assert [*admit(ONE_GROUP, made, exclusions=asked).participants] == ["@x"]
    assert admit(ONE_GROUP, made, exclusions=Exclusions(exclude=named)).excluded == {"@x": "=left"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"require": ("a=b",)}, "Set both"),
        ({"require": ("a",), "participants": Path("p.csv")}, "COLUMN=VALUE, got 'a'"),
        ({"participants": Path("absent.csv"), "require": ("a=b",)}, "absent.csv"),
        ({"exclude": Path("named.csv")}, "without answers: zoe"),
        ({"exclude": Path("twice.csv")}, "twice.csv has several rows of ann"),
        ({"participants": Path("twice.csv"), "require": ("reason=b",)}, "several rows of ann"),
        ({"exclude": Path("other.csv")}, "other.csv lacks the columns participant; its columns"),
        ({"max_blurs": 3}, "`max_blurs` cannot be applied"),
    ],
)
def test_rules_that_cannot_hold_are_refused(
    settings: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("named.csv").write_text("participant\nzoe\n")
    Path("twice.csv").write_text("participant,reason\nann,a\n ann,b\n")
    Path("other.csv").write_text("name\nzoe\n")
    with pytest.raises(InputError, match=message):
        admit(ONE_GROUP, planted(ann={}), exclusions=Exclusions(**settings))
