"""Natural selection against exhaustive search and SciPy; the verifier against forged results."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import rankdata

from contstim.errors import InfeasibleError, InputError, VerificationError
from contstim.optimization.certificate import Certificate, NaturalSelection
from contstim.optimization.duals import NEVER, dual_prices, sentence_prices
from contstim.optimization.selection import match_by_length, select_natural
from contstim.optimization.verification import verify_natural
from contstim.scores import ScoreTable
from contstim.stimuli import Pair, read_pairs, write_pairs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Forgery = Callable[[NaturalSelection], NaturalSelection]

WORDS = "cats dogs owls purr bark hoot at in the moon loudly somewhere".split()


def random_table(n_sentences: int = 60, n_models: int = 3, seed: int = 0) -> ScoreTable:
    """Distinct sentences of various lengths, scores that tie now and then."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n_sentences, 1))
    scores = np.round(shared + rng.normal(size=(n_sentences, n_models)), 1) - 20
    texts = [f"Row{r} {' '.join(rng.permutation(WORDS)[: 2 + r % 5])}." for r in range(n_sentences)]
    return ScoreTable(tuple(texts), tuple(f"model-{m}" for m in range(n_models)), scores)


@st.composite
def small_questions(draw: st.DrawFn) -> tuple[ScoreTable, int]:
    """Scores with ties and -inf, and a number of pairs that may be too large for them."""
    n_models, per_pair, most = draw(st.sampled_from([(2, 1, 7), (2, 2, 7), (3, 1, 8)]))
    n_sentences = draw(st.integers(max(1, most - 5), most))
    score = st.sampled_from([-np.inf, -5.0, -4.0, -3.5, -3.0, -2.0, -1.0, 0.0])
    size = n_sentences * n_models
    scores = np.array(draw(st.lists(score, min_size=size, max_size=size)))
    models = tuple("abc"[:n_models])
    return ScoreTable(None, models, scores.reshape(n_sentences, n_models)), per_pair


def exhaustive(
    table: ScoreTable, per_pair: int, usable: frozenset[int] | None = None
) -> float | None:
    """The least sum of fractional ranks by trying every set; None where there is no set at all."""
    n_sentences, n_models = table.log_probs.shape
    ranks = np.stack([rankdata(column) for column in table.log_probs.T]) / n_sentences
    sources = list(permutations(range(n_models), 2))

    def least(k: int, free: frozenset[int]) -> float:
        if k == len(sources):
            return 0.0
        reject, accept = sources[k]
        admitted = [s for s in free if ranks[accept, s] >= 0.5]
        return min(
            (
                float(ranks[reject, list(some)].sum()) + least(k + 1, free - set(some))
                for some in combinations(admitted, per_pair)
            ),
            default=np.inf,
        )

    best = least(0, frozenset(range(n_sentences)) if usable is None else usable)
    return None if best == np.inf else best


@settings(max_examples=150, deadline=None)
@given(small_questions())
def test_optimum_is_the_one_of_exhaustive_search(question: tuple[ScoreTable, int]) -> None:
    table, per_pair = question
    witness = exhaustive(table, per_pair)
    if witness is None:
        with pytest.raises(InfeasibleError):
            select_natural(table, per_pair=per_pair)
    else:
        certificate = select_natural(table, per_pair=per_pair).certificate
        assert certificate.objective == pytest.approx(witness, abs=1e-12)
        assert certificate.bound_numerator == certificate.objective_numerator


@pytest.mark.parametrize(("n_sentences", "n_models", "per_pair"), [(16, 3, 2), (48, 4, 3)])
def test_scarce_sentences_give_the_optimum_of_highs(
    n_sentences: int, n_models: int, per_pair: int
) -> None:
    """Nearly every sentence is needed, so that sources compete; SciPy's HiGHS solves the LP."""
    table = random_table(n_sentences, n_models)
    ranks = table.ranks().T
    sources = list(permutations(range(n_models), 2))
    cost = np.stack([np.where(ranks[a] >= 0.5, ranks[r], 1e3) for r, a in sources])
    served = np.kron(np.eye(len(sources)), np.ones(n_sentences))
    used = np.kron(np.ones(len(sources)), np.eye(n_sentences))
    demand = np.full(len(sources), per_pair)
    witness = linprog(cost.ravel(), used, np.ones(n_sentences), served, demand, bounds=(0, 1))
    assert witness.fun < 1e3, "the question must have an answer"
    certificate = select_natural(table, per_pair=per_pair).certificate
    assert certificate.objective == pytest.approx(witness.fun, abs=1e-9)


