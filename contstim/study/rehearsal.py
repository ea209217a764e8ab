"""A study in small: a few seconds of everything that takes long, in a temporary folder.

    a sample of each text ──> models trained briefly ──> scores of some sentences ──> a few searches
                     └──────> vocabulary, natural sentences ─────────┘

What a study has already is taken from there and only read. All that the rehearsal writes is thrown
away; what remains is how fast things went.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field, replace
from itertools import combinations, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from contstim.corpus import read_lines, read_sentences
from contstim.errors import ContstimError
from contstim.files import write_text
from contstim.models.specifications import parse_specification
from contstim.steps.text_settings import SentenceSettings, VocabularySettings
from contstim.steps.triplets import TripletSettings
from contstim.steps.watching import SILENT
from contstim.study.places import STORE, StudyFiles, part_of, present
from contstim.study.sections import SentencesSection, TripletsSection, VocabularySection
from contstim.study.study import NgramSettings, embedded_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contstim.models.base import LanguageModel, Scorer
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.speed import SearchSpeed
    from contstim.sentence import Sentence
    from contstim.steps.watching import Watcher
    from contstim.study.study import ModelTraining, Study, StudyModel
    from contstim.vocabulary import Vocabulary

_Result = TypeVar("_Result")

MOST_SECONDS = 60.0
"""How long all measurements together take, about; loading models not counted."""

_OF_MODEL, _OF_PAIR = 3.0, 5.0  # seconds of measurement, where that is within MOST_SECONDS
_CHARACTERS = 1_000_000  # of a text; some ten thousand sentences
_EMBEDDED = 1_000  # sentences of the embedded English
_LARGEST_BLOCK = 512  # sentences scored at once


@dataclass(frozen=True)
class TextSample:
    """The beginning of a text, in a file of its own.

    Attributes:
        path: of the file.
        share: of the text, about; 1 for all of it.
        fixed: seconds that the text takes to be written, however long it is.
        seconds: that a text of this length takes besides; 0 where it is there already.
    """

    path: Path
    share: float
    fixed: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class ScoringSpeed:
    """Speed of a model's scoring on this machine.

    Attributes:
        load: seconds in which it is loaded and, after its scores, dropped.
        sentence: seconds for a sentence of the study's length.
        stored: how many of the natural sentences have their score already.
    """

    load: float
    sentence: float
    stored: int


@dataclass
class Speeds:
    """Measurements of a rehearsal; empty where nothing had to be measured.

    Attributes:
        texts: seconds to write each embedded text, by the name of the stage.
        training: seconds to train each model that is to be trained, by name.
        vocabulary: seconds to choose the words.
        sentences: seconds to find natural sentences.
        natural: how many natural sentences there are; None where that is not known.
        exact: whether that is counted, and not estimated from a sample.
        scoring: by the model's name.
        scores: of the natural sentences that were scored meanwhile, by the model's name.
        searches: by the names of two models.
        settled: triplets that have been found already and stay, likewise.
        words: different words of the vocabulary that count under a cap on words, at least.
        words_a_sentence: words of a natural sentence, on average, that count under such a cap.
        cautions: what could not be done in the rehearsal, and so will not be in the study.
        elapsed: seconds that the rehearsal took.
    """

    texts: dict[str, float] = field(default_factory=dict)
    training: dict[str, float] = field(default_factory=dict)
    vocabulary: float | None = None
    sentences: float | None = None
    natural: int | None = None
    exact: bool = False
    scoring: dict[str, ScoringSpeed] = field(default_factory=dict)
    scores: dict[str, dict[Sentence, float]] = field(default_factory=dict)
    searches: dict[tuple[str, str], SearchSpeed] = field(default_factory=dict)
    settled: dict[tuple[str, str], int] = field(default_factory=dict)
    words: int | None = None
    words_a_sentence: float | None = None
    cautions: list[str] = field(default_factory=list)
    elapsed: float = 0.0


def rehearse(
    study: Study,
    undone: Iterable[str],
    *,
    triplets: Path | None = None,
    most_seconds: float = MOST_SECONDS,
    watch: Watcher = SILENT,
) -> Speeds:
    """Do a little of each stage that takes long, and measure it.

    The current folder is the study's. Nothing is written into it.

    Args:
        study: as `read_study` reads it.
        undone: the names of the stages that a run would do.
        triplets: where triplets are kept as they come; None for nowhere.
        most_seconds: how long all measurements together take, about.
        watch: told how far it is.
    """
    with (
        TemporaryDirectory(prefix="contstim-plan-") as folder,
        watch.working("measuring") as progress,
    ):
        rehearsal = _Rehearsal(study, frozenset(undone), Path(folder), most_seconds, progress)
        began = perf_counter()
        rehearsal.run()
        if triplets is not None and triplets.exists():
            rehearsal.count_settled(triplets)
        rehearsal.speeds.elapsed = perf_counter() - began
        return rehearsal.speeds


class _Rehearsal:
    def __init__(
        self,
        study: Study,
        undone: frozenset[str],
        folder: Path,
        most_seconds: float,
        progress: Callable[[int, int], None],
    ) -> None:
        self.study = study
        self.files = StudyFiles(study)
        self.undone = undone
        self.folder = folder
        self.speeds = Speeds()
        self._samples: dict[Path, TextSample] = {}
        self._failed: set[str] = set()  # models that cannot be trained, loaded or used
        names = [model.name for model in study.models]
        self.pairs = list(combinations(names, 2)) if "triplets" in undone else []
        full = _OF_MODEL * len(names) + _OF_PAIR * len(self.pairs)
        self._scale = min(1.0, most_seconds / full) if full else 1.0
        self._progress = progress
        self._total = 3 + 2 * len(names) + len(self.pairs)
        self._steps = 0

    def run(self) -> None:
        """Do everything in order, each with what came of the one before."""
        for model in self.study.models:
            if f"model {model.name}" in self.undone and model.training is not None:
                self._try(f"[models] {model.name}", self._train, model)
            self._advance()
        vocabulary = self._vocabulary()
        self._advance()
        naturals = self._naturals(vocabulary)
        self._advance()
        if naturals:
            self._score(naturals)
            if self.pairs:
                self._search(naturals, vocabulary)

    def _advance(self) -> None:
        self._steps += 1
        self._progress(self._steps, self._total)

    def _try(
        self, about: str, measure: Callable[..., _Result], *arguments: object
    ) -> _Result | None:
        """Result of a measurement; None, and a caution, where it fails as the study would."""
        try:
            return measure(*arguments)
        except ContstimError as error:
            text = str(error)
            for path, sample in self._samples.items():
                text = text.replace(str(sample.path), str(path))
            self.speeds.cautions.append(f"{about}: {text}")
            return None

    def _sample(
        self, stage: str, text: Path, embedded: str | None, words: int | None
    ) -> TextSample:
        """The beginning of a text, of the embedded English made anew where it is not there yet."""
        if text in self._samples:
            return self._samples[text]
        out = self.folder / f"{stage.replace(' ', '-')}.txt"
        asked = embedded_text(embedded or "")
        if asked is not None and (stage in self.undone or not text.exists()):
            from contstim.english import generate

            began = perf_counter()
            generate(1, seed=self.study.seed, words=words)  # the grammar is prepared once
            prepared = perf_counter()
            number = min(asked.sentences, _EMBEDDED)
            some = generate(number, seed=self.study.seed + (words is not None), words=words)
            write_text(out, "".join(f"{sentence.text}\n" for sentence in some))
            share = number / asked.sentences
            seconds = perf_counter() - prepared
            sample = TextSample(out, share, prepared - began, seconds)
            if stage in self.undone:
                self.speeds.texts[stage] = sample.fixed + seconds / share
        else:
            lines, size = [], 0
            for line in read_lines(text):
                lines.append(line)
                size += len(line.encode()) + 1
                if size >= _CHARACTERS:
                    break
            write_text(out, "".join(f"{line}\n" for line in lines))
            whole = 1.0 if size < _CHARACTERS else size / max(text.stat().st_size, size)
            sample = TextSample(out, whole)
        self._samples[text] = sample
        return sample

    def _training_sample(self) -> TextSample | None:
        text = self.files.training_text
        if text is None:
            return None
        return self._sample("text training", text, self.study.texts.training, None)

    def _train(self, model: StudyModel) -> None:
        training = model.training
        if training is None:
            return
        own = training.place.text
        if own is None:
            sample = self._training_sample()
        else:
            sample = self._sample(f"text of {model.name}", Path(own), None, None)
        if sample is None:
            return
        out = self._moved_path(model.files[0])
        try:
            self.speeds.training[model.name] = self._trained(training, sample, out)
        except ContstimError:
            self._failed.add(model.name)
            raise

    def _trained(self, training: ModelTraining, sample: TextSample, out: Path) -> float:
        """Train briefly; how many seconds the whole training takes."""
        prose = self.files.prose(self.files.text_of(training))
        settings, network = training.settings, training.network
        began = perf_counter()
        if settings is None or isinstance(network, NgramSettings):
            from contstim.steps.training import train_ngram_model

            order = network.order if isinstance(network, NgramSettings) else 1
            train_ngram_model(sample.path, out, order=order, prose=prose)
            return (perf_counter() - began) / sample.share
        from contstim.models.training.speed import train_briefly

        imported = perf_counter() - began
        sentences = list(read_sentences(sample.path, prose=prose))
        speed = train_briefly(
            network,
            sentences,
            out,
            settings,
            seconds=_OF_MODEL / 2 * self._scale,
            device=training.place.device,
            precision=training.place.precision,
        )
        return imported + speed.seconds(round(len(sentences) / sample.share))

    def _moved_path(self, path: Path) -> Path:
        """Path of a model of the study in the rehearsal."""
        return self.folder / "models" / path.name

    def _moved(self, specification: str) -> str:
        """A specification with the places of models that were trained briefly."""
        places = {
            parse_specification(model.specification).location: model
            for model in self.study.models
            if model.training is not None and f"model {model.name}" in self.undone
        }
        if not places:
            return specification
        # The longest first: a name may begin with another
        listed = "|".join(re.escape(place) for place in sorted(places, key=len, reverse=True))
        return re.sub(listed, lambda m: str(self._moved_path(Path(m[0]))), specification)

    def _usable_models(self) -> list[StudyModel]:
        return [model for model in self.study.models if model.name not in self._failed]

    def _vocabulary(self) -> Vocabulary | None:
        """The vocabulary of the study, or that of the sample; None where there is none."""
        from contstim.vocabulary import Vocabulary

        section = self.files.section("vocabulary", VocabularySection)
        path = self.files.vocabulary
        if section is None or path is None:
            return None
        if "vocabulary" not in self.undone:
            return self._try("[vocabulary]", Vocabulary.load, path)
        sample = self._training_sample()
        if sample is None:
            return None
        settings = replace(
            part_of(section, VocabularySettings),
            prose=self.files.prose(self.files.training_text or path),
        )
        models = [f"{m.name}={self._moved(m.specification)}" for m in self._usable_models()]

        def choose() -> Vocabulary:
            from contstim.steps.vocabulary import make_vocabulary

            return make_vocabulary(
                sample.path,
                self.folder / "vocabulary.txt",
                settings=settings,
                models=models,
                trust_remote_code=self.study.loading.trust_remote_code,
            )

        began = perf_counter()
        vocabulary = self._try("[vocabulary]", choose)
        self.speeds.vocabulary = (perf_counter() - began) / sample.share
        return vocabulary

    def _naturals(self, vocabulary: Vocabulary | None) -> list[Sentence]:
        """The natural sentences of the study, or those of the sample."""
        from contstim.stimuli import read_stimuli

        section = self.files.section("sentences", SentencesSection) or SentencesSection()
        natural, text = self.files.natural, self.files.natural_text
        if natural is None:
            return []
        if "sentences" not in self.undone and natural.exists():
            sentences = self._try("[sentences]", read_stimuli, natural) or []
            self.speeds.natural, self.speeds.exact = len(sentences), True
            self._words_under_cap(sentences, vocabulary)
            return list(dict.fromkeys(sentences))
        if text is None:
            return []
        words = int(section.words) if section.words.isdecimal() else None
        sample = self._sample("text natural", text, self.study.texts.natural, words)
        excluded = section.exclude
        if section.exclude_training:
            training = self._training_sample()
            excluded = (*excluded, *present(None if training is None else training.path))
        settings = replace(part_of(section, SentenceSettings), prose=self.files.prose(text))

        def find() -> list[Sentence]:
            from contstim.steps.sentences import find_sentences

            allowed = self.folder / "vocabulary.txt"
            saved = allowed if allowed.exists() else self.files.vocabulary
            found = find_sentences(
                sample.path,
                self.folder / "natural.txt",
                settings=settings,
                vocabulary=None if vocabulary is None else saved,
                exclude=excluded,
            )
            return list(found.sentences)

        began = perf_counter()
        some = self._try("[sentences]", find) or []
        self.speeds.sentences = (perf_counter() - began) / sample.share
        self.speeds.natural = round(len(some) / sample.share)
        self._words_under_cap(some, vocabulary)
        return some

    def _words_under_cap(self, naturals: list[Sentence], vocabulary: Vocabulary | None) -> None:
        """Count the words that a cap on words is about, where the study has one."""
        from contstim.steps.constraints import uncapped_words

        section = self.files.section("triplets", TripletsSection)
        if section is None or section.word_cap is None or not naturals or vocabulary is None:
            return
        uncapped = uncapped_words(section.uncapped, section.word_cap)
        self.speeds.words = len({word.lower() for word in vocabulary.words} - uncapped)
        counting = [len({w.lower() for w in s.words} - uncapped) for s in naturals]
        self.speeds.words_a_sentence = sum(counting) / len(counting)

    def _score(self, naturals: list[Sentence]) -> None:
        """Score sentences under each model; where a model exists, ask which have scores already."""
        wanted = {"scores", "trial-scores", "triplets"} & self.undone
        store = self.folder / "store.sqlite"
        if wanted and STORE.exists():
            shutil.copy(STORE, store)  # not opened in place: that would write it
        for model in self._usable_models():
            if wanted:
                speed = self._try(f"[models] {model.name}", self._scoring_speed, model, naturals)
                if speed is None:
                    self._failed.add(model.name)
                else:
                    self.speeds.scoring[model.name] = speed
            self._advance()

    def count_settled(self, triplets: Path) -> None:
        """Count the triplets that the study has of models that stay as they are."""
        from contstim.store import Store, TripletStore
        from contstim.store.triplets import JobState

        if {"vocabulary", "sentences"} & self.undone:
            return  # which of them will still hold shows when there are words and sentences
        path = self.folder / "triplets.sqlite"
        shutil.copy(triplets, path)  # not opened in place: that would write it
        names = {
            model.specification: model.name
            for model in self.study.models
            if self._moved(model.specification) == model.specification
        }
        with Store(path) as store:
            jobs = TripletStore(store).jobs()
        for job in jobs:
            if job.state is JobState.FOUND and {job.model_1, job.model_2} <= names.keys():
                first, second = names[job.model_1], names[job.model_2]
                pair = (first, second) if (first, second) in self.pairs else (second, first)
                self.speeds.settled[pair] = self.speeds.settled.get(pair, 0) + 1

    def _scoring_speed(self, model: StudyModel, naturals: list[Sentence]) -> ScoringSpeed:
        from contstim.models.catalog import free_memory, load_scorer

        began = perf_counter()
        specification = self._moved(model.specification)
        scorer = load_scorer(specification, self.study.loading, name=model.name)
        load = perf_counter() - began
        reasons = scorer.unscorable(naturals)
        usable = [s for s, reason in zip(naturals, reasons, strict=True) if reason is None]
        if not usable:
            raise ContstimError(f"it can score no natural sentence: {reasons[0]}")
        scores: dict[Sentence, float] = {}
        seconds = _seconds_a_sentence(scorer, usable, _OF_MODEL / 2 * self._scale, scores)
        self.speeds.scores[model.name] = scores
        stored = 0
        if self.speeds.exact and (self.folder / "store.sqlite").exists():
            from contstim.store import Store

            with Store(self.folder / "store.sqlite") as store:
                kept = store.log_probs(scorer.convention.fingerprint, [s.text for s in naturals])
            stored = int((~np.isnan(kept)).sum())
        del scorer
        began = perf_counter()
        free_memory()
        return ScoringSpeed(load + perf_counter() - began, seconds, stored)

    def _search(self, naturals: list[Sentence], vocabulary: Vocabulary | None) -> None:
        """Search for triplets for each pair of models, while there is time."""
        section = self.files.section("triplets", TripletsSection)
        if section is None:
            return
        plan = self._try("[triplets]", self._plan, section, tuple(naturals), vocabulary)
        if plan is None:
            return
        from contstim.optimization.jobs.search_context import SearchContext

        context = SearchContext.of_plan(plan, self.study.loading, section.models_in_memory)
        places = {m.name: self._moved(m.specification) for m in self.study.models}
        deadline = perf_counter() + max(_OF_PAIR * len(self.pairs) * self._scale, 1.0)
        for pair in self.pairs:
            late = self.speeds.searches and perf_counter() > deadline
            if not late and not {*pair} & self._failed:

                def measure(pair: tuple[str, str] = pair) -> SearchSpeed:
                    from contstim.optimization.jobs.speed import search_speed

                    names = (places[pair[0]], places[pair[1]])
                    first, second = context.models(names)
                    words = context.words(names)
                    usable = [s for s in naturals if len(s) > 1 and not words.missing(s)]
                    starts = _plausible(first, second, usable, plan.plausible.quantile)
                    if not starts:
                        raise ContstimError("no natural sentence has words that both know")
                    return search_speed(
                        (first, second), words, starts, plan, seconds=_OF_PAIR * self._scale
                    )

                speed = self._try(f"[triplets] {' × '.join(pair)}", measure)
                if speed is not None:
                    self.speeds.searches[pair] = speed
            self._advance()

    def _plan(
        self,
        section: TripletsSection,
        naturals: tuple[Sentence, ...],
        vocabulary: Vocabulary | None,
    ) -> SynthesisPlan:
        from contstim.optimization.jobs.plan import SynthesisPlan
        from contstim.optimization.search.restarts import SearchBudget
        from contstim.steps.constraints import read_plausible

        settings = part_of(section, TripletSettings)
        budget = None
        if settings.restarts is not None or settings.seconds is not None:
            budget = SearchBudget(settings.restarts, settings.seconds)
        plan = SynthesisPlan(
            models=tuple(self._moved(model.specification) for model in self.study.models),
            sentences=naturals,
            vocabulary=vocabulary,
            per_pair=settings.per_pair,
            recipe=settings.recipe,
            seed=self.study.seed,
            allow_unknown=settings.allow_unknown,
            limits=replace(settings.limits(), fix=()),
            restarts=budget,
        )
        return plan.with_defaults(
            {},
            capitals=None if settings.capitals is None else settings.capitals == "rules",
            plausible=None if settings.plausible is None else read_plausible(settings.plausible)[0],
        )


def _seconds_a_sentence(
    scorer: Scorer, sentences: list[Sentence], seconds: float, scores: dict[Sentence, float]
) -> float:
    """Score blocks that grow until the time is up; the first one alone warms up.

    The scores are added to those given.
    """
    some = cycle(sentences)
    scorer.scores([next(some)])
    size, scored, spent = 4, 0, 0.0
    while spent < seconds and scored < 4 * len(sentences):
        block = list(islice(some, size))
        began = perf_counter()
        of_block = scorer.scores(block)
        spent += perf_counter() - began
        scores.update(zip(block, of_block.tolist(), strict=True))
        scored += len(block)
        # A block is not to take longer than what is left
        if spent / scored * 2 * size < seconds - spent:
            size = min(2 * size, _LARGEST_BLOCK)
    return spent / scored


def _plausible(
    first: LanguageModel, second: LanguageModel, sentences: list[Sentence], quantile: float
) -> list[Sentence]:
    """Sentences that a floor of plausibility leaves, of the first hundred."""
    some = sentences[:100]
    if not some:
        return []
    scores = np.array([model.log_probs(some) for model in (first, second)])  # (2, n), nats
    floors = np.quantile(scores, quantile, axis=1, keepdims=True)
    above = (scores >= floors).all(axis=0) & np.isfinite(scores).all(axis=0)
    chosen = np.flatnonzero(above if above.any() else np.isfinite(scores).all(axis=0))
    return [some[row] for row in chosen]
