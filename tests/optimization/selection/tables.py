"""Small score tables that several tests of selection ask about."""

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
    """Distinct sentences of various lengths, scores that tie now and then."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n_sentences, 1))
    scores = np.round(shared + rng.normal(size=(n_sentences, n_models)), 1) - 20
    texts = [f"Row{r} {' '.join(rng.permutation(WORDS)[: 2 + r % 5])}." for r in range(n_sentences)]
    return ScoreTable(
        tuple(map(Sentence.parse, texts)), tuple(f"model-{m}" for m in range(n_models)), scores
    )


def repetitive_table() -> ScoreTable:
    """Every third sentence says a word twice, before its end mark, every third one `the`."""
    plain = random_table(24, 2, seed=3)
    assert plain.sentences is not None
    extra = [" Dogs see dogs!", " The owls see the", ""]
    texts = [f"Row{r}{extra[r % 3]}" for r in range(len(plain.sentences))]
    return ScoreTable(tuple(map(Sentence.parse, texts)), plain.models, plain.log_probs)


def choose(
    table: ScoreTable,
    *,
    review: Review | None = None,
    excluded: Collection[Sentence] = (),
    **question: Any,
) -> NaturalSelection:
    return select_natural(table, NaturalQuestion(**question), review=review, excluded=excluded)


def reviewed(
    stimuli: Iterable[Stimulus], rejected: Collection[str], others: Decision = Decision.KEEP
) -> Review:
    """Ann's review, which rejects some items and has another decision about the others."""
    return Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else others)
            for item in undecided_items(stimuli, "Ann")
        )
    )


def fractional(log_probs: np.ndarray) -> np.ndarray:
    """(n_models, n_sentences)."""
    return np.stack([rankdata(column) for column in log_probs.T]) / len(log_probs)


def least_sum(
    ranks: np.ndarray,
    counts: Mapping[tuple[int, int], int],
    usable: Collection[int],
    *,
    agreeing: bool = False,
) -> float:
    """The least sum of fractional ranks by trying every set; infinite where there is none.

    `ranks` are fractional, (n_models, n_sentences); `counts` are sentences for (reject, accept).
    """
    sources = [source for source, count in counts.items() if count]

    def least(k: int, free: frozenset[int]) -> float:
        if k == len(sources):
            return 0.0
        reject, accept = sources[k]
        admitted = [s for s in free if ranks[accept, s] >= 0.5 > ranks[reject, s] - agreeing]
        return min(
            (
                float(ranks[reject, list(some)].sum()) + least(k + 1, free - set(some))
                for some in combinations(admitted, counts[sources[k]])
            ),
            default=np.inf,
        )

    return least(0, frozenset(usable))


def recount(
    table: ScoreTable, selection: NaturalSelection, excluded: Collection[Sentence] = ()
) -> None:
    """A second account of what a selection of one stratum must keep: an oracle for tests.

    Written from the definitions (2023, Eq. 5), with the ranks of SciPy, and apart from the code
    that selects and checks.
    """
    certificate, pairs = selection.certificate, selection.pairs
    question = certificate.question
    assert isinstance(question, NaturalQuestion)
    ranks = np.stack([rankdata(column) for column in table.log_probs.T], axis=1)
    ranks /= len(table.log_probs)
    total = 0.0
    for pair in pairs:
        one, two = table.models.index(pair.model_1), table.models.index(pair.model_2)
        stated = [pair.rank_1_model_1, pair.rank_1_model_2]
        stated += [pair.rank_2_model_1, pair.rank_2_model_2]
        true = [ranks[row, model] for row in (pair.row_1, pair.row_2) for model in (one, two)]
        assert stated == pytest.approx(true, abs=1e-12)
        assert min(true[1], true[2]) >= 0.5
        assert question.agreeing or max(true[0], true[3]) < 0.5
        total += true[0] + true[3]
    assert certificate.objective == pytest.approx(total, abs=1e-9)
    assert certificate.objective == certificate.bound
    has = Counter((pair.model_1, pair.model_2) for pair in pairs)
    needs = dict.fromkeys(combinations(table.models, 2), question.per_pair)
    needs |= {(first, second): n for first, second, n in question.counts}
    assert has == Counter({models: n for models, n in needs.items() if n})
    rows = [row for pair in pairs for row in (pair.row_1, pair.row_2)]
    assert len(set(rows)) == len(rows)
    if table.sentences is not None:
        chosen = [table.sentences[row] for row in rows]
        sides = [s for pair in pairs for s in (pair.sentence_1, pair.sentence_2)]
        assert chosen == sides
        assert len({s.bare for s in chosen}) == len(chosen)
        assert not {s.bare for s in chosen} & {s.bare for s in excluded}
