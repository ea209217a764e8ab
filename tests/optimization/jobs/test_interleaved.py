"""Searches that take turns in one process: the same results, in fewer calls of the networks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from contstim.jobs import InterleavedExecutor, LocalExecutor
from contstim.models.batching import Budget
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.optimization.jobs.question import SearchQuestion
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.store import Store
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.optimization.jobs.studies import Study
from tests.store.trails import entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contstim.jobs import Executor
    from contstim.optimization.jobs.results import TripletResults

NATURALS = tuple(map(Sentence.parse, ("She sleeps well.", "The dogs rest.", "They like books.")))
WORDS = Vocabulary.from_sentences([*NATURALS, Sentence.parse("It never rains here.")])


@pytest.fixture(scope="module", autouse=True)
def _as_on_a_gpu() -> Iterator[None]:
    """Large batches, and one thread, with which tiny networks are quicker."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Budget, "for_device", lambda _device: Budget(16_384))
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def networks(tiny_checkpoint: Callable[[str], Path]) -> Study:
    models = (f"hf:{tiny_checkpoint('bert')}@pll-word-l2r", f"hf:{tiny_checkpoint('gpt2')}")
    question = SearchQuestion(frame="none", per_pair=3, seed=3, restarts=1)
    return Study(models, NATURALS, WORDS, question)


class Run:
    """What a job found, the ways of its searches, and the calls of each network."""

    def __init__(self, study: Study, executor: Executor, path: Path) -> None:
        self.calls: Counter[str] = Counter()
        # Held, so that the job uses these networks
        checkpoints = [
            load_checkpoint(model.removeprefix("hf:").partition("@")[0], Loading(device="cpu"))
            for model in study.models
        ]

        def count(network: Any, _inputs: Any, _output: Any) -> None:
            self.calls[type(network).__name__] += 1

        hooks = [each.model.register_forward_hook(count) for each in checkpoints]
        self.results: TripletResults = study.find(path, executor)
        with Store(path) as store:
            self.steps = entries(store, self.results.searches, {}, "steps")
            self.evaluations = entries(store, self.results.searches, {}, "evaluations")
        for hook in hooks:
            hook.remove()


@pytest.mark.slow
def test_searches_beside_each_other_find_what_they_find_alone(
    networks: Study, tmp_path: Path
) -> None:
    """Witness: one search after the other.

    Results are scored alone, and so equal to the last digit; on the way scores may be rounded
    otherwise.
    """
    one = Run(networks, LocalExecutor(), tmp_path / "one.sqlite")
    several = Run(networks, InterleavedExecutor(3), tmp_path / "several.sqlite")
    again = Run(networks, InterleavedExecutor(3), tmp_path / "again.sqlite")
    assert len(one.results.triplets) >= 2
    assert several.results.triplets == one.results.triplets
    assert several.results.unchanged == one.results.unchanged
    for name, column in one.evaluations.items():
        if name.startswith("log_prob"):
            assert several.evaluations[name] == pytest.approx(column, abs=1e-3, nan_ok=True)
        else:
            assert several.evaluations[name] == column
    # Costs are those of the search itself
    for ours, theirs in zip(several.results.pairs, one.results.pairs, strict=True):
        assert (ours.rows, ours.tokens, ours.searches) == (
            theirs.rows, theirs.tokens, theirs.searches,
        )  # fmt: skip
    # Nothing depends on time: not even digits
    assert again.results.triplets == several.results.triplets
    assert again.evaluations == several.evaluations
    assert again.steps == several.steps
    assert again.calls == several.calls
    # Fewer calls of the network
    for network in ("BertForMaskedLM", "GPT2LMHeadModel"):
        assert several.calls[network] < one.calls[network] * 0.75


@pytest.mark.parametrize("kind", ["study", pytest.param("networks", marks=pytest.mark.slow)])
def test_an_error_in_one_search_leaves_the_others_right(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: one search after the other, none of which fails; of n-gram models and networks."""
    study: Study = request.getfixturevalue(kind)
    one = study.find(tmp_path / "one.sqlite")
    broken = one.triplets[1].natural

    def synthesize(*arguments: Any, **options: Any) -> Any:
        if arguments[2] == broken:
            raise RuntimeError("CUDA error: an illegal address")
        return synthesize_triplet(*arguments, **options)

    monkeypatch.setattr("contstim.optimization.jobs.tasks.synthesize_triplet", synthesize)
    several = study.find(tmp_path / "several.sqlite", InterleavedExecutor(3))
    assert [each.natural for each in several.failures] == [broken.text]
    assert [t for t in one.triplets if t.natural != broken] == [*several.triplets]
