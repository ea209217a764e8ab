"""Designs against their definition, attention trials, and errors found by the verifier."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InfeasibleError, InputError, VerificationError
from contstim.experiments.analysis.ratings import Scope, scope_mask
from contstim.experiments.design.building import Design, as_inside, build_design, triplet_trials
from contstim.experiments.design.verification import verify_design
from contstim.experiments.responses.admission import Exclusions, admit
from contstim.experiments.responses.table import Response
from contstim.files.tables import write_table
from contstim.items.stimuli import Condition, Kind, Trial, read_trials, trial_columns
from contstim.steps.design import read_attention
from contstim.words.sentence import Sentence
from tests.experiments.stimuli import natural, some_pairs, some_triplets

PAIRS, TRIPLETS, NATURAL = some_pairs(6), some_triplets(6), natural(80)
SIZES: dict[str, Any] = {"groups": 6, "random_per_group": 3, "catch_per_group": 4, "twins": True}


PIGS = Sentence.parse("Pigs fly.")
EMPTY, FILLERS = ("pairs", "triplets"), ("random_per_group", "catch_per_group")


def design_with(**changes: Any) -> Design:
    arguments: dict[str, Any] = {"pairs": PAIRS, "triplets": TRIPLETS, "natural": NATURAL, **SIZES}
    return build_design(**{**arguments, **changes})


def test_triplet_has_three_trials_with_different_ids() -> None:
    first, second, third = triplet_trials(TRIPLETS[0], twins=True)
    assert (first.kind_1, first.kind_2) == ("natural", "synthetic_1")
    assert (second.sentence_1, second.sentence_2) == (TRIPLETS[0].natural, TRIPLETS[0].synthetic_2)
    assert (third.kind_1, third.kind_2) == ("synthetic_1", "synthetic_2")
    assert {t.source_id for t in (first, second, third)} == {TRIPLETS[0].triplet_id}
    assert len({t.trial_id for t in (first, second, third)}) == 3


def test_seed_determines_the_design() -> None:
    assert design_with(seed=1).trials == design_with(seed=1).trials != design_with(seed=2).trials


@given(st.lists(st.integers(1, 4), min_size=1, max_size=25), st.integers(0, 99))
def test_maximum_number_of_random_pairs_of_equal_length(numbers: list[int], seed: int) -> None:
    """Half of the sentences of each length, rounded down, form pairs; one more pair is an error."""
    cats, dogs = (Sentence.parse(text) for text in ("Cats bark", "Dogs purr"))
    pairs = [replace(PAIRS[0], sentence_1=cats, sentence_2=dogs)]
    sentences = [Sentence.parse(f"W{i}{' w' * (n - 1)}") for i, n in enumerate(numbers)]
    maximum = sum(n // 2 for n in Counter(numbers).values())

    def random_pair_lengths(random: int) -> list[tuple[int, int]]:
        sizes: dict[str, Any] = {"groups": 1, "random_per_group": random, "catch_per_group": 0}
        trials = build_design(pairs, natural=sentences, seed=seed, **sizes).trials
        random_trials = (t for t in trials if t.condition == Condition.RANDOM_NATURAL)
        return [(len(trial.sentence_1), len(trial.sentence_2)) for trial in random_trials]

    length_pairs = random_pair_lengths(maximum)
    assert len(length_pairs) == maximum
    assert all(first == second for first, second in length_pairs)
    with pytest.raises(InfeasibleError, match="both sentences of a pair with the same number of"):
        random_pair_lengths(maximum + 1)


def test_capitals_and_marks_do_not_reveal_shuffled_sentences() -> None:
    """By hand: words occur inside sentences as names, as common words, as both, or not at all."""
    texts = (
        "Paris is where I saw Lenin",
        "He saw Paris and the March of the old march",
        "The march was long",
        "I know that NATO met in March",
        "NATO came to the old town",
        "I'm sure of the march",
        "Abnormal weather came",
        "lower case stays as it is",
        "Was it long?",
    )
    sentences = [Sentence.parse(text) for text in texts]
    inside = as_inside(sentences)
    expected = {"Paris": "Paris", "The": "the", "I": "I", "NATO": "NATO", "I'm": "I'm"}
    expected |= {"Abnormal": "abnormal", "March": "march", "He": "he", "lower": "lower"}
    assert {word: inside(word) for word in expected} == expected
    trials = build_design(natural=sentences, groups=9, random_per_group=0, catch_per_group=1).trials
    for trial in trials:
        old, new = trial.sentence_1.words, trial.sentence_2.words
        assert new[0][0].isupper() == old[0][0].isupper()
        assert Counter(map(str.lower, new)) == Counter(map(str.lower, old))
        assert trial.sentence_1.end == trial.sentence_2.end
        capitals = {word for word in new[1:] if word[0].isupper()}
        assert capitals <= {"Paris", "I", "NATO", "I'm", "Lenin", "March"}


@given(st.lists(st.lists(st.sampled_from("the The a dog".split()), min_size=1, max_size=4),
                min_size=1, max_size=6, unique_by=tuple))  # fmt: skip
def test_catch_trials_never_compare_a_sentence_with_itself(texts: list[list[str]]) -> None:
    sentences = [Sentence(tuple(words)) for words in texts]
    sizes: dict[str, Any] = {"groups": 1, "random_per_group": 0, "catch_per_group": 1}
    try:
        (trial,) = build_design(natural=sentences, **sizes).trials
    except InfeasibleError:
        orders = Counter(" ".join(sorted(s.words)).lower() for s in sentences)
        assert all(len({w.lower() for w in s.words}) == 1 or max(orders.values()) > 1
                   for s in sentences)  # fmt: skip
    else:
        first, second = trial.sentence_1.words, trial.sentence_2.words
        assert sorted(w.lower() for w in first) == sorted(w.lower() for w in second)
        assert [w.lower() for w in first] != [w.lower() for w in second]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"groups": 4}, InfeasibleError, "6 trials of natural-controversial for .* 4 groups"),
        ({"groups": 0}, InputError, "groups must be at least 1"),
        ({"groups": 1}, InfeasibleError, r"groups must be at least 3, got 1:"),
        ({"groups": 2}, InfeasibleError, r"groups must be at least 3, got 2:"),
        ({**dict.fromkeys(EMPTY, ()), **dict.fromkeys(FILLERS, 0)}, InputError, "has no trials"),
        ({"natural": natural(59)}, InfeasibleError, r"in total 60\. Other trials leave 59"),
        ({"catch_per_group": -1}, InputError, "must be at least 0"),
        ({"pairs": [*PAIRS, PAIRS[0]]}, InputError, "occurs twice"),
        ({"pairs": [*PAIRS, replace(PAIRS[0], trial_id="x")]}, InputError, "x occurs twice"),
        ({"pairs": [replace(PAIRS[0], sentence_1=None)]}, InputError, "has no texts"),
        (
            {"pairs": [replace(p, sentence_2=Sentence.parse("Seen by all.")) for p in PAIRS]},
            InfeasibleError,
            "'Seen by all' occurs in 36 trials",
        ),
    ],
)
def test_error_states_why_a_design_is_impossible(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        design_with(**changes)


def swap_groups(trials: list[Trial]) -> None:
    """Move two trials to other groups, so that their kinds are unevenly distributed."""
    index = next(i for i, t in enumerate(trials) if t.group == 2)
    trials[0], trials[index] = (replace(trials[0], group=2), replace(trials[index], group=3))


def repeat_sentence(trials: list[Trial]) -> None:
    """Swap the groups of two trials of a kind, so that a group repeats a triplet's sentence."""
    trial = next(t for t in trials if t.condition == Condition.SYNTHETIC_SYNTHETIC)
    others = (t for t in trials if t.condition != trial.condition)
    mate = next(t for t in others if t.source_id == trial.source_id)
    counterpart = next(
        t
        for t in trials
        if (t.condition, t.model_1, t.model_2) == (trial.condition, trial.model_1, trial.model_2)
        and t.group == mate.group
    )
    trials[trials.index(trial)] = replace(trial, group=mate.group)
    trials[trials.index(counterpart)] = replace(counterpart, group=trial.group)