@given(
    small_questions(),
    st.lists(st.integers(-5, 40), min_size=6, max_size=6),
)
def test_sentence_prices_are_their_definition(
    question: tuple[ScoreTable, int], prices: list[int]
) -> None:
    """The formula of the dual, sentence by sentence, for any prices at all."""
    doubled = question[0].doubled_ranks().T
    n_models, n_sentences = doubled.shape
    sources = list(permutations(range(n_models), 2))
    prices = prices[: len(sources)]
    witness = [0] * n_sentences
    for (reject, accept), price in zip(sources, prices, strict=True):
        for s in range(n_sentences):
            if doubled[accept, s] >= n_sentences:
                witness[s] = max(witness[s], price - doubled[reject, s])
    assert sentence_prices(doubled, np.array(prices)).tolist() == witness


def test_a_plan_that_is_not_optimal_has_no_prices() -> None:
    """Two sources hold each other's sentence: swapping saves two, a negative cycle."""
    costs = np.array([[2, 1], [1, 2]], dtype=np.int64)
    with pytest.raises(VerificationError, match="rearranged at a lower cost"):
        dual_prices(costs, np.array([0, 1]), np.array([9, 9]))
    only = np.array([[1, NEVER], [NEVER, 1]], dtype=np.int64)
    assert dual_prices(only, np.array([0, 1]), np.array([9, 7])).tolist() == [9, 7]


def test_every_sentence_serves_once_and_meets_its_constraint() -> None:
    table = random_table()
    ranks = table.ranks()
    pairs = select_natural(table, per_pair=4).pairs
    rows = [row for pair in pairs for row in (pair.row_1, pair.row_2)]
    assert len(set(rows)) == len(rows) == 2 * 4 * 3
    for pair in pairs:
        m1, m2 = table.models.index(pair.model_1), table.models.index(pair.model_2)
        assert pair.rank_1_model_1 == ranks[pair.row_1, m1]
        assert pair.rank_2_model_2 == ranks[pair.row_2, m2]
        assert pair.rank_1_model_2 == ranks[pair.row_1, m2] >= 0.5
        assert pair.rank_2_model_1 == ranks[pair.row_2, m1] >= 0.5


def test_pairs_stand_in_the_order_of_columns_then_rows() -> None:
    table = random_table()
    pairs = select_natural(table, per_pair=4).pairs
    assert [(p.model_1, p.model_2) for p in pairs[::4]] == list(combinations(table.models, 2))
    for start in range(0, len(pairs), 4):
        rows = [pair.row_1 for pair in pairs[start : start + 4]]
        assert rows == sorted(rows)


def test_same_scores_give_the_same_pairs_and_names() -> None:
    first, second = (select_natural(random_table(), per_pair=4) for _ in range(2))
    assert first.pairs == second.pairs
    assert replace(first.certificate, seconds=0.0) == replace(second.certificate, seconds=0.0)
    assert len({pair.trial_id for pair in first.pairs}) == len(first.pairs)


def test_objective_does_not_depend_on_the_order_of_rows_or_models() -> None:
    table = random_table()
    turned = ScoreTable(None, table.models[::-1], np.ascontiguousarray(table.log_probs[::-1, ::-1]))
    objectives = [select_natural(t, per_pair=5).certificate.objective for t in (table, turned)]
    assert objectives[0] == objectives[1]


def test_scores_without_sentences_are_matched_by_row(tmp_path: Path) -> None:
    table = random_table()
    ScoreTable(None, table.models, table.log_probs).write(tmp_path / "scores.npz")
    selection = select_natural(ScoreTable.read(tmp_path / "scores.npz"), per_pair=4)
    assert {text for p in selection.pairs for text in (p.sentence_1, p.sentence_2)} == {""}
    for start in range(0, len(selection.pairs), 4):
        rows = [pair.row_2 for pair in selection.pairs[start : start + 4]]
        assert rows == sorted(rows)
    with_texts = select_natural(table, per_pair=4).certificate
    assert selection.certificate.objective == with_texts.objective


@given(st.lists(st.integers(1, 9), min_size=2, max_size=10))
def test_matching_is_the_best_of_all_permutations(lengths: list[int]) -> None:
    half = len(lengths) // 2
    sentences = ["x" * length + "!" for length in lengths]
    rows_1, rows_2 = range(half), range(half, 2 * half)

    def apart(matched: list[tuple[int, int]]) -> int:
        return sum(abs(lengths[one] - lengths[two]) for one, two in matched)

    witness = min(apart(list(zip(rows_1, order, strict=True))) for order in permutations(rows_2))
    assert apart(match_by_length(sentences, rows_1, rows_2)) == witness


