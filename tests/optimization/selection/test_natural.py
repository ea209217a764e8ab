"""Selection of natural pairs, compared with exhaustive search and SciPy's solvers."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from contstim.errors import InfeasibleError, InputError
from contstim.items.scores import ScoreTable
from contstim.optimization.selection.natural import match_sentences
from contstim.words.sentence import Sentence
from tests.examples import examples
from tests.optimization.selection import tables


@st.composite
def natural_problems(draw: st.DrawFn) -> tuple[ScoreTable, int]:
    """Draw scores with ties and -inf, and a number of pairs that may be infeasible."""
    n_models, per_pair, max_sentences = draw(st.sampled_from([(2, 1, 7), (2, 2, 7), (3, 1, 8)]))
    n_sentences = draw(st.integers(max(1, max_sentences - 5), max_sentences))
    score = st.sampled_from([-np.inf, -5.0, -4.0, -3.5, -3.0, -2.0, -1.0, 0.0])
    size = n_sentences * n_models
    scores = np.array(draw(st.lists(score, min_size=size, max_size=size)))
    models = tuple("abc"[:n_models])
    return ScoreTable(None, models, scores.reshape(n_sentences, n_models)), per_pair


def find_optimum(
    table: ScoreTable,
    per_pair: int,
    usable: frozenset[int] | None = None,
    *,
    agreeing: bool = False,
) -> float | None:
    """Return the least sum of fractional ranks over every set; None if no set exists."""
    n_sentences, n_models = table.log_probs.shape
    counts = dict.fromkeys(permutations(range(n_models), 2), per_pair)
    allowed = range(n_sentences) if usable is None else usable
    best = tables.find_least_sum(
        tables.fractional_ranks(table.log_probs), counts, allowed, agreeing=agreeing
    )
    return None if best == np.inf else best


@settings(max_examples=examples(30))
@given(problem=natural_problems(), agreeing=st.booleans())
def test_selections_equal_the_exhaustive_optimum(
    problem: tuple[ScoreTable, int], *, agreeing: bool
) -> None:
    table, per_pair = problem
    witness = find_optimum(table, per_pair, agreeing=agreeing)
    if witness is None:
        is_feasible = find_optimum(table, 1, agreeing=agreeing) is not None
        number = "1 pair" if is_feasible else "0 pairs"
        with pytest.raises(InfeasibleError, match=f"at most {number} can be selected"):
            tables.choose(table, per_pair=per_pair, agreeing=agreeing)
        return
    selection = tables.choose(table, per_pair=per_pair, agreeing=agreeing)
    certificate = selection.certificate
    assert certificate.objective == pytest.approx(witness, abs=1e-12)
    tables.check_selection(table, selection)
    for pair in () if agreeing else selection.pairs:
        # Scores, not ranks, so that ties and -inf count
        first, second = (table.models.index(m) for m in (pair.model_1, pair.model_2))
        scores_1, scores_2 = table.log_probs[[pair.row_1, pair.row_2]]
        assert scores_1[first] < scores_2[first]
        assert scores_2[second] < scores_1[second]
        assert pair.controversial


def solve_with_highs(table: ScoreTable, demand: list[int]) -> float:
    """Return SciPy's least sum of ranks, with one demand per ordered pair of models."""
    ranks, n = table.ranks().T, len(table.log_probs)
    sources = list(permutations(range(len(table.models)), 2))
    cost = np.stack(
        [np.where((ranks[a] >= 0.5) & (ranks[r] < 0.5), ranks[r], 1e3) for r, a in sources]
    )
    served, used = (
        np.kron(np.eye(len(sources)), np.ones(n)),
        np.kron(np.ones(len(sources)), np.eye(n)),
    )
    return float(linprog(cost.ravel(), used, np.ones(n), served, demand, bounds=(0, 1)).fun)


@pytest.mark.parametrize(("n_sentences", "n_models", "per_pair"), [(26, 3, 1), (92, 4, 3)])
def test_scarce_sentences_equal_highs(n_sentences: int, n_models: int, per_pair: int) -> None:
    """Nearly every sentence is needed, so sources compete; SciPy's HiGHS solves the LP."""
    table = tables.random_table(n_sentences, n_models)
    witness = solve_with_highs(table, [per_pair] * (n_models * (n_models - 1)))
    assert witness < 1e3, "the question must be feasible"
    selection = tables.choose(table, per_pair=per_pair)
    assert selection.certificate.objective == pytest.approx(witness, abs=1e-9)
    tables.check_selection(table, selection)