def change_trial(condition: Condition, **fields: Any) -> Callable[[list[Trial]], None]:
    def forge(trials: list[Trial]) -> None:
        index = next(i for i, t in enumerate(trials) if t.condition == condition)
        trials[index] = replace(trials[index], **fields)

    return forge


def uncapitalise(trials: list[Trial]) -> None:
    index = next(i for i, t in enumerate(trials) if t.condition == Condition.CATCH)
    text = trials[index].sentence_2.text
    lower = Sentence.parse(text[0].lower() + text[1:])
    trials[index] = replace(trials[index], sentence_2=lower)


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (swap_groups, "different numbers of trials"),
        (repeat_sentence, "sees .* 2 times"),
        (lambda trials: trials.pop(0), "is compared 0 times, not 1"),
        (
            change_trial(Condition.CATCH, sentence_2=Sentence.parse("The cat sees.")),
            "not a reordering",
        ),
        (change_trial(Condition.CATCH, sentence_1=PIGS), "not among the natural"),
        (change_trial(Condition.RANDOM_NATURAL, model_1="gpt"), "leave model_1 and model_2 empty"),
        (
            change_trial(Condition.RANDOM_NATURAL, sentence_1=PAIRS[0].sentence_1),
            "not among|is used",
        ),
        (change_trial(Condition.NATURAL_SYNTHETIC, sentence_2=PIGS), "is compared"),
        (change_trial(Condition.CATCH, group=9), "is in group 9"),
        (
            change_trial(Condition.SYNTHETIC_SYNTHETIC, source=NATURAL[0]),
            "as its natural sentence, not",
        ),
        (change_trial(Condition.SYNTHETIC_SYNTHETIC, source=None), "as its natural sentence, not"),
        (uncapitalise, "does not begin with a capital"),
        (change_trial(Condition.CATCH, trial_id=PAIRS[0].trial_id), "2 trials have the trial_id"),
    ],
)
def test_verifier_detects_wrong_designs(forge: Callable[[list[Trial]], None], message: str) -> None:
    trials = list(design_with().trials)
    verify_design(trials, PAIRS, TRIPLETS, NATURAL, **SIZES)
    forge(trials)
    with pytest.raises(VerificationError, match=message):
        verify_design(trials, PAIRS, TRIPLETS, NATURAL, **SIZES)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "attention.csv"
    path.write_text("sentence_1,sentence_2\nPlease choose this one.,Please choose the other one.\n")
    return path