def test_matching_counts_characters_without_end_marks_and_breaks_ties_by_row() -> None:
    sentences = ["ccc", "bb", "aa.", "dd!", "ccc?", "ee"]
    assert match_by_length(sentences, [2, 0, 1], [5, 4, 3]) == [(1, 3), (2, 5), (0, 4)]


def repetitive_table() -> ScoreTable:
    """Every third sentence says a word twice (in two cases), every third one a repeatable one."""
    plain = random_table(24, 2, seed=3)
    assert plain.sentences is not None
    extra = ["Dogs see dogs", "The owls see the", ""]
    texts = [f"{extra[r % 3]} row{r}".strip() for r in range(len(plain.sentences))]
    return ScoreTable(tuple(texts), plain.models, plain.log_probs)


@pytest.mark.parametrize(
    ("repeatable", "banned"),
    [(None, ()), (frozenset({"The"}), (0,)), (frozenset(), (0, 1)), (frozenset({"dogs"}), (1,))],
)
def test_word_repetition_rule_drops_sentences_after_ranking(
    repeatable: frozenset[str] | None, banned: tuple[int, ...]
) -> None:
    """Exhaustive search over the sentences left, whose ranks are those among all sentences."""
    table = repetitive_table()
    usable = frozenset(r for r in range(24) if r % 3 not in banned)
    selection = select_natural(table, per_pair=2, repeatable=repeatable)
    rows = {row for pair in selection.pairs for row in (pair.row_1, pair.row_2)}
    assert rows <= usable
    assert selection.certificate.n_sentences == 24
    assert selection.certificate.objective == pytest.approx(exhaustive(table, 2, usable))


def test_end_marks_do_not_hide_a_repetition() -> None:
    table = ScoreTable(
        ("Dogs see dogs!", "Owls see cats.", "Cats see owls.", "Owls see dogs."),
        ("a", "b"),
        np.array([[-9.0, -1.0], [-8.0, -2.0], [-2.0, -8.0], [-1.0, -9.0]]),
    )
    rows = [
        select_natural(table, per_pair=1, repeatable=rule).pairs[0].row_1
        for rule in (None, frozenset[str]())
    ]
    assert rows == [0, 1]


def test_a_text_that_stands_twice_is_chosen_once() -> None:
    scores = [[-9.0, -1.0], [-9.0, -1.0], [-8.0, -2.0], [-2.0, -8.0], [-1.0, -9.0], [-3.0, -7.0]]
    texts = ("Cats purr.", "Cats purr.", "Dogs bark.", "Owls hoot.", "Owls fly.", "Owls see.")
    pairs = select_natural(ScoreTable(texts, ("a", "b"), np.array(scores)), per_pair=2).pairs
    assert {pair.row_1 for pair in pairs} == {0, 2}


def scores_of(*columns: list[float]) -> ScoreTable:
    return ScoreTable(None, ("rnn", "lstm"), np.array(columns, dtype=np.float64).T)


def test_too_few_admissible_sentences_are_counted_for_each_model_pair() -> None:
    table = scores_of([-3, -2, -1], [-1, -2, -3])
    with pytest.raises(InfeasibleError) as caught:
        select_natural(table, per_pair=3)
    assert "rnn against lstm needs 3 sentences, only 2 usable ones" in str(caught.value)
    assert "lstm against rnn needs 3 sentences, only 2 usable ones" in str(caught.value)


def test_sentences_that_only_run_out_jointly_are_counted_too() -> None:
    """Three sentences are admissible to both sources, which need two each."""
    table = scores_of([-4, -3, -2, -1], [-4, -3, -2, -1])
    with pytest.raises(InfeasibleError, match="lacks 1 of 4 sentences") as caught:
        select_natural(table, per_pair=2)
    assert "lacks 1 of 2 sentences" in str(caught.value)


