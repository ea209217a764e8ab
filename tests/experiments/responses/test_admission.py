"""Exclusion of participants by catch trials and rules; expected numbers are counted by hand."""

from dataclasses import replace
from math import comb
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


def make_catch_errors(n_errors: dict[str, int]) -> list[Response]:
    """Return responses with the given number of wrong catch trials for each participant."""
    responses = make_responses(TRIALS, dict.fromkeys(n_errors, 1))
    return [
        replace(r, rating=5) if r.trial_id in CATCH[: n_errors[r.participant]] else r
        for r in responses
    ]


def test_default_requires_eleven_of_twelve_catch_trials() -> None:
    admitted = admit(TRIALS, make_catch_errors({"none": 0, "one": 1, "two": 2}))
    assert admitted.participants == ("none", "one")
    assert admitted.excluded == {"two": "10 of 12 catch trials right, 11 are required"}
    assert "two: 10 of 12" in str(admitted)
    assert {r.participant for r in admitted.responses} == {"none", "one"}


@pytest.mark.parametrize(("number", "n_admitted"), [(0, 3), (12, 1), (10, 3), (11, 2)])
def test_min_catch_sets_the_required_number(number: int, n_admitted: int) -> None:
    responses = make_catch_errors({"none": 0, "one": 1, "two": 2})
    exclusions = Exclusions(min_catch=number)
    assert len(admit(TRIALS, responses, exclusions=exclusions).participants) == n_admitted
    for impossible in (-1, 13):
        with pytest.raises(InputError, match=f"from 0 to 12, .* got {impossible}"):
            admit(TRIALS, responses, exclusions=Exclusions(min_catch=impossible))


@pytest.mark.parametrize("n_catch", range(1, 40))
def test_default_admits_attentive_participants(n_catch: int) -> None:
    """Witness: the binomial distribution, with an error in one of a hundred trials.

    The default is never stricter than eleven of twelve.
    """
    required = required_catch(n_catch)
    assert binom.sf(required - 1, n_catch, 0.99) >= 0.99 - 1e-9
    # Eleven of twelve in whole numbers: the least k with 12 k >= 11 n
    share = next(k for k in range(n_catch + 1) if 12 * k >= 11 * n_catch)
    assert required == share or binom.sf(required, n_catch, 0.99) < 0.99
    assert required <= share
    for lapses in (0.02, 0.3, 1.0):
        wrong = lapses / 2
        expected = sum(
            comb(n_catch, k) * (1 - wrong) ** k * wrong ** (n_catch - k) for k in range(required)
        )
        assert excluded_share(n_catch, lapses) == pytest.approx(expected, abs=1e-12)


def test_default_requires_five_of_six_catch_trials() -> None:
    """By hand: the probability of no error is .99^6 = .941, of at most one .9985."""
    assert [*map(required_catch, (3, 6, 12, 24))] == [2, 5, 11, 22]
    trials = make_trials(catch=6)
    catch = [t.trial_id for t in trials if t.group == 1 and t.condition is Condition.CATCH]
    rows = make_responses(trials, {"honest": 1, "careless": 1})
    errors = {("honest", catch[0]), ("careless", catch[0]), ("careless", catch[1])}
    marked = [replace(r, rating=5) if (r.participant, r.trial_id) in errors else r for r in rows]
    assert admit(trials, marked).participants == ("honest",)


def test_unfinished_participants_are_excluded() -> None:
    responses = make_responses(TRIALS, {"ann": 1, "bob": 1})
    partial_responses = [r for n, r in enumerate(responses) if r.participant != "bob" or n % 2]
    admitted = admit(TRIALS, partial_responses)
    assert admitted.participants == ("ann",)
    assert admitted.excluded == {"bob": "rated 10 of 20 trials"}


ONE_GROUP = make_trials(1)
SIZE = len(ONE_GROUP)


def plant(**fields: dict[str, Any]) -> list[Response]:
    """Return responses in 2 s with left = 1, unless the fields of a participant differ."""
    responses = make_responses(ONE_GROUP, dict.fromkeys(fields, 1))
    return [replace(r, **{"rt_ms": 2_000.0, "left": 1, **fields[r.participant]}) for r in responses]


FIELDS: dict[str, dict[str, Any]] = {
    "quick": {"rt_ms": 700.0},
    "slow": {"rt_ms": 9_000.0},
    "restless": {"blurs": 1, "away_ms": 3_000.0},
    "calm": {"blurs": 0, "away_ms": 0.0},
}
NAMES = [*FIELDS]


