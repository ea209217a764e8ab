"""Sentences scored by workers, also by killed ones, against the same models in this process."""

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
    """Some of them repeated, more than one chunk of distinct ones."""
    return english[: 2 * CHUNK + 60]


CONTEXT = WorkerContext(Loading(device="cpu"), capacity=2)


def names_of(scorers: list[Scorer]) -> list[str]:
    return [scorer.name for scorer in scorers]


def test_workers_answer_as_the_model(specifications: list[str], sentences: list[Sentence]) -> None:
    """Witness: KenLM in this process."""
    loaded = load_scorers(specifications)
    words = [*sentences[0].words, "xyzzy"]
    with remote_scorers(specifications, LocalExecutor(), CONTEXT) as scorers:
        assert names_of(scorers) == names_of(loaded) == ["two", "three"]
        for remote, model in zip(scorers, loaded, strict=True):
            assert remote.convention == model.convention
            assert remote.specification == model.specification
            assert model.training_text is not None
            assert remote.training_text == model.training_text
            for name, items in (
                *((method, sentences) for method in ("scores", "exact", "standard_errors")),
                *((method, sentences) for method in ("unscorable", "token_counts")),
            ):
                for some in (items, items[:1], []):
                    answers = getattr(remote, name)(some), getattr(model, name)(some)
                    np.testing.assert_array_equal(*answers)
                    assert type(answers[0]) is type(answers[1])
            np.testing.assert_array_equal(remote.knows(words), model.knows(words))
            assert remote.tokens_per_word(words, initial=True) is None
            assert remote.vocabulary(3) == model.vocabulary(3)
            assert token_terms(remote, sentences) == token_terms(model, sentences)
        continuations = [Continuation(sentence, 1) for sentence in sentences[:250]]
        np.testing.assert_array_equal(
            score_continuations(scorers, continuations), score_continuations(loaded, continuations)
        )


def test_what_a_model_cannot_do_it_refuses_as_in_this_process(
    tiny_checkpoint: Callable[[str], Path], sentences: list[Sentence]
) -> None:
    """A masked model, which reads from both ends; its float32 scores, chunk for chunk."""
    specification = f"hf:{tiny_checkpoint('bert')}"
    (model,) = load_scorers([specification])
    with remote_scorers([specification], LocalExecutor(), CONTEXT) as (remote,):
        with pytest.raises(ModelError) as ours:
            remote.continuation_log_probs(())  # type: ignore[attr-defined]
        with pytest.raises(ModelError) as theirs:
            model.continuation_log_probs(())  # type: ignore[attr-defined]
        assert str(ours.value) == str(theirs.value)
        some = [Sentence(s.words[:3]) for s in sentences[:2]]
        np.testing.assert_array_equal(remote.scores(some), model.scores(some))
        assert remote.tokens_per_word(["the"], initial=True) is not None


class Struck(ProcessExecutor):
    """Two workers; every so many calls one of them is sent a signal."""

    def __init__(self, sent: signal.Signals, every: int, times: int) -> None:
        super().__init__(2, silence=2)
        self._sent, self._every, self.left, self._sends = sent, every, times, 0

    def send(self, worker: int, task: Any) -> None:
        self._sends += bool(task.fingerprint)
        if task.fingerprint and self.left and self._sends % self._every == 0:
            self.left -= 1
            os.kill(self._processes[worker].pid or 0, self._sent)
        super().send(worker, task)  # after the blow, so that no answer comes


@pytest.mark.parametrize(("sent", "times"), [(signal.SIGKILL, 2), (signal.SIGSTOP, 1)])
def test_workers_that_are_killed_or_stopped_cost_no_score(
    specifications: list[str],
    sentences: list[Sentence],
    tmp_path: Path,
    sent: signal.Signals,
    times: int,
) -> None:
    """Witness: the models in this process."""
    executor, remarks, told = Struck(sent, 2, times), list[str](), dict[str, int]()

    def count(model: Scorer, more: int) -> None:
        told[model.name] = told.get(model.name, 0) + more

    with (
        Store(tmp_path / "scores.sqlite") as store,
        remote_scorers(specifications, executor, CONTEXT, say=remarks.append) as scorers,
    ):
        table = score_sentences(scorers, sentences, store=store, progress=count)
        rows = store.rows("SELECT count(*) FROM score")
    assert not executor.left
    assert not multiprocessing.active_children()
    expected = score_sentences(load_scorers(specifications), sentences)
    np.testing.assert_array_equal(table.log_probs, expected.log_probs)
    distinct = len({*sentences})
    assert told == {"two": distinct, "three": distinct}
    assert rows == [(2 * distinct,)]
    assert len(remarks) >= times
    assert all("is replaced" in remark for remark in remarks)


def test_what_the_store_has_is_not_scored_again(
    specifications: list[str], sentences: list[Sentence], tmp_path: Path
) -> None:
    asked: list[int] = []

    class Counting(LocalExecutor):
        def send(self, worker: int, task: Any) -> None:
            super().send(worker, task)
            if task.fingerprint:
                asked.append(len(task.call.arguments[0]))

    distinct = [*dict.fromkeys(sentences)]
    with Store(tmp_path / "scores.sqlite") as store:
        score_sentences(load_scorers(specifications), distinct[: CHUNK + 7], store=store)
        with remote_scorers(specifications, Counting(), CONTEXT) as scorers:
            first = score_sentences(scorers, sentences, store=store)
            again = score_sentences(scorers, sentences, store=store)
    np.testing.assert_array_equal(first.log_probs, again.log_probs)
    assert sum(asked) == 2 * (len(distinct) - CHUNK - 7)
    # Borders of chunks stay where they would be without anything in the store
    assert asked[0] == min(2 * CHUNK, len(distinct)) - CHUNK - 7


