"""Minimal pairs on which models disagree: the best set, its proof and infeasible questions."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Set
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
from tests.optimization.selection.tables import make_review

NOUNS = ("cats", "dogs", "birds", "cows", "boys")


def make_scores(seed: int, n_pairs: int, n_models: int, n_paradigms: int = 3) -> MinimalPairScores:
    """Return random scores; some sentences occur in two pairs, and some nouns in several."""
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


def make_scores_from_margins(
    texts: list[tuple[str, str, str]], margins: FloatArray, bad: float = -20.0
) -> MinimalPairScores:
    """Return scores of pairs (paradigm, good, bad) with two models' margins, (n_pairs, 2)."""
    pairs = (
        SentencePair(paradigm, str(n), Sentence.parse(good), Sentence.parse(bad_text))
        for n, (paradigm, good, bad_text) in enumerate(texts)
    )
    sides = np.stack([margins + bad, np.full(margins.shape, bad)], axis=1)
    return MinimalPairScores(tuple(pairs), ("m0", "m1"), sides)


def value(scores: MinimalPairScores, row: int, model_1: int, model_2: int, objective: str) -> float:
    """Compute the objective by its definition, one number at a time."""
    margins: list[list[float]] = [
        [g - b for g, b in zip(*pair, strict=True)] for pair in scores.log_probs.tolist()
    ]
    if objective == "margin":
        return min(abs(margins[row][model_1]), abs(margins[row][model_2]))
    if objective == "rank":
        below = [
            sum(abs(other_margins[m]) < abs(margins[row][m]) for other_margins in margins) + 1
            for m in (model_1, model_2)
        ]
        return min(below) / len(margins)
    probabilities = [1 / (1 + exp(-0.055 * margins[row][m])) for m in (model_1, model_2)]
    difference = margins[row][model_1] - margins[row][model_2]
    return 0.055 * (probabilities[0] - probabilities[1]) * difference / 2


def search_exhaustively(
    scores: MinimalPairScores,
    question: MinimalPairQuestion,
    *,
    rows: Collection[int] | None = None,
    kept_pairs: Collection[tuple[str, str, str]] = (),
    kept_sentences: Set[Sentence] = frozenset(),
) -> tuple[int, int, list[int], float] | None:
    """Search all sets for the best one; None if no set exists.

    The goals are, in order: most kept items; fewest other items with a sentence of a kept trial,
    negated; most even shares; best objective. Of two ascending lists of shares, the more even one
    is larger where they first differ. Only `rows` may be chosen, by default all. `kept_pairs` are
    (wrong model, right model, pair_id) of kept items, `kept_sentences` those of kept trials.
    """
    allowed = range(len(scores.pairs)) if rows is None else rows
    n_needed, n_models = question.per_pair // 2, len(scores.models)
    margins = scores.log_probs[:, 0] - scores.log_probs[:, 1]
    paradigms = sorted({pair.paradigm for pair in scores.pairs})
    groups = []
    for model_1, model_2 in combinations(range(n_models), 2):
        for right, wrong in ((model_1, model_2), (model_2, model_1)):
            group_rows = [
                row
                for row, m in enumerate(margins.tolist())
                if m[right] > 0 > m[wrong]
                and row in allowed
                and (
                    question.floor is None
                    or min(
                        scores.log_probs[row][:, [model_1, model_2]].min(axis=1) / [2 + 1, 3 + 1]
                    )
                    >= question.floor
                )
            ]
            sets = []
            models = scores.models[wrong], scores.models[right]
            for chosen in combinations(group_rows, n_needed):
                paradigm_counts = Counter(scores.pairs[row].paradigm for row in chosen)
                pairs = [scores.pairs[row] for row in chosen]
                new = [pair for pair in pairs if (*models, pair.pair_id) not in kept_pairs]
                repeats = sum(not kept_sentences.isdisjoint((p.good, p.bad)) for p in new)
                if max(paradigm_counts.values()) <= (question.per_paradigm or n_needed):
                    shares = [paradigm_counts[name] for name in paradigms]
                    sets.append((chosen, shares, n_needed - len(new), -repeats))
            groups.append((model_1, model_2, sets))

    def enumerate_goals(
        number: int, used_texts: Counter[str], words: Counter[str]
    ) -> Iterator[tuple[int, int, list[int], float]]:
        if number == len(groups):
            yield 0, 0, [], 0.0
            return
        model_1, model_2, sets = groups[number]
        for chosen, shares, n_kept, unrepeated in sets:
            texts = Counter(scores.pairs[row].good.text for row in chosen) + used_texts
            word_counts = words + Counter(
                word for row in chosen for word in content_words(scores.pairs[row])
            )
            if max(texts.values()) > 1 or (
                question.word_cap and max(word_counts.values()) > question.word_cap
            ):
                continue
            gain = sum(value(scores, row, model_1, model_2, question.objective) for row in chosen)
            for more_kept, more_unrepeated, more_shares, more_value in enumerate_goals(
                number + 1, texts, word_counts
            ):
                goals = (n_kept + more_kept, unrepeated + more_unrepeated)
                yield *goals, sorted(shares + more_shares), gain + more_value

    return max(enumerate_goals(0, Counter(), Counter()), default=None)