def test_attention_trials_are_in_all_groups_and_exclude(table: Path, tmp_path: Path) -> None:
    arguments = {"groups": 2, "random_per_group": 2, "catch_per_group": 1, "seed": 3}
    without_attention = build_design(natural=natural(30), **arguments)  # type: ignore[arg-type]
    design = build_design(natural=natural(30), **arguments, attention=read_attention(table))  # type: ignore[arg-type]
    attention_trials = [trial for trial in design.trials if trial.kind_1 is Kind.INSTRUCTION]
    assert {*design.trials} - {*attention_trials} == {*without_attention.trials}
    assert [(trial.group, trial.condition) for trial in attention_trials] == [
        (1, Condition.CATCH),
        (2, Condition.CATCH),
    ]
    write_table(tmp_path / "trials.csv", trial_columns(design.trials))
    assert read_trials(tmp_path / "trials.csv") == design.trials
    responses = [
        Response(
            name,
            1,
            trial.trial_id,
            5 if name == "bob" and trial in attention_trials else 1,
            1,
            n + 1,
            900.0,
        )
        for name in ("ann", "bob")
        for n, trial in enumerate(trial for trial in design.trials if trial.group == 1)
    ]
    admission = admit(design.trials, responses, exclusions=Exclusions(min_catch=2))
    assert admission.participants == ("ann",)
    assert admission.excluded == {"bob": "1 of 2 catch trials right, 2 are required"}
    # Models do not judge instructions, even if catch trials count
    mask = scope_mask(design.trials, Scope.OVERALL, ["x"], catch=True)[0]
    assert [
        trial for trial, counts in zip(design.trials, mask, strict=True) if not counts
    ] == attention_trials


def test_verifier_detects_repeated_and_missing_attention_trials(table: Path) -> None:
    arguments = {"groups": 2, "random_per_group": 1, "catch_per_group": 1}
    sentences = natural(20)
    trials = build_design(natural=sentences, **arguments, attention=read_attention(table)).trials  # type: ignore[arg-type]
    attention_trial = next(t for t in trials if t.kind_1 is Kind.INSTRUCTION)
    repeated, missing = [*trials, attention_trial], [t for t in trials if t is not attention_trial]
    for trials_of_case, message in (
        (repeated, "2 trials have the trial_id"),
        (missing, "attention trial .* 0 times, not 1"),
    ):
        with pytest.raises(VerificationError, match=message):
            verify_design(trials_of_case, (), (), sentences, twins=False, **arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence_1\nThis one.\n", "lacks the columns sentence_2"),
        ("sentence_1,sentence_2\nThis one.,This one\n", "row 0 compares"),
    ],
)
def test_invalid_attention_tables_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_attention(tmp_path / "a.csv")


def test_attention_trials_in_python_are_validated() -> None:
    first, second, repeated = map(Sentence.parse, ("This one", "That one", "This one!"))
    with pytest.raises(InputError, match="`attention`, row 1 compares 'This one!' with itself"):
        build_design(natural=natural(20), groups=1, attention=[(first, second), (repeated, first)])