@pytest.mark.parametrize(
    ("table", "per_pair", "repeatable", "message"),
    [
        (random_table(), 0, None, "ask for at least 1"),
        (random_table(n_models=1), 1, None, "at least two"),
        (scores_of([-2, -1], [-1, -2]), 1, frozenset[str](), "needs the sentences' texts"),
    ],
)
def test_unusable_questions_are_refused(
    table: ScoreTable, per_pair: int, repeatable: frozenset[str] | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        select_natural(table, per_pair=per_pair, repeatable=repeatable)


def pair_forgery(change: Callable[[list[Pair]], None]) -> Forgery:
    def forge(selection: NaturalSelection) -> NaturalSelection:
        pairs = list(selection.pairs)
        change(pairs)
        return replace(selection, pairs=tuple(pairs))

    return forge


def change_first(**fields: object) -> Forgery:
    def change(pairs: list[Pair]) -> None:
        pairs[0] = replace(pairs[0], **fields)  # type: ignore[arg-type]

    return pair_forgery(change)


def certificate_forgery(**fields: object) -> Forgery:
    def forge(selection: NaturalSelection) -> NaturalSelection:
        certificate = replace(selection.certificate, **fields)  # type: ignore[arg-type]
        return replace(selection, certificate=certificate)

    return forge


def swap_roles(pairs: list[Pair]) -> None:
    p = pairs[0]
    pairs[0] = Pair(
        *(p.trial_id, p.model_1, p.model_2, p.sentence_2, p.sentence_1, p.row_2, p.row_1),
        *(p.rank_2_model_1, p.rank_2_model_2, p.rank_1_model_1, p.rank_1_model_2),
    )


def swap_texts(pairs: list[Pair]) -> None:
    pairs[0] = replace(pairs[0], sentence_1=pairs[0].sentence_2, sentence_2=pairs[0].sentence_1)


def use_twice(pairs: list[Pair]) -> None:
    pairs[1] = replace(pairs[0], trial_id="pair-other")


def drop_last(pairs: list[Pair]) -> None:
    pairs.pop()


def match_worse(pairs: list[Pair]) -> None:
    """Give every first sentence of a model pair another second one, in the opposite order."""
    group = sorted(pairs[:4], key=lambda pair: len(pair.sentence_2))
    for place, (one, two) in enumerate(zip(group, reversed(group), strict=True)):
        pairs[place] = replace(
            one,
            sentence_2=two.sentence_2,
            row_2=two.row_2,
            rank_2_model_1=two.rank_2_model_1,
            rank_2_model_2=two.rank_2_model_2,
        )


def raise_price(selection: NaturalSelection) -> NaturalSelection:
    (reject, accept, price), *rest = selection.certificate.prices
    return certificate_forgery(prices=((reject, accept, price + 50), *rest))(selection)


def use_costlier_sentence(selection: NaturalSelection) -> NaturalSelection:
    """Consistent in every way, but not optimal: s1 of the first pair is a free, dearer sentence."""
    table = random_table()
    assert table.sentences is not None
    doubled, first = table.doubled_ranks(), selection.pairs[0]
    used = {row for pair in selection.pairs for row in (pair.row_1, pair.row_2)}
    length = len(first.sentence_1)
    row = next(
        r
        for r in range(len(doubled))
        if r not in used
        and doubled[r, 1] >= len(doubled)
        and doubled[r, 0] > doubled[first.row_1, 0]
        and len(table.sentences[r]) == length
    )
    extra = int(doubled[row, 0] - doubled[first.row_1, 0])
    rank_1, rank_2 = (doubled[row, :2] / (2 * len(doubled))).tolist()
    forged = change_first(
        sentence_1=table.sentences[row], row_1=row, rank_1_model_1=rank_1, rank_1_model_2=rank_2
    )(selection)
    total = selection.certificate.objective_numerator + extra
    return certificate_forgery(objective_numerator=total, objective=total / (2 * len(doubled)))(
        forged
    )


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (change_first(rank_1_model_1=0.001), "the rank under model-0 is .*, not 0.001"),
        (change_first(row_1=10_000), "no such row"),
        (change_first(sentence_1="Never scored."), "not 'Never scored.'"),
        (change_first(model_1="model-9"), "model-9-model-1 has 1 pairs, not 0|has 3 pairs, not 4"),
        (pair_forgery(swap_texts), "the sentence is"),
        (pair_forgery(swap_roles), "below 0.5 where it must be accepted"),
        (pair_forgery(use_twice), "used more than once: row"),
        (pair_forgery(drop_last), "has 3 pairs, not 4"),
        (pair_forgery(match_worse), "lengths differ by"),
        (use_costlier_sentence, "only equal ones are optimal"),
        (raise_price, "its prices prove the bound"),
        (certificate_forgery(objective_numerator=1), "the doubled ranks sum to"),
        (certificate_forgery(objective=0.5), "the objective is"),
        (certificate_forgery(bound_numerator=1), "prove the bound"),
        (certificate_forgery(bound=0.5), "the bound is"),
        (certificate_forgery(status="feasible"), "status 'feasible'"),
        (certificate_forgery(per_pair=3), "for per_pair 3, asked was 4"),
        (certificate_forgery(models=("a", "b", "c")), "for models"),
        (certificate_forgery(n_sentences=59), "for n_sentences 59"),
        (certificate_forgery(repeatable=("the",)), "for repeatable"),
        (certificate_forgery(prices=()), "one for every ordered model pair"),
        (
            lambda s: certificate_forgery(
                prices=tuple((reject, accept, 2**62) for reject, accept, _ in s.certificate.prices)
            )(s),
            "too large to compute with",
        ),
    ],
)
def test_the_verifier_catches(forge: Forgery, message: str) -> None:
    table = random_table()
    selection = select_natural(table, per_pair=4)
    verify_natural(table, selection, per_pair=4)
    with pytest.raises(VerificationError, match=message):
        verify_natural(table, forge(selection), per_pair=4)