def test_pairs_are_ordered_by_columns_then_rows() -> None:
    table = tables.random_table()
    pairs = tables.choose(table, per_pair=4).pairs
    assert [(p.model_1, p.model_2) for p in pairs[::4]] == list(combinations(table.models, 2))
    for start in range(0, len(pairs), 4):
        rows = [pair.row_1 for pair in pairs[start : start + 4]]
        assert rows == sorted(rows)


def test_equal_scores_give_equal_pairs_and_names() -> None:
    first, second = (tables.choose(tables.random_table(), per_pair=4) for _ in range(2))
    assert first.pairs == second.pairs
    assert replace(first.certificate, seconds=0.0) == replace(second.certificate, seconds=0.0)
    assert len({pair.trial_id for pair in first.pairs}) == len(first.pairs)


def test_scores_without_sentences_are_matched_by_row(tmp_path: Path) -> None:
    table = tables.random_table()
    ScoreTable(None, table.models, table.log_probs).write(tmp_path / "scores.npz")
    selection = tables.choose(ScoreTable.from_file(tmp_path / "scores.npz"), per_pair=4)
    assert {text for p in selection.pairs for text in (p.sentence_1, p.sentence_2)} == {None}
    for start in range(0, len(selection.pairs), 4):
        rows = [pair.row_2 for pair in selection.pairs[start : start + 4]]
        assert rows == sorted(rows)
    with_texts = tables.choose(table, per_pair=4).certificate
    assert selection.certificate.objective == with_texts.objective


@given(st.lists(st.integers(1, 9), min_size=2, max_size=10))
def test_matching_minimizes_differences_of_length(lengths: list[int]) -> None:
    half = len(lengths) // 2
    sentences = [Sentence.parse("x" * length + "!") for length in lengths]
    rows_1, rows_2 = range(half), range(half, 2 * half)

    def cost_of(matched: list[tuple[int, int]]) -> int:
        return sum(abs(lengths[row_1] - lengths[row_2]) for row_1, row_2 in matched)

    witness = min(cost_of(list(zip(rows_1, order, strict=True))) for order in permutations(rows_2))
    assert cost_of(match_sentences(sentences, rows_1, rows_2)) == witness


@given(st.text("!?.", min_size=2, max_size=10))
def test_matching_minimizes_pairs_of_question_and_statement(marks: str) -> None:
    half = len(marks) // 2
    sentences = [Sentence.parse("x" * (1 + n % 3) + mark) for n, mark in enumerate(marks)]
    rows_1, rows_2 = range(half), range(half, 2 * half)

    def count_mixed(matched: Iterable[tuple[int, int]]) -> int:
        return sum((marks[row_1] == "?") != (marks[row_2] == "?") for row_1, row_2 in matched)

    witness = min(count_mixed(zip(rows_1, order, strict=True)) for order in permutations(rows_2))
    assert count_mixed(match_sentences(sentences, rows_1, rows_2)) == witness


def test_matching_ignores_end_marks_and_breaks_ties_by_row() -> None:
    sentences = list(map(Sentence.parse, ["ccc", "bb", "aa.", "dd!", "ccc?", "ee"]))
    assert match_sentences(sentences, [2, 0, 1], [5, 4, 3]) == [(1, 3), (2, 5), (0, 4)]


@pytest.mark.parametrize(
    ("repeatable", "excluded_remainders"),
    [(None, ()), (frozenset({"The"}), (0,)), (frozenset(), (0, 1)), (frozenset({"dogs"}), (1,))],
)
def test_repetitive_sentences_are_not_selected(
    repeatable: frozenset[str] | None, excluded_remainders: tuple[int, ...]
) -> None:
    """Witness: exhaustive search over the other sentences, with ranks among all sentences."""
    table = tables.repetitive_table()
    usable = frozenset(r for r in range(24) if r % 3 not in excluded_remainders)
    rule: dict[str, Any] = {"no_repeats": True, "repeatable": repeatable}
    rule = rule if repeatable is not None else {}
    selection = tables.choose(table, per_pair=2, agreeing=True, **rule)
    rows = {row for pair in selection.pairs for row in (pair.row_1, pair.row_2)}
    assert rows <= usable
    witness = find_optimum(table, 2, usable, agreeing=True)
    assert selection.certificate.objective == pytest.approx(witness)


def test_sentences_that_differ_in_end_marks_are_selected_once() -> None:
    """Participants see no end mark. Witness: exhaustive search over distinct sentences."""
    scores = [[-9.0, -1.0], [-1.0, -9.0], [-8.0, -2.0], [-2.0, -8.0], [-5.0, -5.0]]
    texts = ("What a day!", "What a day.", "Dogs bark.", "Owls hoot.", "Cats purr.")
    table = ScoreTable(parse_all(*texts), ("a", "b"), np.array(scores))
    selection = tables.choose(table, per_pair=1)
    rows = {row for pair in selection.pairs for row in (pair.row_1, pair.row_2)}
    assert len({Sentence.parse(texts[row]).bare for row in rows}) == 2
    assert selection.certificate.objective == pytest.approx(
        find_optimum(table, 1, frozenset({0, 2, 3, 4}))
    )


