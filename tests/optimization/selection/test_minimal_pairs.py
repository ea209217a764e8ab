"""Minimal pairs on which models disagree: the best set, its proof, and what is refused."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import combinations, permutations
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from contstim.english.words import tag_table
from contstim.errors import InfeasibleError, InputError, VerificationError
from contstim.experiments.design.building import pair_trial
from contstim.files.arrays import FloatArray
from contstim.items.minimal_pair_scores import MinimalPairScores, SentencePair
from contstim.items.reviews import Decision
from contstim.items.stimuli import ControversialMinimalPair
from contstim.optimization.selection import solver
from contstim.optimization.selection.minimal_pairs import select_minimal_pairs
from contstim.optimization.selection.question import MinimalPairQuestion, MinimalPairSelection
from contstim.optimization.selection.verification import verify_minimal_pairs
from contstim.words.sentence import Sentence
from tests.optimization.selection.tables import reviewed

NOUNS = ("cats", "dogs", "birds", "cows", "boys")


def make_scores(seed: int, n_pairs: int, n_models: int, n_paradigms: int = 3) -> MinimalPairScores:
    """Random scores; some sentences stand in two pairs, and nouns in several."""
    rng = np.random.default_rng(seed)
    names = [f"{NOUNS[rng.integers(5)]} verb{rng.integers(n_pairs)}" for _ in range(n_pairs)]
    return MinimalPairScores(
        tuple(
            SentencePair(
                f"p{rng.integers(n_paradigms)}",
                str(number),
                Sentence.parse(f"The {name}."),
                Sentence.parse(f"The {name}s {number}."),
            )
            for number, name in enumerate(names)
        ),
        tuple(f"m{number}" for number in range(n_models)),
        rng.normal(-20, 3, (n_pairs, 2, n_models)),
    )


def scores_of(
    texts: list[tuple[str, str, str]], margins: FloatArray, bad: float = -20.0
) -> MinimalPairScores:
    """Scores of pairs (paradigm, good and bad sentence) from two models' margins, (n_pairs, 2)."""
    pairs = (
        SentencePair(paradigm, str(n), Sentence.parse(good), Sentence.parse(other))
        for n, (paradigm, good, other) in enumerate(texts)
    )
    sides = np.stack([margins + bad, np.full(margins.shape, bad)], axis=1)
    return MinimalPairScores(tuple(pairs), ("m0", "m1"), sides)


def worth(scores: MinimalPairScores, row: int, one: int, two: int, objective: str) -> float:
    """The objective's definition, number by number."""
    d: list[list[float]] = [
        [g - b for g, b in zip(*pair, strict=True)] for pair in scores.log_probs.tolist()
    ]
    if objective == "margin":
        return min(abs(d[row][one]), abs(d[row][two]))
    if objective == "rank":
        below = [sum(abs(o[m]) < abs(d[row][m]) for o in d) + 1 for m in (one, two)]
        return min(below) / len(d)
    p = [1 / (1 + exp(-0.055 * d[row][m])) for m in (one, two)]
    return 0.055 * (p[0] - p[1]) * (d[row][one] - d[row][two]) / 2


def best_by_hand(
    scores: MinimalPairScores,
    question: MinimalPairQuestion,
    *,
    rows: Collection[int] | None = None,
    stay: Collection[tuple[str, str, str]] = (),
    shown: Collection[Sentence] = (),
) -> tuple[int, int, list[int], float] | None:
    """Exhaustive search over all sets, with the goals of a review before those without one.

    The goals are, in order: most kept items; fewest other items with a sentence of a kept trial,
    negated; most even shares; best objective. Of two lists of shares in ascending order, the one
    that is larger where they first differ is more even. None where there is no set. `rows` are
    those that may be chosen, by default all, `stay` the wrong model, right model and pair_id of
    kept items, and `shown` the sentences of kept trials.
    """
    allowed = range(len(scores.pairs)) if rows is None else rows
    need, n_models = question.per_pair // 2, len(scores.models)
    margins = scores.log_probs[:, 0] - scores.log_probs[:, 1]
    paradigms = sorted({pair.paradigm for pair in scores.pairs})
    groups = []
    for one, two in combinations(range(n_models), 2):
        for right, wrong in ((one, two), (two, one)):
            own_rows = [
                row
                for row, m in enumerate(margins.tolist())
                if m[right] > 0 > m[wrong]
                and row in allowed
                and (
                    question.floor is None
                    or min(scores.log_probs[row][:, [one, two]].min(axis=1) / [2 + 1, 3 + 1])
                    >= question.floor
                )
            ]
            sets = []
            models = scores.models[wrong], scores.models[right]
            for some in combinations(own_rows, need):
                of = Counter(scores.pairs[row].paradigm for row in some)
                pairs = [scores.pairs[row] for row in some]
                new = [pair for pair in pairs if (*models, pair.pair_id) not in stay]
                repeats = sum(pair.good in shown or pair.bad in shown for pair in new)
                if max(of.values()) <= (question.per_paradigm or need):
                    shares = [of[name] for name in paradigms]
                    sets.append((some, shares, need - len(new), -repeats))
            groups.append((one, two, sets))

    def answers(
        number: int, taken: Counter[str], words: Counter[str]
    ) -> Iterator[tuple[int, int, list[int], float]]:
        if number == len(groups):
            yield 0, 0, [], 0.0
            return
        one, two, sets = groups[number]
        for some, shares, kept, unrepeated in sets:
            texts = Counter(scores.pairs[row].good.text for row in some) + taken
            now = words + Counter(word for row in some for word in content_words(scores.pairs[row]))
            if max(texts.values()) > 1 or (
                question.word_cap and max(now.values()) > question.word_cap
            ):
                continue
            gain = sum(worth(scores, row, one, two, question.objective) for row in some)
            for kept_too, unrepeated_too, further, rest in answers(number + 1, texts, now):
                goals = (kept + kept_too, unrepeated + unrepeated_too)
                yield *goals, sorted(shares + further), gain + rest

    return max(answers(0, Counter(), Counter()), default=None)