@pytest.mark.parametrize(
    ("rule", "excluded", "phrase"),
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
def test_exclusion_rules(rule: dict[str, Any], excluded: list[str], phrase: str | None) -> None:
    admitted = admit(ONE_GROUP, plant(**FIELDS), exclusions=Exclusions(**rule))
    assert list(admitted.excluded) == excluded
    assert admitted.participants == tuple(name for name in NAMES if name not in excluded)
    counts = {"an unfinished session": 0, "too few catch trials right": 0}
    assert admitted.counts == counts | ({phrase: len(excluded)} if phrase else {})


def test_max_same_button_counts_buttons_not_ratings() -> None:
    """A participant who always presses the same button gives mirrored ratings."""
    scale = Scale.CONFIDENCE
    responses = plant(one={}, other={})
    alternating = [replace(r, left=1 + n % 2) for n, r in enumerate(responses)]
    changed = [
        replace(r, rating=(2 if r.left == 1 else scale.mirrored(2)))
        if r.participant == "one"
        else replace(r, rating=1 + n % 6)
        for n, r in enumerate(alternating)
    ]
    rules = Exclusions(max_same_button=0.9, min_catch=0)
    admitted = admit(ONE_GROUP, changed, exclusions=rules)
    assert admitted.excluded == {"one": "a share of answers by one button above 0.9: 1"}
    findings = check_responses(ONE_GROUP, changed).findings
    assert findings == (ResponseFinding(Problem.ONE_BUTTON, "one", ("2",)),)


def test_fast_and_absent_participants_are_only_reported() -> None:
    fields: dict[str, dict[str, Any]] = {
        "fast": {"rt_ms": 499.9},
        "just": {"rt_ms": 500.0},
        "gone": {"away_ms": 60_001.0},
        "back": {"away_ms": 60_000.0},
        "long": {"rt_ms": 300_001.0},
    }
    admitted = admit(ONE_GROUP, plant(**fields))
    assert len(admitted.participants) == len(fields)
    assert {(f.problem, f.participant) for f in admitted.report.findings} == {
        (Problem.TOO_FAST, "fast"),
        (Problem.ABSENT, "gone"),
        (Problem.ABSENT, "long"),
    }
    assert "fast answered in less than 500 ms" in str(admitted.report)


def test_exclude_table_and_required_participant_columns(tmp_path: Path) -> None:
    table, people = tmp_path / "out.csv", tmp_path / "people.csv"
    table.write_text("participant,reason\nslow,withdrew\ncalm,\n")
    people.write_text("participant,first_language\nquick, english\nslow,German\ncalm,German\n")
    rules = Exclusions(exclude=table, participants=people, require=("first_language=English",))
    admitted = admit(ONE_GROUP, plant(**FIELDS), exclusions=rules)
    assert admitted.excluded == {
        "slow": "withdrew",
        "restless": "first_language is not stated, not English",
        "calm": "named in out.csv",
    }
    people.write_text(
        "participant,question,answer\nquick,age,30\nquick,first_language,English\n"
        "slow,first_language,German\ncalm,first_language,German\n"
    )
    assert admit(ONE_GROUP, plant(**FIELDS), exclusions=rules).excluded == admitted.excluded
    counts = [*admitted.counts.items()][2:]
    assert counts == [("named in a table", 2), ("first_language other than English", 1)]


def test_partial_keeps_unfinished_sessions_that_pass_rules() -> None:
    """Half of the catch trials: eleven of twelve allow one error, also in six."""
    rows = plant(all={}, some={}, careless={}, quick={"rt_ms": 100.0}, mute={"rating": UNRATED})
    catch = {t.trial_id for t in ONE_GROUP if t.condition == "catch"}
    rated_trials = {*sorted(catch)[:6]} | {t.trial_id for t in ONE_GROUP if t.trial_id not in catch}
    wrong_trials = sorted(catch)[:2]
    partial_responses = [
        replace(r, rating=6) if r.participant == "careless" and r.trial_id in wrong_trials else r
        for r in rows
        if r.participant == "all" or r.trial_id in rated_trials
    ]
    rules = Exclusions(partial=True, min_median_rt=500)
    admitted = admit(ONE_GROUP, partial_responses, exclusions=rules)
    assert admitted.participants == ("all",)
    assert {r.participant for r in admitted.partial} == {"some"}
    assert len(admitted.partial) == len(rated_trials) == 14
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
    assert admit(ONE_GROUP, partial_responses).partial == ()


def test_escaped_names_match_in_participant_tables(tmp_path: Path) -> None:
    """Names such as @x are escaped, so that a spreadsheet does not read a formula."""
    rows = plant(**{"@x": {}, "ben": {}})
    write_responses(tmp_path / "responses.csv", rows)
    assert "'@x" in (tmp_path / "responses.csv").read_text()
    people, table = tmp_path / "people.csv", tmp_path / "out.csv"
    people.write_text("participant,language\n'@x , English\nben,German\n")
    table.write_text("participant,reason\n'@x,'=left\n")
    exclusions = Exclusions(participants=people, require=("language=English",))
    assert [*admit(ONE_GROUP, rows, exclusions=exclusions).participants] == ["@x"]
    people.write_text("participant,question,answer\n'@x,language,English\nben,age,30\n")
    assert [*admit(ONE_GROUP, rows, exclusions=exclusions).participants] == ["@x"]
    assert admit(ONE_GROUP, rows, exclusions=Exclusions(exclude=table)).excluded == {"@x": "=left"}


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
def test_invalid_exclusion_rules_raise_errors(
    settings: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("named.csv").write_text("participant\nzoe\n")
    Path("twice.csv").write_text("participant,reason\nann,a\n ann,b\n")
    Path("other.csv").write_text("name\nzoe\n")
    with pytest.raises(InputError, match=message):
        admit(ONE_GROUP, plant(ann={}), exclusions=Exclusions(**settings))