def content_words(pair: SentencePair | ControversialMinimalPair) -> set[str]:
    """Return the lemmas of both sentences, without the article."""
    lemma = tag_table(None).lemma
    words = {word.lower() for sentence in (pair.good, pair.bad) for word in sentence.words}
    return {lemma(word) for word in words - {"the"}}


def selected_models(selection: MinimalPairSelection) -> list[str]:
    return sorted({pair.model_1 for pair in selection.pairs})


def paradigm_shares(selection: MinimalPairSelection) -> list[int]:
    """Return the counts of all paradigms in all halves, ascending."""
    counts = Counter((p.model_1, p.model_2, p.paradigm) for p in selection.pairs)
    halves = permutations(selected_models(selection), 2)
    names = {*map(str, selection.verdicts["paradigm"])}
    return sorted(counts[*half, name] for half in halves for name in names)


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
def test_selections_equal_the_exhaustive_optimum(
    seed: int, n_pairs: int, n_models: int, n_paradigms: int, question: MinimalPairQuestion
) -> None:
    """Witness: exhaustive search, first for the most even shares, then for the best objective."""
    if n_models == 3:
        question = replace(question, per_pair=2)
    scores = make_scores(seed, n_pairs, n_models, n_paradigms)
    optimum = search_exhaustively(scores, question)
    if optimum is None:
        with pytest.raises(InfeasibleError):
            select_minimal_pairs(scores, question)
        return
    *_, shares, best = optimum
    selection = select_minimal_pairs(scores, question)
    check_rules(selection)
    assert paradigm_shares(selection) == shares
    certificate = selection.certificate
    assert certificate.objective == pytest.approx(best, abs=1e-9)
    assert certificate.status == "optimal"
    assert certificate.bound == pytest.approx(best, abs=3e-6)