def content_words(pair: SentencePair | ControversialMinimalPair) -> set[str]:
    """Lemmas of both sentences but the article."""
    lemma = tag_table(None).lemma
    words = {word.lower() for sentence in (pair.good, pair.bad) for word in sentence.words}
    return {lemma(word) for word in words - {"the"}}


def models_of(selection: MinimalPairSelection) -> list[str]:
    return sorted({pair.model_1 for pair in selection.pairs})


def shares_of(selection: MinimalPairSelection) -> list[int]:
    """Counts of all paradigms in all halves, ascending."""
    counts = Counter((p.model_1, p.model_2, p.paradigm) for p in selection.pairs)
    halves = permutations(models_of(selection), 2)
    return sorted(
        counts[*half, name]
        for half in halves
        for name in {*map(str, selection.verdicts["paradigm"])}
    )


QUESTIONS = st.builds(
    MinimalPairQuestion,
    per_pair=st.sampled_from([2, 4, 6]),
    objective=st.sampled_from(["margin", "rank", "evidence"]),
    per_paradigm=st.none() | st.integers(1, 3),
    floor=st.sampled_from([None, None, -7.0]),
    word_cap=st.none() | st.integers(1, 4),
)


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_pairs=st.integers(6, 16),
    n_models=st.sampled_from([2, 2, 3]),
    n_paradigms=st.integers(1, 5),
    question=QUESTIONS,
)
def test_sets_are_the_best_and_shares_the_most_even_by_exhaustive_search(
    seed: int, n_pairs: int, n_models: int, n_paradigms: int, question: MinimalPairQuestion
) -> None:
    if n_models == 3:
        question = replace(question, per_pair=2)
    scores = make_scores(seed, n_pairs, n_models, n_paradigms)
    answer = best_by_hand(scores, question)
    if answer is None:
        with pytest.raises(InfeasibleError):
            select_minimal_pairs(scores, question)
        return
    *_, shares, best = answer
    selection = select_minimal_pairs(scores, question)
    check_rules(selection)
    assert shares_of(selection) == shares
    certificate = selection.certificate
    assert certificate.objective == pytest.approx(best, abs=1e-9)
    assert certificate.status == "optimal"
    assert certificate.bound == pytest.approx(best, abs=3e-6)


