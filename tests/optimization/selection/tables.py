"""Small score tables, reviews and an independent check for tests of selection."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata

from contstim.items.reviews import Decision, Review, Stimulus, undecided_items
from contstim.items.scores import ScoreTable
from contstim.optimization.selection.natural import select_natural
from contstim.optimization.selection.question import NaturalQuestion, NaturalSelection
from contstim.words.sentence import Sentence

WORDS = "cats dogs owls purr bark hoot at in the moon loudly somewhere".split()


def random_table(n_sentences: int = 60, n_models: int = 3, seed: int = 0) -> ScoreTable:
    """Return distinct sentences of various lengths, with scores that include ties."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n_sentences, 1))
    scores = np.round(shared + rng.normal(size=(n_sentences, n_models)), 1) - 20
    texts = [f"Row{r} {' '.join(rng.permutation(WORDS)[: 2 + r % 5])}." for r in range(n_sentences)]
    models = tuple(f"model-{m}" for m in range(n_models))
    return ScoreTable(tuple(map(Sentence.parse, texts)), models, scores)


def repetitive_table() -> ScoreTable:
    """Return sentences; one third repeats `dogs`, one third repeats `the`."""
    plain = random_table(24, 2, seed=3)
    assert plain.sentences is not None
    suffixes = [" Dogs see dogs!", " The owls see the", ""]
    texts = [f"Row{r}{suffixes[r % 3]}" for r in range(len(plain.sentences))]
    return ScoreTable(tuple(map(Sentence.parse, texts)), plain.models, plain.log_probs)


def choose(
    table: ScoreTable,
    *,
    review: Review | None = None,
    excluded: Collection[Sentence] = (),
    **question: Any,
) -> NaturalSelection:
    return select_natural(table, NaturalQuestion(**question), review=review, excluded=excluded)


def make_review(
    stimuli: Iterable[Stimulus], rejected: Collection[str], other_decision: Decision = Decision.KEEP
) -> Review:
    """Return Ann's review, which rejects some items and makes another decision about the others."""
    return Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else other_decision)
            for item in undecided_items(stimuli, "Ann")
        )
    )


def fractional_ranks(log_probs: np.ndarray) -> np.ndarray:
    """Return fractional ranks, (n_models, n_sentences)."""
    return np.stack([rankdata(column) for column in log_probs.T]) / len(log_probs)


def find_least_sum(
    ranks: np.ndarray,
    counts: Mapping[tuple[int, int], int],
    usable: Collection[int],
    *,
    agreeing: bool = False,
) -> float:
    """Return the least sum of fractional ranks over every set; infinite if no set exists.

    `ranks` are fractional, (n_models, n_sentences); `counts` are sentences per (reject, accept).
    """
    sources = [source for source, count in counts.items() if count]

    def minimize(k: int, unused: frozenset[int]) -> float:
        if k == len(sources):
            return 0.0
        reject, accept = sources[k]
        admitted = [s for s in unused if ranks[accept, s] >= 0.5 > ranks[reject, s] - agreeing]
        return min(
            (
                float(ranks[reject, list(chosen)].sum()) + minimize(k + 1, unused - set(chosen))
                for chosen in combinations(admitted, counts[sources[k]])
            ),
            default=np.inf,
        )

    return minimize(0, frozenset(usable))


def check_selection(
    table: ScoreTable, selection: NaturalSelection, excluded: Collection[Sentence] = ()
) -> None:
    """Check the rules and the objective of a selection of one stratum independently.

    This uses the definitions (2023, Eq. 5) and SciPy's ranks, not the code that selects and checks.
    """
    certificate, pairs = selection.certificate, selection.pairs
    question = certificate.question
    assert isinstance(question, NaturalQuestion)
    ranks = np.stack([rankdata(column) for column in table.log_probs.T], axis=1)
    ranks /= len(table.log_probs)
    total = 0.0
    for pair in pairs:
        columns = [table.models.index(model) for model in (pair.model_1, pair.model_2)]
        reported = [pair.rank_1_model_1, pair.rank_1_model_2]
        reported += [pair.rank_2_model_1, pair.rank_2_model_2]
        expected = [ranks[row, column] for row in (pair.row_1, pair.row_2) for column in columns]
        assert reported == pytest.approx(expected, abs=1e-12)
        assert min(expected[1], expected[2]) >= 0.5
        assert question.agreeing or max(expected[0], expected[3]) < 0.5
        total += expected[0] + expected[3]
    assert certificate.objective == pytest.approx(total, abs=1e-9)
    assert certificate.objective == certificate.bound
    counts = Counter((pair.model_1, pair.model_2) for pair in pairs)
    expected_counts = dict.fromkeys(combinations(table.models, 2), question.per_pair)
    expected_counts |= {(first, second): n for first, second, n in question.counts}
    assert counts == Counter({models: n for models, n in expected_counts.items() if n})
    rows = [row for pair in pairs for row in (pair.row_1, pair.row_2)]
    assert len(set(rows)) == len(rows)
    if table.sentences is not None:
        sentences = [table.sentences[row] for row in rows]
        sides = [s for pair in pairs for s in (pair.sentence_1, pair.sentence_2)]
        assert sentences == sides
        assert len({s.bare for s in sentences}) == len(sentences)
        assert not {s.bare for s in sentences} & {s.bare for s in excluded}
