"""Scores computed by workers, some of them killed, against the same models in this process."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import ContstimError, ModelError, WorkerError
from contstim.jobs import LocalExecutor, ProcessExecutor
from contstim.jobs.model_workers import ModelTask, ModelTaskQueue, remote_scorers
from contstim.jobs.worker_context import WorkerContext
from contstim.models.base import Continuation, Scorer
from contstim.models.catalog import load_scorers
from contstim.models.loading import Loading
from contstim.models.remote import CHUNK, ModelCall
from contstim.models.scoring import score_continuations, score_sentences, token_terms
from contstim.store import Store
from contstim.words.sentence import Sentence


@pytest.fixture(scope="module")
def specifications(trained: Path) -> list[str]:
    return [f"{name}=kenlm:{trained / f'{n}gram.arpa'}" for name, n in (("two", 2), ("three", 3))]


@pytest.fixture(scope="module")
def sentences(english: list[Sentence]) -> list[Sentence]:
    """More than one chunk of distinct sentences, and some repetitions."""
    return english[: 2 * CHUNK + 60]


CONTEXT = WorkerContext(Loading(device="cpu"), capacity=2)


def model_names(scorers: list[Scorer]) -> list[str]:
    return [scorer.name for scorer in scorers]


def test_workers_return_the_results_of_local_models(
    specifications: list[str], sentences: list[Sentence]
) -> None:
    """Witness: KenLM in this process."""
    loaded = load_scorers(specifications)
    words = [*sentences[0].words, "xyzzy"]
    with remote_scorers(specifications, LocalExecutor(), CONTEXT) as scorers:
        assert model_names(scorers) == model_names(loaded) == ["two", "three"]
        for remote, model in zip(scorers, loaded, strict=True):
            assert remote.convention == model.convention
            assert remote.specification == model.specification
            assert model.training_text is not None
            assert remote.training_text == model.training_text
            for method_name, items in (
                *((method, sentences) for method in ("scores", "exact", "standard_errors")),
                *((method, sentences) for method in ("unscorable", "token_counts")),
            ):
                for batch in (items, items[:1], []):
                    results = [getattr(scorer, method_name)(batch) for scorer in (remote, model)]
                    np.testing.assert_array_equal(*results)
                    assert type(results[0]) is type(results[1])
            np.testing.assert_array_equal(remote.knows(words), model.knows(words))
            assert remote.tokens_per_word(words, initial=True) is None
            assert remote.vocabulary(3) == model.vocabulary(3)
            assert token_terms(remote, sentences) == token_terms(model, sentences)
        continuations = [Continuation(sentence, 1) for sentence in sentences[:250]]
        np.testing.assert_array_equal(
            score_continuations(scorers, continuations), score_continuations(loaded, continuations)
        )


def test_unsupported_methods_raise_the_error_of_the_model(
    tiny_checkpoint: Callable[[str], Path], sentences: list[Sentence]
) -> None:
    """With a masked model in float32, which has no probabilities of continuations."""
    specification = f"hf:{tiny_checkpoint('bert')}"
    (model,) = load_scorers([specification])
    with remote_scorers([specification], LocalExecutor(), CONTEXT) as (remote,):
        with pytest.raises(ModelError) as remote_error:
            remote.continuation_log_probs(())  # type: ignore[attr-defined]
        with pytest.raises(ModelError) as local_error:
            model.continuation_log_probs(())  # type: ignore[attr-defined]
        assert str(remote_error.value) == str(local_error.value)
        short_sentences = [Sentence(s.words[:3]) for s in sentences[:2]]
        np.testing.assert_array_equal(remote.scores(short_sentences), model.scores(short_sentences))
        assert remote.tokens_per_word(["the"], initial=True) is not None


class SignallingExecutor(ProcessExecutor):
    """An executor with two workers that sends a signal to a worker every `interval` calls."""

    def __init__(self, number: signal.Signals, interval: int, times: int) -> None:
        super().__init__(2, silence=2)
        self._number, self._interval, self.remaining, self._calls = number, interval, times, 0

    def send(self, worker: int, task: Any) -> None:
        self._calls += bool(task.fingerprint)
        if task.fingerprint and self.remaining and self._calls % self._interval == 0:
            self.remaining -= 1
            os.kill(self._processes[worker].pid or 0, self._number)
        super().send(worker, task)  # after the signal, so that the worker does not reply


@pytest.mark.parametrize(("number", "times"), [(signal.SIGKILL, 2), (signal.SIGSTOP, 1)])
def test_killed_and_stopped_workers_lose_no_scores(
    specifications: list[str],
    sentences: list[Sentence],
    tmp_path: Path,
    number: signal.Signals,
    times: int,
) -> None:
    """Witness: the models in this process."""
    executor = SignallingExecutor(number, 2, times)
    remarks, n_scores = list[str](), dict[str, int]()

    def count(model: Scorer, increment: int) -> None:
        n_scores[model.name] = n_scores.get(model.name, 0) + increment

    with (
        Store(tmp_path / "scores.sqlite") as store,
        remote_scorers(specifications, executor, CONTEXT, say=remarks.append) as scorers,
    ):
        table = score_sentences(scorers, sentences, store=store, progress=count)
        rows = store.rows("SELECT count(*) FROM score")
    assert not executor.remaining
    assert not multiprocessing.active_children()
    expected = score_sentences(load_scorers(specifications), sentences)
    np.testing.assert_array_equal(table.log_probs, expected.log_probs)
    n_distinct = len({*sentences})
    assert n_scores == {"two": n_distinct, "three": n_distinct}
    assert rows == [(2 * n_distinct,)]
    assert len(remarks) >= times
    assert all("is replaced" in remark for remark in remarks)


def test_stored_scores_are_not_computed_again(
    specifications: list[str], sentences: list[Sentence], tmp_path: Path
) -> None:
    batch_sizes: list[int] = []

    class CountingExecutor(LocalExecutor):
        def send(self, worker: int, task: Any) -> None:
            super().send(worker, task)
            if task.fingerprint:
                batch_sizes.append(len(task.call.arguments[0]))

    distinct = [*dict.fromkeys(sentences)]
    with Store(tmp_path / "scores.sqlite") as store:
        score_sentences(load_scorers(specifications), distinct[: CHUNK + 7], store=store)
        with remote_scorers(specifications, CountingExecutor(), CONTEXT) as scorers:
            first_table = score_sentences(scorers, sentences, store=store)
            second_table = score_sentences(scorers, sentences, store=store)
    np.testing.assert_array_equal(first_table.log_probs, second_table.log_probs)
    assert sum(batch_sizes) == 2 * (len(distinct) - CHUNK - 7)
    # Chunks are the same as with an empty store
    assert batch_sizes[0] == min(2 * CHUNK, len(distinct)) - CHUNK - 7


def test_scores_of_other_models_are_stored_after_an_error(
    trained: Path, specifications: list[str], sentences: list[Sentence], tmp_path: Path
) -> None:
    model_path = tmp_path / "changing.arpa"
    model_path.write_bytes((trained / "4gram.arpa").read_bytes())
    all_specifications = [f"changing=kenlm:{model_path}", *specifications]
    # With one model in memory, every model is loaded again at its turn
    with (
        Store(tmp_path / "scores.sqlite") as store,
        remote_scorers(
            all_specifications, LocalExecutor(), WorkerContext(Loading(device="cpu"), capacity=1)
        ) as scorers,
    ):
        model_path.write_bytes((trained / "2gram.arpa").read_bytes())
        with pytest.raises(ModelError, match="changing has changed since scoring began"):
            score_sentences(scorers, sentences, store=store)
        assert store.rows("SELECT count(*) FROM score") == [(2 * len({*sentences}),)]


def test_error_names_the_chunk_that_kills_workers(
    specifications: list[str], sentences: list[Sentence], tmp_path: Path
) -> None:
    class PoisonedExecutor(ProcessExecutor):
        def send(self, worker: int, task: Any) -> None:
            has_first_sentence = task.fingerprint and sentences[0] in task.call.arguments[0]
            if has_first_sentence and "2gram" in task.model:
                self._processes[worker].kill()
            super().send(worker, task)

    with (
        Store(tmp_path / "scores.sqlite") as store,
        remote_scorers(specifications, PoisonedExecutor(2), CONTEXT) as scorers,
    ):
        with pytest.raises(WorkerError) as raised:
            score_sentences(scorers, sentences, store=store)
        (n_scores,) = store.rows(
            "SELECT count(*) FROM score JOIN model ON model.id = score.model WHERE fingerprint = ?",
            (scorers[1].convention.fingerprint,),
        )
    assert n_scores == (len({*sentences}),)
    message = str(raised.value)
    assert message.startswith(f"two: scores of {CHUNK} items from '{sentences[0].text[:10]}")
    assert "failed 3 times: its worker was lost: killed by SIGKILL" in message


def test_unreadable_models_are_refused(tmp_path: Path) -> None:
    missing_model = f"kenlm:{tmp_path / 'nothing.arpa'}"
    with (
        pytest.raises(ModelError, match=r"nothing\.arpa"),
        remote_scorers([missing_model], LocalExecutor(), CONTEXT),
    ):
        pass
    for name in ("a", "b"):
        (tmp_path / f"{name}.arpa").write_text("not a model\n")
    broken_models = [f"{name}=kenlm:{tmp_path / f'{name}.arpa'}" for name in ("a", "b")]
    with (
        pytest.raises(ModelError, match=r"(?s)2 models failed\..*a: .*b: "),
        remote_scorers(broken_models, LocalExecutor(), CONTEXT),
    ):
        pass


def make_tasks(n_tasks_by_model: dict[str, int]) -> list[ModelTask]:
    return [
        ModelTask(ModelCall(model, "facts", ()))
        for model, n_tasks in n_tasks_by_model.items()
        for _ in range(n_tasks)
    ]


@given(
    n_tasks=st.dictionaries(st.sampled_from("abcd"), st.integers(1, 6), min_size=1),
    workers=st.integers(1, 4),
    rng=st.randoms(use_true_random=False),
)
def test_every_task_is_received_once(n_tasks: dict[str, int], workers: int, rng: Any) -> None:
    """A task is attempted at most three times. Witness: the tasks themselves."""
    tasks, received = make_tasks(n_tasks), list[ModelTask]()
    queue = ModelTaskQueue(tasks, lambda task, _result: received.append(task))
    loaded: dict[int, tuple[str, ...]] = dict.fromkeys(range(workers), ())
    running_tasks: list[tuple[int, ModelTask]] = []
    attempts = dict.fromkeys(tasks, 0)
    failure_rate = 0.6 if rng.random() < 0.3 else 0.1
    while not queue.finished:
        idle = {*range(workers)} - {worker for worker, _ in running_tasks}
        if idle and (next_task := queue.take(loaded[min(idle)])) is not None:
            loaded[min(idle)] = (next_task.model,)
            running_tasks.append((min(idle), next_task))
            continue
        _, task = running_tasks.pop(rng.randrange(len(running_tasks)))
        if rng.random() < failure_rate:
            attempts[task] += 1
            queue.failed(task, WorkerError("lost"), attempts[task])
        else:
            queue.done(task, None)
    assert max(attempts.values()) <= 3
    assert len({*received}) == len(received)
    assert queue.take(()) is None
    assert {*queue.errors} == {task.model for task in tasks if attempts[task] == 3}
    assert {task for task in tasks if task.model not in queue.errors} <= {*received}


def test_tasks_of_a_model_end_at_its_first_model_error() -> None:
    queue = ModelTaskQueue(make_tasks({"a": 3, "b": 1}), lambda _task, _result: None)
    task = queue.take(("a",))
    assert task is not None
    queue.failed(task, ModelError("too long"), 1)
    assert str(queue.errors["a"]) == "too long"
    other_task = queue.take(("a",))
    assert other_task is not None
    assert other_task.model == "b"
    queue.failed(other_task, ContstimError("RuntimeError: CUDA error"), 1)
    assert queue.take(()) is other_task  # an unexpected error: another worker may succeed