def check_rules(selection: MinimalPairSelection) -> None:
    """Count the chosen pairs against every rule, one by one."""
    pairs, question = selection.pairs, selection.certificate.question
    assert isinstance(question, MinimalPairQuestion)
    groups = Counter((pair.model_1, pair.model_2) for pair in pairs)
    halves = permutations(models_of(selection), 2)
    assert groups == dict.fromkeys(halves, question.per_pair // 2)
    assert shares_of(selection)[-1] <= (question.per_paradigm or question.per_pair)
    assert max(Counter(s.bare.lower() for p in pairs for s in (p.good, p.bad)).values()) == 1
    for pair in pairs:
        assert pair.log_prob_good_model_1 < pair.log_prob_bad_model_1
        assert pair.log_prob_good_model_2 > pair.log_prob_bad_model_2
    if question.word_cap is not None:
        words = Counter(word for pair in pairs for word in content_words(pair))
        assert max(words.values()) <= question.word_cap


def test_candidates_left_out_at_first_are_priced_and_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: the program that begins with all candidates."""
    scores, question = make_scores(3, 800, 4, 20), MinimalPairQuestion(word_cap=26)
    every = select_minimal_pairs(scores, question).certificate
    monkeypatch.setattr(solver, "_MAX_COLUMNS", 100)
    selection = select_minimal_pairs(scores, question)
    check_rules(selection)
    assert selection.certificate.objective == pytest.approx(every.objective, abs=1e-6)
    assert selection.certificate.status == every.status == "optimal"


@pytest.mark.parametrize("seed", range(4))
def test_larger_sets_are_worth_what_a_plain_integer_program_finds(seed: int) -> None:
    """Witness: SciPy's `milp` on all candidates, with rules written out pair by pair."""
    scores, question = make_scores(seed, 200, 3, 6), MinimalPairQuestion(per_pair=6, word_cap=9)
    selection = select_minimal_pairs(scores, question)
    check_rules(selection)
    rows: dict[object, list[int]] = {}
    limits: dict[object, int] = {}
    worths: list[float] = []
    margins = scores.log_probs[:, 0] - scores.log_probs[:, 1]
    for row, pair in enumerate(scores.pairs):
        for wrong, right in permutations(range(3), 2):
            if not margins[row, right] > 0 > margins[row, wrong]:
                continue
            group = scores.models[wrong], scores.models[right]
            own: dict[object, int] = {group: 3, (*group, scores.pairs[row].paradigm): 1}
            own |= {each.bare.lower(): 1 for each in (pair.good, pair.bad)}
            own |= {("word", word): 9 for word in content_words(pair)}
            limits |= own
            for rule in own:
                rows.setdefault(rule, []).append(len(worths))
            worths.append(worth(scores, row, wrong, right, "margin"))
    matrix = np.zeros((len(rows), len(worths)))
    for number, members in enumerate(rows.values()):
        matrix[number, members] = 1
    upper = np.array([limits[rule] for rule in rows])
    halves = {*permutations(scores.models, 2)}
    lower = np.array([3 if rule in halves else 0 for rule in rows])
    solution = milp(
        -np.array(worths),
        integrality=np.ones(len(worths)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, lower, upper),
    )
    assert selection.certificate.objective == pytest.approx(-solution.fun, abs=1e-6)


def test_candidates_that_only_a_whole_set_needs_join_too() -> None:
    """Witness: by hand. Either of the best for one model excludes either of the best for the other.

    Halves of all four cost nothing beyond the rules, so no price asks for the last pair, worth 1.
    """
    sides = (("one", "one", 9), ("two", "two", 9), ("one", "two", -9), ("two", "one", -9)) * 6
    rows = (*sides, ("three", "three", -1))
    texts = [("p", f"Good {one}.", f"Bad {two}.") for one, two, _ in rows]
    scores = scores_of(texts, np.array([(-size, size) for _, _, size in rows], dtype=float))
    certificate = select_minimal_pairs(scores, MinimalPairQuestion(per_pair=2)).certificate
    assert (certificate.objective, certificate.status) == (10, "optimal")


def test_a_share_is_one_or_two_where_every_paradigm_has_ten_disagreements() -> None:
    """Witness: by hand, six pairs of five paradigms."""
    margins = np.tile([[-1.0, 1.0], [1.0, -1.0]], (50, 1)) * np.arange(1.0, 101.0)[:, None]
    texts = [(f"p{n // 20}", f"Good {n}.", f"Bad {n}.") for n in range(100)]
    scores = scores_of(texts, margins, -200.0)
    selection = select_minimal_pairs(scores, MinimalPairQuestion(per_pair=12))
    assert shares_of(selection) == [1] * 8 + [2] * 2
    # The likeliest of each paradigm, and the second likeliest of the last one
    assert selection.certificate.objective == sum(range(19, 100, 20)) * 2 + 5 + 97 + 98


def test_shares_are_even_where_halves_need_the_same_sentences() -> None:
    """Witness: by hand. The one pair of p1 that either half could use is not enough for both."""
    rows = [("p0", f"good {n}", (-1, 1) if n % 2 else (1, -1)) for n in range(8)]
    rows += [("p1", "shared", (-1, 1)), ("p1", "shared", (1, -1))]
    texts = [(p, f"{good}.", f"bad {n}.") for n, (p, good, _) in enumerate(rows)]
    scores = scores_of(texts, np.array([margin for *_, margin in rows], dtype=float))
    selection = select_minimal_pairs(scores, MinimalPairQuestion(per_pair=4))
    assert shares_of(selection) == [0, 1, 1, 2]


def test_verdicts_count_every_pair_and_show_paradigms_without_disagreement() -> None:
    scores = make_scores(1, 300, 2)
    agreed = np.where(np.arange(300) < 100, np.abs(scores.margins).T, scores.margins.T).T
    scores = replace(
        scores,
        pairs=(
            *(replace(pair, paradigm="agreed") for pair in scores.pairs[:100]),
            *scores.pairs[100:],
        ),
        log_probs=np.stack([agreed - 20, np.full((300, 2), -20.0)], axis=1),
    )
    selection = select_minimal_pairs(scores)
    rows = list(zip(*selection.verdicts.values(), strict=True))
    assert rows[0] == ("agreed", "m0", "m1", 100, 0, 0, 0, 0)
    assert sum(sum(row[3:7]) for row in rows) == 300
    assert sum(row[-1] for row in rows) == len(selection.pairs) == 20
    assert Counter(pair.model_2 for pair in selection.pairs) == {"m0": 10, "m1": 10}


def test_too_few_disagreements_name_the_models() -> None:
    scores = make_scores(0, 6, 2)
    can = r"prefers the acceptable .* only \d on which m\d does and m\d does not"
    with pytest.raises(InfeasibleError, match=rf"{can}\. Lower `per_pair`, or"):
        select_minimal_pairs(scores, MinimalPairQuestion(per_pair=12))
    with pytest.raises(InfeasibleError, match="loosen `word_cap`, or use"):
        select_minimal_pairs(scores, MinimalPairQuestion(per_pair=12, word_cap=9))
    with pytest.raises(InputError, match="`per_pair` must be even, got 3"):
        MinimalPairQuestion(per_pair=3)
    with pytest.raises(InputError, match="at least 2 models"):
        select_minimal_pairs(replace(scores, models=("m0",), log_probs=scores.log_probs[:, :, :1]))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_pairs=st.integers(8, 16),
    n_paradigms=st.integers(1, 3),
    drawn=st.integers(0, 15),
    after=st.sampled_from([2, 4]),
)
@example(seed=124340, n_pairs=16, n_paradigms=2, drawn=12, after=2)
def test_as_many_stay_as_in_any_set_then_shares_are_even(
    seed: int, n_pairs: int, n_paradigms: int, drawn: int, after: int
) -> None:
    """Witness: exhaustive search, first by the goals of a review, then as without a review."""
    scores = make_scores(seed, n_pairs, 2, n_paradigms)
    try:
        before = select_minimal_pairs(scores, MinimalPairQuestion(per_pair=4))
    except InfeasibleError:
        return
    rejected = {p.trial_id for k, p in enumerate(before.pairs) if drawn >> k & 1}
    gone = {s for p in before.pairs if p.trial_id in rejected for s in (p.good, p.bad)}
    stay = {(p.model_1, p.model_2, p.pair_id) for p in before.pairs if p.trial_id not in rejected}
    left = [k for k, p in enumerate(scores.pairs) if not gone & {p.good, p.bad}]
    left += [k for k, p in enumerate(scores.pairs) if p.pair_id in {name for *_, name in stay}]
    question = MinimalPairQuestion(per_pair=after)
    shown = {s for p in before.pairs if p.trial_id not in rejected for s in (p.good, p.bad)}
    answer = best_by_hand(scores, question, rows=left, stay=stay, shown=shown)
    trials = [replace(pair_trial(pair), group=1) for pair in before.pairs]
    review = reviewed(trials, rejected, Decision.NONE)
    if answer is None:
        with pytest.raises(InfeasibleError):
            select_minimal_pairs(scores, question, review=review)
        return
    selection = select_minimal_pairs(scores, question, review=review)
    check_rules(selection)
    new = [p for p in selection.pairs if (p.model_1, p.model_2, p.pair_id) not in stay]
    repeats = sum(p.good in shown or p.bad in shown for p in new)
    goals = (len(selection.pairs) - len(new), -repeats, shares_of(selection))
    assert goals == answer[:3]
    assert selection.certificate.objective == pytest.approx(answer[3], abs=1e-9)
    names = {p.trial_id for p in selection.pairs}
    assert {i.item_id for i in selection.changed} == {
        p.trial_id for p in before.pairs if p.trial_id not in rejected | names
    }


@pytest.mark.parametrize(
    ("forge", "failure"),
    [
        (lambda pairs: (*pairs[:-1], replace(pairs[0], trial_id="other")), "chosen twice"),
        (lambda pairs: pairs[:-1], "halves"),
        (lambda pairs: (replace(pairs[0], pair_id="99"), *pairs[1:]), "was not given"),
        (
            lambda pairs: (replace(pairs[0], model_1="m1", model_2="m0"), *pairs[1:]),
            "was not given",
        ),
    ],
)
def test_a_forged_selection_fails_its_independent_check(
    forge: Callable[[tuple[ControversialMinimalPair, ...]], Any], failure: str
) -> None:
    scores = make_scores(0, 60, 2)
    selection = select_minimal_pairs(scores, MinimalPairQuestion(per_pair=4))
    verify_minimal_pairs(scores, selection)
    with pytest.raises(VerificationError, match=failure):
        verify_minimal_pairs(scores, replace(selection, pairs=forge(selection.pairs)))