def check_rules(selection: MinimalPairSelection) -> None:
    """Count the chosen pairs under each rule."""
    pairs, question = selection.pairs, selection.certificate.question
    assert isinstance(question, MinimalPairQuestion)
    groups = Counter((pair.model_1, pair.model_2) for pair in pairs)
    halves = permutations(selected_models(selection), 2)
    assert groups == dict.fromkeys(halves, question.per_pair // 2)
    assert paradigm_shares(selection)[-1] <= (question.per_paradigm or question.per_pair)
    assert max(Counter(s.bare.lower() for p in pairs for s in (p.good, p.bad)).values()) == 1
    for pair in pairs:
        assert pair.log_prob_good_model_1 < pair.log_prob_bad_model_1
        assert pair.log_prob_good_model_2 > pair.log_prob_bad_model_2
    if question.word_cap is not None:
        words = Counter(word for pair in pairs for word in content_words(pair))
        assert max(words.values()) <= question.word_cap


def test_column_generation_finds_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: the program that starts with all candidates."""
    scores, question = make_scores(3, 800, 4, 20), MinimalPairQuestion(word_cap=26)
    full_certificate = select_minimal_pairs(scores, question).certificate
    monkeypatch.setattr(solver, "_MAX_COLUMNS", 100)
    selection = select_minimal_pairs(scores, question)
    check_rules(selection)
    assert selection.certificate.objective == pytest.approx(full_certificate.objective, abs=1e-6)
    assert selection.certificate.status == full_certificate.status == "optimal"


@pytest.mark.parametrize("seed", range(4))
def test_larger_selections_equal_a_plain_integer_program(seed: int) -> None:
    """Witness: SciPy's `milp` on all candidates, with rules listed for each pair."""
    scores, question = make_scores(seed, 200, 3, 6), MinimalPairQuestion(per_pair=6, word_cap=9)
    selection = select_minimal_pairs(scores, question)
    check_rules(selection)
    rows: dict[object, list[int]] = {}
    limits: dict[object, int] = {}
    values: list[float] = []
    margins = scores.log_probs[:, 0] - scores.log_probs[:, 1]
    for row, pair in enumerate(scores.pairs):
        for wrong, right in permutations(range(3), 2):
            if not margins[row, right] > 0 > margins[row, wrong]:
                continue
            group = scores.models[wrong], scores.models[right]
            rules: dict[object, int] = {group: 3, (*group, scores.pairs[row].paradigm): 1}
            rules |= {sentence.bare.lower(): 1 for sentence in (pair.good, pair.bad)}
            rules |= {("word", word): 9 for word in content_words(pair)}
            limits |= rules
            for rule in rules:
                rows.setdefault(rule, []).append(len(values))
            values.append(value(scores, row, wrong, right, "margin"))
    matrix = np.zeros((len(rows), len(values)))
    for number, columns in enumerate(rows.values()):
        matrix[number, columns] = 1
    upper = np.array([limits[rule] for rule in rows])
    halves = {*permutations(scores.models, 2)}
    lower = np.array([3 if rule in halves else 0 for rule in rows])
    solution = milp(
        -np.array(values),
        integrality=np.ones(len(values)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, lower, upper),
    )
    assert selection.certificate.objective == pytest.approx(-solution.fun, abs=1e-6)


def test_candidates_needed_only_for_feasibility_are_added() -> None:
    """Witness: by hand. The best pairs for one model exclude the best pairs for the other.

    Halves of all four have no price beyond the rules, so no price asks for the last pair, worth 1.
    """
    sides = (("one", "one", 9), ("two", "two", 9), ("one", "two", -9), ("two", "one", -9)) * 6
    rows = (*sides, ("three", "three", -1))
    texts = [("p", f"Good {good}.", f"Bad {bad}.") for good, bad, _ in rows]
    scores = make_scores_from_margins(
        texts, np.array([(-size, size) for _, _, size in rows], dtype=float)
    )
    certificate = select_minimal_pairs(scores, MinimalPairQuestion(per_pair=2)).certificate
    assert (certificate.objective, certificate.status) == (10, "optimal")


def test_shares_of_paradigms_differ_by_at_most_one() -> None:
    """Witness: by hand, six pairs of five paradigms."""
    margins = np.tile([[-1.0, 1.0], [1.0, -1.0]], (50, 1)) * np.arange(1.0, 101.0)[:, None]
    texts = [(f"p{n // 20}", f"Good {n}.", f"Bad {n}.") for n in range(100)]
    scores = make_scores_from_margins(texts, margins, -200.0)
    selection = select_minimal_pairs(scores, MinimalPairQuestion(per_pair=12))
    assert paradigm_shares(selection) == [1] * 8 + [2] * 2
    # The largest margin of each paradigm, and the second largest of the last one
    assert selection.certificate.objective == sum(range(19, 100, 20)) * 2 + 5 + 97 + 98


def test_shares_are_even_if_halves_need_the_same_sentences() -> None:
    """Witness: by hand. The two pairs of p1 share a sentence, so only one half can use one."""
    rows = [("p0", f"good {n}", (-1, 1) if n % 2 else (1, -1)) for n in range(8)]
    rows += [("p1", "shared", (-1, 1)), ("p1", "shared", (1, -1))]
    texts = [(p, f"{good}.", f"bad {n}.") for n, (p, good, _) in enumerate(rows)]
    scores = make_scores_from_margins(texts, np.array([margin for *_, margin in rows], dtype=float))
    selection = select_minimal_pairs(scores, MinimalPairQuestion(per_pair=4))
    assert paradigm_shares(selection) == [0, 1, 1, 2]


def test_verdicts_include_paradigms_without_disagreement() -> None:
    scores = make_scores(1, 300, 2)
    agreed = np.where(np.arange(300) < 100, np.abs(scores.margins).T, scores.margins.T).T
    pairs = tuple(replace(pair, paradigm="agreed") for pair in scores.pairs[:100])
    log_probs = np.stack([agreed - 20, np.full((300, 2), -20.0)], axis=1)
    scores = replace(scores, pairs=(*pairs, *scores.pairs[100:]), log_probs=log_probs)
    selection = select_minimal_pairs(scores)
    rows = list(zip(*selection.verdicts.values(), strict=True))
    assert rows[0] == ("agreed", "m0", "m1", 100, 0, 0, 0, 0)
    assert sum(sum(row[3:7]) for row in rows) == 300
    assert sum(row[-1] for row in rows) == len(selection.pairs) == 20
    assert Counter(pair.model_2 for pair in selection.pairs) == {"m0": 10, "m1": 10}


def test_too_few_disagreements_name_the_models() -> None:
    scores = make_scores(0, 6, 2)
    message = r"prefers the acceptable .* only \d on which m\d does and m\d does not"
    with pytest.raises(InfeasibleError, match=rf"{message}\. Lower `per_pair`, or"):
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
    bits=st.integers(0, 15),
    per_pair=st.sampled_from([2, 4]),
)
@example(seed=124340, n_pairs=16, n_paradigms=2, bits=12, per_pair=2)
def test_reviewed_selections_equal_the_exhaustive_optimum(
    seed: int, n_pairs: int, n_paradigms: int, bits: int, per_pair: int
) -> None:
    """Witness: exhaustive search, first by the goals of a review, then by those without one."""
    scores = make_scores(seed, n_pairs, 2, n_paradigms)
    try:
        old = select_minimal_pairs(scores, MinimalPairQuestion(per_pair=4))
    except InfeasibleError:
        return
    rejected = {p.trial_id for k, p in enumerate(old.pairs) if bits >> k & 1}
    rejected_sentences = {s for p in old.pairs if p.trial_id in rejected for s in (p.good, p.bad)}
    kept_pairs = {
        (p.model_1, p.model_2, p.pair_id) for p in old.pairs if p.trial_id not in rejected
    }
    rows = [k for k, p in enumerate(scores.pairs) if not rejected_sentences & {p.good, p.bad}]
    rows += [
        k for k, p in enumerate(scores.pairs) if p.pair_id in {name for *_, name in kept_pairs}
    ]
    question = MinimalPairQuestion(per_pair=per_pair)
    kept_sentences = {s for p in old.pairs if p.trial_id not in rejected for s in (p.good, p.bad)}
    optimum = search_exhaustively(
        scores, question, rows=rows, kept_pairs=kept_pairs, kept_sentences=kept_sentences
    )
    trials = [replace(pair_trial(pair), group=1) for pair in old.pairs]
    review = make_review(trials, rejected, Decision.NONE)
    if optimum is None:
        with pytest.raises(InfeasibleError):
            select_minimal_pairs(scores, question, review=review)
        return
    selection = select_minimal_pairs(scores, question, review=review)
    check_rules(selection)
    new = [p for p in selection.pairs if (p.model_1, p.model_2, p.pair_id) not in kept_pairs]
    repeats = sum(not kept_sentences.isdisjoint((p.good, p.bad)) for p in new)
    goals = (len(selection.pairs) - len(new), -repeats, paradigm_shares(selection))
    assert goals == optimum[:3]
    assert selection.certificate.objective == pytest.approx(optimum[3], abs=1e-9)
    selected_ids = {p.trial_id for p in selection.pairs}
    assert {i.item_id for i in selection.changed} == {
        p.trial_id for p in old.pairs if p.trial_id not in rejected | selected_ids
    }