def test_pairs_contain_normalized_sentences() -> None:
    scores = np.array([[-9.0, -1.0], [-1.0, -9.0], [-5.0, -5.0]])
    table = ScoreTable(parse_all("  Dogs   bark", "Owls hoot !", "Cats purr"), ("a", "b"), scores)
    (pair,) = tables.choose(table, per_pair=1).pairs
    assert (pair.sentence_1, pair.sentence_2) == parse_all("Dogs bark.", "Owls hoot!")


def parse_all(*texts: str) -> tuple[Sentence, ...]:
    return tuple(map(Sentence.parse, texts))


def make_scores(*columns: list[float]) -> ScoreTable:
    return ScoreTable(None, ("rnn", "lstm"), np.array(columns, dtype=np.float64).T)


def test_missing_sentences_are_counted_per_model_pair() -> None:
    table = make_scores([-3, -2, -1], [-1, -2, -3])
    with pytest.raises(InfeasibleError) as error:
        tables.choose(table, per_pair=3)
    message = "lacks 2 of 3 sentences: only 1 usable sentences rank below 0.5 under"
    assert f"rnn against lstm {message} rnn and at least 0.5 under lstm" in str(error.value)
    assert f"lstm against rnn {message} lstm and at least 0.5 under rnn" in str(error.value)
    assert "at most 1 pair can be selected" in str(error.value)
    with pytest.raises(
        InfeasibleError, match=r"only 2 usable sentences rank at least 0\.5 under lstm"
    ):
        tables.choose(table, per_pair=3, agreeing=True)


def test_jointly_missing_sentences_are_counted() -> None:
    """Three sentences are admissible for both sources, which need two each."""
    table = make_scores([-4, -3, -2, -1], [-4, -3, -2, -1])
    with pytest.raises(InfeasibleError, match="other pairs need the same") as error:
        tables.choose(table, per_pair=2, agreeing=True)
    assert "lacks 1 of 2 sentences" in str(error.value)


@pytest.mark.parametrize(
    ("table", "question", "message"),
    [
        (tables.random_table(), {"per_pair": -1}, "`per_pair` must be 0 or more, not -1"),
        (tables.random_table(), {"per_pair": 0}, "No pair of models needs"),
        (tables.random_table(n_models=1), {}, "at least 2 models"),
        (make_scores([-2, -1], [-1, -2]), {"no_repeats": True}, "need texts"),
        (make_scores([-2, -1], [-1, -2]), {"same_length": True}, "need texts"),
        (make_scores([-2, -1], [-1, -2]), {"excluded": parse_all("A b")}, "column 'sentence'"),
        (tables.random_table(), {"counts": (("model-1", "model-0", 1),)}, "in this order"),
        (tables.random_table(), {"counts": (("model-0", "model-1", -1),)}, "at least 0, got -1"),
    ],
)
def test_bad_question_is_refused(table: ScoreTable, question: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tables.choose(table, **question)


COUNTS = {("model-0", "model-1"): 1, ("model-0", "model-2"): 0, ("model-1", "model-2"): 3}


def test_selections_with_counts_per_pair_equal_highs() -> None:
    """SciPy's HiGHS solves the LP with one demand per ordered pair of models."""
    table = tables.random_table(40)
    demand = [COUNTS[f"model-{min(s)}", f"model-{max(s)}"] for s in permutations(range(3), 2)]
    witness = solve_with_highs(table, demand)
    selection = tables.choose(table, per_pair=5, counts=tuple((*p, n) for p, n in COUNTS.items()))
    assert selection.certificate.objective == pytest.approx(witness, abs=1e-9)
    tables.check_selection(table, selection)
    models = [(p.model_1, p.model_2) for p in selection.pairs]
    assert models == [("model-0", "model-1")] + [("model-1", "model-2")] * 3


def test_excluded_sentences_are_ranked_but_not_selected() -> None:
    """Witness: exhaustive search over the other sentences. End marks do not hide a sentence."""
    table = tables.random_table(12, 2, seed=4)
    assert table.sentences is not None
    excluded = [replace(table.sentences[r], end="!") for r in (0, 3, 5)]
    selection = tables.choose(table, per_pair=1, excluded=excluded)
    remaining = frozenset(range(12)) - {0, 3, 5}
    assert selection.certificate.objective == pytest.approx(find_optimum(table, 1, remaining))
    tables.check_selection(table, selection, excluded)