def test_the_verifier_catches_a_sentence_that_the_rule_excludes() -> None:
    table = repetitive_table()
    selection = select_natural(table, per_pair=2)
    claimed = certificate_forgery(repeatable=())(selection)
    with pytest.raises(VerificationError, match="the rules about words exclude rows"):
        verify_natural(table, claimed, per_pair=2, repeatable=frozenset())


def test_the_verifier_needs_the_scores_of_the_selection() -> None:
    selection = select_natural(random_table(), per_pair=4)
    table = random_table()
    scores = table.log_probs.copy()
    scores[selection.pairs[0].row_1, 0] = -1.0
    with pytest.raises(VerificationError, match="the rank under model-0"):
        verify_natural(replace(table, log_probs=scores), selection, per_pair=4)


def test_certificate_is_json_with_the_promised_fields(tmp_path: Path) -> None:
    table = repetitive_table()
    for rule in (None, frozenset({"the"})):
        certificate = select_natural(table, per_pair=2, repeatable=rule).certificate
        certificate.save(tmp_path / "new" / "pairs.certificate.json")
        facts = json.loads((tmp_path / "new" / "pairs.certificate.json").read_text())
        promised = "objective bound status solver version tie_rule candidates seconds".split()
        assert list(facts)[: len(promised)] == promised
        assert facts["seconds"] > 0
        assert Certificate.load(tmp_path / "new" / "pairs.certificate.json") == certificate


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"repeatable": null, "models": [], "n": 1}'])
def test_other_files_are_no_certificates(tmp_path: Path, content: str) -> None:
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(InputError, match="is no certificate"):
        Certificate.load(tmp_path / "c.json")
    with pytest.raises(InputError, match="Cannot read"):
        Certificate.load(tmp_path / "nowhere.json")


def test_a_selection_read_back_from_files_verifies(tmp_path: Path) -> None:
    table = random_table()
    selection = select_natural(table, per_pair=4)
    write_pairs(tmp_path / "pairs.csv", selection.pairs)
    selection.certificate.save(tmp_path / "pairs.json")
    again = NaturalSelection(
        read_pairs(tmp_path / "pairs.csv"), Certificate.load(tmp_path / "pairs.json")
    )
    verify_natural(table, again, per_pair=4)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_pairs_come_back_bit_for_bit(tmp_path: Path, suffix: str) -> None:
    pairs = select_natural(random_table(), per_pair=4).pairs
    write_pairs(tmp_path / f"pairs{suffix}", pairs)
    assert [asdict(p) for p in read_pairs(tmp_path / f"pairs{suffix}")] == list(map(asdict, pairs))


def test_columns_of_pairs_csv_are_the_contract(tmp_path: Path) -> None:
    write_pairs(tmp_path / "pairs.csv", [])
    assert (tmp_path / "pairs.csv").read_text() == (
        '"trial_id","model_1","model_2","sentence_1","sentence_2","row_1","row_2",'
        '"rank_1_model_1","rank_1_model_2","rank_2_model_1","rank_2_model_2"\n'
    )
    assert read_pairs(tmp_path / "pairs.csv") == ()


def test_malformed_pairs_are_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    write_pairs(path, select_natural(random_table(), per_pair=1).pairs)
    header, first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([header.replace("row_2", "line_2"), first, *rest]))
    with pytest.raises(InputError, match="no table of pairs: it lacks row_2"):
        read_pairs(path)
    cells = first.split(",")
    path.write_text("\n".join([header, ",".join([*cells[:5], "second", *cells[6:]])]))
    with pytest.raises(InputError, match="row 0: 'second' under row_1 is no whole number"):
        read_pairs(path)
