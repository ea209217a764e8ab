"""Interleaved searches in one process: the same results with fewer network calls."""

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
def _gpu_settings() -> Iterator[None]:
    """Use large batches as on a GPU, and one thread, which is faster for tiny networks."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Budget, "for_device", lambda _device: Budget(16_384))
        yield
    torch.set_num_threads(n_threads)


@pytest.fixture(scope="module")
def networks(tiny_checkpoint: Callable[[str], Path]) -> Study:
    models = (f"hf:{tiny_checkpoint('bert')}@pll-word-l2r", f"hf:{tiny_checkpoint('gpt2')}")
    question = SearchQuestion(frame="none", per_pair=3, seed=3, restarts=1)
    return Study(models, NATURALS, WORDS, question)


class Run:
    """A job's results, the trails of its searches, and the number of calls of each network."""

    def __init__(self, study: Study, executor: Executor, path: Path) -> None:
        self.calls: Counter[str] = Counter()
        # References keep these networks cached, so that the job uses them
        checkpoints = [
            load_checkpoint(model.removeprefix("hf:").partition("@")[0], Loading(device="cpu"))
            for model in study.models
        ]

        def count(network: Any, _inputs: Any, _output: Any) -> None:
            self.calls[type(network).__name__] += 1

        hooks = [checkpoint.model.register_forward_hook(count) for checkpoint in checkpoints]
        self.results: TripletResults = study.find(path, executor)
        with Store(path) as store:
            self.steps = entries(store, self.results.searches, {}, "steps")
            self.evaluations = entries(store, self.results.searches, {}, "evaluations")
        for hook in hooks:
            hook.remove()


@pytest.mark.slow
def test_interleaved_searches_find_the_same_triplets(networks: Study, tmp_path: Path) -> None:
    """Witness: the same searches in sequence.

    Final results are scored one sentence at a time, so they are equal to the last digit; scores
    during a search may be rounded differently.
    """
    sequential = Run(networks, LocalExecutor(), tmp_path / "one.sqlite")
    interleaved = Run(networks, InterleavedExecutor(3), tmp_path / "several.sqlite")
    repeated = Run(networks, InterleavedExecutor(3), tmp_path / "again.sqlite")
    assert len(sequential.results.triplets) >= 2
    assert interleaved.results.triplets == sequential.results.triplets
    assert interleaved.results.unchanged == sequential.results.unchanged
    for name, column in sequential.evaluations.items():
        if name.startswith("log_prob"):
            assert interleaved.evaluations[name] == pytest.approx(column, abs=1e-3, nan_ok=True)
        else:
            assert interleaved.evaluations[name] == column
    # A search is charged only its own costs
    for pair, other in zip(interleaved.results.pairs, sequential.results.pairs, strict=True):
        assert (pair.rows, pair.tokens, pair.searches) == (
            other.rows, other.tokens, other.searches,
        )  # fmt: skip
    # Results do not depend on timing, to the last digit
    assert repeated.results.triplets == interleaved.results.triplets
    assert repeated.evaluations == interleaved.evaluations
    assert repeated.steps == interleaved.steps
    assert repeated.calls == interleaved.calls
    for network in ("BertForMaskedLM", "GPT2LMHeadModel"):
        assert interleaved.calls[network] < sequential.calls[network] * 0.75


@pytest.mark.parametrize("kind", ["study", pytest.param("networks", marks=pytest.mark.slow)])
def test_an_error_in_one_search_does_not_affect_the_others(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: sequential searches without the error, for n-gram models and for networks."""
    study: Study = request.getfixturevalue(kind)
    sequential = study.find(tmp_path / "one.sqlite")
    broken = sequential.triplets[1].natural

    def synthesize(*arguments: Any, **options: Any) -> Any:
        if arguments[2] == broken:
            raise RuntimeError("CUDA error: an illegal address")
        return synthesize_triplet(*arguments, **options)

    monkeypatch.setattr("contstim.optimization.jobs.tasks.synthesize_triplet", synthesize)
    interleaved = study.find(tmp_path / "several.sqlite", InterleavedExecutor(3))
    assert [failure.natural for failure in interleaved.failures] == [broken.text]
    assert [t for t in sequential.triplets if t.natural != broken] == [*interleaved.triplets]
