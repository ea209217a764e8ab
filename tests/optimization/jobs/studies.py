"""Studies for tests: searches between n-gram models, and fake searches."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contstim.items.stimuli import Triplet, content_id
from contstim.jobs import LocalExecutor
from contstim.models.base import Convention, LanguageModel
from contstim.models.loading import Loading
from contstim.models.specifications import parse_models
from contstim.optimization.jobs.question import SearchQuestion
from contstim.optimization.jobs.results import TripletResults
from contstim.optimization.jobs.tasks import (
    InspectionTask,
    ModelProfile,
    SearchContext,
    TripletTask,
)
from contstim.optimization.jobs.triplets import find_triplets
from contstim.reporter import Reporter
from contstim.store import Result, Store
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

NOUNS = tuple(f"noun{n}" for n in range(61))
NATURALS = tuple(
    Sentence((noun.capitalize(), f"verb{n % 7}", next_noun))
    for n, (noun, next_noun) in enumerate(pairwise(NOUNS))
)
MODELS = tuple(f"kenlm:{letter}.arpa" for letter in "cabd")
"""Missing files, for fake searches only."""


class CallbackReporter(Reporter):
    """Passes messages and the number of finished searches to functions."""

    def __init__(self, say: Callable[[str], None], progress: Callable[[int, int], None]) -> None:
        self._say, self._progress = say, progress

    def say(self, text: str) -> None:
        self._say(text)

    def progress(self, what: str, done: float, total: float | None, note: str = "") -> None:
        del what, note
        self._progress(int(done), int(total or 0))


@dataclass(frozen=True)
class Study:
    """All settings that determine the triplets of a study."""

    models: tuple[str, ...] = MODELS[:3]
    sentences: tuple[Sentence, ...] = NATURALS
    vocabulary: Vocabulary | None = None
    question: SearchQuestion = field(default_factory=SearchQuestion)

    def with_values(self, **values: Any) -> Study:
        """Return a copy with other values of the study or of its question."""
        study_values = {
            name: values.pop(name)
            for name in ("models", "sentences", "vocabulary")
            if name in values
        }
        return replace(self, **study_values, question=replace(self.question, **values))

    def find(
        self,
        path: Path,
        executor: Any = None,
        *,
        say: Callable[[str], None] = lambda _text: None,
        progress: Callable[[int, int], None] = lambda _settled, _total: None,
        **options: Any,
    ) -> TripletResults:
        with Store(path) as store:
            return find_triplets(
                self.question,
                parse_models(self.models),
                self.sentences,
                store,
                executor or LocalExecutor(),
                self.context,
                reporter=CallbackReporter(say, progress),
                **options,
            )

    @property
    def context(self) -> SearchContext:
        return SearchContext(
            Loading(device="cpu"),
            vocabulary=self.vocabulary,
            allow_unknown=self.question.allow_unknown,
        )


WORDS = Vocabulary(
    tuple(sentence.words[0] for sentence in NATURALS), (*NOUNS, *(f"verb{n}" for n in range(7)))
)
FAKE_STUDY = Study(vocabulary=WORDS, question=SearchQuestion(recipe="golan2023", per_pair=4))


class FakeSearches:
    """Searches that take no time and whose outcomes depend only on their definition.

    Some natural sentences are inadmissible for some pairs, and some searches find no triplet.

    Attributes:
        tasks: all searches so far.
        fingerprints: fingerprints of models whose content differs from their name.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tasks: list[TripletTask] = []
        self.fingerprints: Mapping[str, str] = {}
        # Outcomes depend on the keys of searches, which a new version would change
        monkeypatch.setattr("contstim.optimization.jobs.tasks.VERSION", 1)
        monkeypatch.setattr(TripletTask, "perform", lambda task, _context: self._search(task))
        monkeypatch.setattr(InspectionTask, "perform", lambda *arguments: self._inspect(*arguments))

    def _inspect(self, task: InspectionTask, context: SearchContext) -> ModelProfile:
        fingerprint = self.fingerprints.get(task.model, task.model)
        return ModelProfile(Convention("rule", "", True, fingerprint), context.vocabulary)

    def _search(self, task: TripletTask) -> Result:
        self.tasks.append(task)
        return fake_result(task)


def fake_result(task: TripletTask) -> Result:
    """Return the result of a fake search."""
    if random.Random(f"{task.natural.text} {task.fingerprints}").random() < 0.15:
        return task.result("inadmissible", "impossible: as it happens")
    rng = random.Random(task.key)
    words = [word for word in NOUNS[:6] if word not in task.question.excluded]
    synthetic = [task.natural.replace(2, rng.choice(words)) for _ in range(2)]
    if rng.random() < 0.05:
        synthetic[0] = task.natural
    drops = (rng.random(), rng.random())
    triplet = Triplet(
        content_id("triplet", *task.models, task.natural, *synthetic),
        task.models[0],
        task.models[1],
        task.natural,
        synthetic[0],
        synthetic[1],
        log_prob_natural_model_1=-1.0,
        log_prob_natural_model_2=-2.0,
        log_prob_synthetic_1_model_1=-1.0 - drops[0],
        log_prob_synthetic_1_model_2=-2.0,
        log_prob_synthetic_2_model_1=-1.0,
        log_prob_synthetic_2_model_2=-2.0 - drops[1],
        controversiality=sum(drops),
    )
    trails = tuple(
        {
            "accept": accept,
            "reject": reject,
            "costs": {accept: (1, 8, 1)},
            "steps": [],
            "evaluations": [],
            "searches": [(1, -1.0, 0.0, 3, 1, 8)],
        }
        for reject, accept in (task.models, task.models[::-1])
    )
    return task.result("found", triplet.equality_note, triplet, trails)


def seed_of(seed: int, models: Sequence[LanguageModel], natural: Sentence) -> int:
    """Return the seed of a search, from its definition."""
    parts = (str(seed), *(model.convention.fingerprint for model in models), natural.text)
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return int.from_bytes(digest[:7], "big")