def test_an_error_of_a_model_keeps_the_scores_of_the_others(
    trained: Path, specifications: list[str], sentences: list[Sentence], tmp_path: Path
) -> None:
    changing = tmp_path / "changing.arpa"
    changing.write_bytes((trained / "4gram.arpa").read_bytes())
    given = [f"changing=kenlm:{changing}", *specifications]
    # One model in memory, so that each is loaded again when its turn comes
    with (
        Store(tmp_path / "scores.sqlite") as store,
        remote_scorers(
            given, LocalExecutor(), WorkerContext(Loading(device="cpu"), capacity=1)
        ) as scorers,
    ):
        changing.write_bytes((trained / "2gram.arpa").read_bytes())
        with pytest.raises(ModelError, match="changing has changed since scoring began"):
            score_sentences(scorers, sentences, store=store)
        assert store.rows("SELECT count(*) FROM score") == [(2 * len({*sentences}),)]


def test_a_chunk_that_kills_every_worker_is_named_and_the_others_are_kept(
    specifications: list[str], sentences: list[Sentence], tmp_path: Path
) -> None:
    class Poisoned(ProcessExecutor):
        def send(self, worker: int, task: Any) -> None:
            first = task.fingerprint and sentences[0] in task.call.arguments[0]
            if first and "2gram" in task.model:
                self._processes[worker].kill()
            super().send(worker, task)

    with (
        Store(tmp_path / "scores.sqlite") as store,
        remote_scorers(specifications, Poisoned(2), CONTEXT) as scorers,
    ):
        with pytest.raises(WorkerError) as raised:
            score_sentences(scorers, sentences, store=store)
        (three,) = store.rows(
            "SELECT count(*) FROM score JOIN model ON model.id = score.model WHERE fingerprint = ?",
            (scorers[1].convention.fingerprint,),
        )
    assert three == (len({*sentences}),)
    message = str(raised.value)
    assert message.startswith(f"two: scores of {CHUNK} items from '{sentences[0].text[:10]}")
    assert "failed 3 times: its worker was lost: killed by SIGKILL" in message


def test_models_that_cannot_be_loaded_are_refused(tmp_path: Path) -> None:
    missing = f"kenlm:{tmp_path / 'nothing.arpa'}"
    with (
        pytest.raises(ModelError, match=r"nothing\.arpa"),
        remote_scorers([missing], LocalExecutor(), CONTEXT),
    ):
        pass
    for name in ("a", "b"):
        (tmp_path / f"{name}.arpa").write_text("not a model\n")
    broken = [f"{name}=kenlm:{tmp_path / f'{name}.arpa'}" for name in ("a", "b")]
    with (
        pytest.raises(ModelError, match=r"(?s)2 models failed\..*a: .*b: "),
        remote_scorers(broken, LocalExecutor(), CONTEXT),
    ):
        pass


def tasks_of(sizes: dict[str, int]) -> list[ModelTask]:
    return [
        ModelTask(ModelCall(model, "facts", ()))
        for model, size in sizes.items()
        for _ in range(size)
    ]


@given(
    sizes=st.dictionaries(st.sampled_from("abcd"), st.integers(1, 6), min_size=1),
    workers=st.integers(1, 4),
    chance=st.randoms(use_true_random=False),
)
def test_every_task_is_received_once(sizes: dict[str, int], workers: int, chance: Any) -> None:
    """Witness: the tasks themselves. Attempts beyond the third never come."""
    tasks, received = tasks_of(sizes), list[ModelTask]()
    queue = ModelTaskQueue(tasks, lambda task, _result: received.append(task))
    loaded: dict[int, tuple[str, ...]] = dict.fromkeys(range(workers), ())
    out: list[tuple[int, ModelTask]] = []
    attempts = dict.fromkeys(tasks, 0)
    failing = 0.6 if chance.random() < 0.3 else 0.1
    while not queue.finished:
        idle = {*range(workers)} - {worker for worker, _ in out}
        if idle and (taken := queue.take(loaded[min(idle)])) is not None:
            loaded[min(idle)] = (taken.model,)
            out.append((min(idle), taken))
            continue
        _, task = out.pop(chance.randrange(len(out)))
        if chance.random() < failing:
            attempts[task] += 1
            queue.failed(task, WorkerError("lost"), attempts[task])
        else:
            queue.done(task, None)
    assert max(attempts.values()) <= 3
    assert len({*received}) == len(received)
    assert queue.take(()) is None
    assert {*queue.errors} == {task.model for task in tasks if attempts[task] == 3}
    assert {task for task in tasks if task.model not in queue.errors} <= {*received}


def test_a_model_that_refuses_is_given_up_at_once() -> None:
    queue = ModelTaskQueue(tasks_of({"a": 3, "b": 1}), lambda _task, _result: None)
    task = queue.take(("a",))
    assert task is not None
    queue.failed(task, ModelError("too long"), 1)
    assert str(queue.errors["a"]) == "too long"
    other = queue.take(("a",))
    assert other is not None
    assert other.model == "b"
    queue.failed(other, ContstimError("RuntimeError: CUDA error"), 1)
    assert queue.take(()) is other  # nobody foresaw it, and another worker may do it