def test_lost_items_of_a_review_name_their_rule() -> None:
    scores = make_scores(3, 16, 2)
    old = select_minimal_pairs(scores, MinimalPairQuestion(per_pair=4))
    removed, equal, *_ = old.pairs
    rows = [row for row, pair in enumerate(scores.pairs) if pair.good != removed.good]
    log_probs = scores.log_probs[rows]
    # Now both models prefer the good sentence
    log_probs[[scores.pairs[row].good == equal.good for row in rows]] = [[-1.0, -1.0], [-9.0, -9.0]]
    pairs = tuple(scores.pairs[row] for row in rows)
    review = make_review([replace(pair_trial(pair), group=1) for pair in old.pairs], ())
    question = MinimalPairQuestion(per_pair=2)
    selection = select_minimal_pairs(
        replace(scores, pairs=pairs, log_probs=log_probs), question, review=review
    )
    rules = {item.item_id: item.rule for item in selection.changed}
    assert "lack its sentences" in rules[removed.trial_id]
    assert "prefer the same sentence" in rules[equal.trial_id]


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (lambda pairs: (*pairs[:-1], replace(pairs[0], trial_id="other")), "chosen twice"),
        (lambda pairs: pairs[:-1], "wrong model, right model"),
        (
            lambda pairs: (replace(pairs[0], pair_id="99"), *pairs[1:]),
            "is not among the candidates",
        ),
        (
            lambda pairs: (replace(pairs[0], model_1="m1", model_2="m0"), *pairs[1:]),
            "is not among the candidates",
        ),
    ],
)
def test_forged_selections_fail_verification(
    forge: Callable[[tuple[ControversialMinimalPair, ...]], Any], message: str
) -> None:
    scores = make_scores(0, 60, 2)
    selection = select_minimal_pairs(scores, MinimalPairQuestion(per_pair=4))
    verify_minimal_pairs(scores, selection)
    with pytest.raises(VerificationError, match=message):
        verify_minimal_pairs(scores, replace(selection, pairs=forge(selection.pairs)))
