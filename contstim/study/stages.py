"""The stages of a study, in order: which steps follow from its file, and what they are given.

    texts -> models -> vocabulary -> sentences -> scores -> pairs -------+
                           |             |                               |
                           +-------------+----> triplets -> selection ---+--> design --> exports
                                                                |               |
                                                             review       trial scores --> power
                                                                                |
                                                     responses <----------------+--> analysis

A stage that the file does not name is left out, unless a stage that it names needs it. All paths
are relative to the study's folder, in which the stages run.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files import path_inside
from contstim.models.training.settings import TRANSFORMER_TRAINING
from contstim.optimization.jobs.question import SearchRules
from contstim.reviews import ItemKind, read_reviews
from contstim.steps.analysis import AnalysisSettings, AnalyzeResponses
from contstim.steps.design import DesignSettings, MakeDesign
from contstim.steps.execution import Execution, ScoringExecution
from contstim.steps.generation import GenerateSentences
from contstim.steps.platforms import export_step, import_step
from contstim.steps.review import ReviewSettings, WriteReviewPage
from contstim.steps.scoring import ScoreSentences
from contstim.steps.selection import PairSettings, SelectionSettings, SelectPairs, SelectTriplets
from contstim.steps.sentences import FindSentences, SentenceSettings
from contstim.steps.simulation import (
    PowerSettings,
    SimulatePower,
    SimulateResponses,
    SimulationSettings,
)
from contstim.steps.training import TRAININGS, TrainNgram
from contstim.steps.triplets import SearchTriplets
from contstim.steps.vocabulary import MakeVocabulary, VocabularySettings
from contstim.study.places import (
    ANALYSIS,
    ARCHIVED,
    ARCHIVED_ASSIGNMENT,
    ASSIGNMENT,
    NATURAL,
    NATURAL_TEXT,
    PAIRS,
    RESPONSES,
    REVIEW,
    SCORES,
    SELECTED,
    STANDARD_ERRORS,
    STORE,
    TRAINING,
    TRIAL_SCORES,
    TRIALS,
    TRIPLETS,
    VOCABULARY,
    StudyFiles,
    part_of,
)
from contstim.study.sections import (
    ResponsesSection,
    ReviewSection,
    ScoresSection,
    SentencesSection,
    TripletsSection,
    VocabularySection,
)
from contstim.study.single_steps import stages_of_steps
from contstim.study.stage import StudyStage
from contstim.study.study import RESULTS, NgramSettings, embedded_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from contstim.experiments.responses.table import Response
    from contstim.steps.step import Step
    from contstim.study.study import Study


def stages_of(study: Study) -> list[StudyStage]:
    """The stages that a study needs, each behind those whose files it reads."""
    files = StudyFiles(study)
    further = stages_of_steps(files)
    read = {path for stage in further for path in stage.reads}
    stages = [
        *_texts(files),
        *_models(files),
        *_vocabulary(files),
        *_sentences(files),
        *_scores(files, read),
        *_pairs(files),
        *_triplets(files),
        *_selection(files),
        *_design(files),
        *_reviews(files),
        *_trial_scores(files, read),
        *_power(files),
        *_responses(files),
        *_exports(files),
        *_analysis(files),
    ]
    return _ordered([*stages, *further]) if further else stages


def _ordered(stages: Sequence[StudyStage]) -> list[StudyStage]:
    """The stages, each behind those whose files it reads, and else as they are.

    Raises:
        InputError: two write into one place.
    """
    written = [(path, stage) for stage in stages for path in stage.writes]
    for number, (path, stage) in enumerate(written):
        for other_path, other in written[:number]:
            if other is not stage and _overlap(path, other_path):
                raise InputError(
                    f"The stages {other.name!r} and {stage.name!r} both write {path}: give one of "
                    f"them another `out`."
                )
    placed: dict[str, StudyStage] = {}
    begun: set[str] = set()  # of what reads each other, either is first

    def place(stage: StudyStage) -> None:
        if stage.name not in begun:
            begun.add(stage.name)
            for read in stage.reads:
                for path, other in written:
                    if _overlap(read, path):
                        place(other)
            placed[stage.name] = stage

    for stage in stages:
        place(stage)
    return [*placed.values()]


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _texts(files: StudyFiles) -> Iterator[StudyStage]:
    """Write sentences of the embedded English where a study asks for them."""
    texts, seed = files.study.texts, files.study.seed
    # Natural ones of the length that is asked for, and of another seed than the training text
    section = files.section("sentences", SentencesSection) or SentencesSection()
    words = int(section.words) if section.words.isdecimal() else None
    for name, text, out, length, of_seed in (
        ("training", texts.training, TRAINING, None, seed),
        ("natural", texts.natural, NATURAL_TEXT, words, seed + 1),
    ):
        embedded = None if text is None else embedded_text(text)
        if embedded is not None:
            number = embedded.sentences
            step = GenerateSentences(out=out, number=number, words=length, seed=of_seed)
            about = f"write {number:,} sentences of the embedded English"
            yield StudyStage(f"text {name}", about, step)


def _models(files: StudyFiles) -> Iterator[StudyStage]:
    """Train each model that is to be trained."""
    for model in files.study.models:
        if model.training is None:
            continue
        text, out = files.text_of(model.training), model.files[0]
        network, place = model.training.network, model.training.place
        prose = files.prose(text)
        step: Step[Any]
        if isinstance(network, NgramSettings):
            step = TrainNgram(text=text, out=out, order=network.order, prose=prose)
        else:
            step = TRAININGS[network.kind](
                text=text,
                out=out,
                network=network,
                training=model.training.settings or TRANSFORMER_TRAINING,
                prose=prose,
                device=place.device,
                precision=place.precision,
            )
        yield StudyStage(f"model {model.name}", f"train {model.name}", step)


def _vocabulary(files: StudyFiles) -> Iterator[StudyStage]:
    """Choose the words that sentences may be made of."""
    section = files.section("vocabulary", VocabularySection)
    text = files.training_text
    if section is None or section.file is not None or text is None:
        return
    step = MakeVocabulary(
        text=text,
        out=VOCABULARY,
        settings=replace(part_of(section, VocabularySettings), prose=files.prose(text)),
        models=files.specifications,
        trust_remote_code=files.study.loading.trust_remote_code,
    )
    yield StudyStage("vocabulary", "choose the words", step, files.models)


def _sentences(files: StudyFiles) -> Iterator[StudyStage]:
    """Find natural sentences in a text."""
    section = files.section("sentences", SentencesSection) or SentencesSection()
    text = files.natural_text
    if section.file is not None or text is None:
        return
    training = files.training_texts if section.exclude_training else ()
    step = FindSentences(
        text=text,
        out=NATURAL,
        settings=replace(part_of(section, SentenceSettings), prose=files.prose(text)),
        vocabulary=files.vocabulary,
        exclude=(*section.exclude, *training),
    )
    yield StudyStage("sentences", "find natural sentences", step)


def _scores(files: StudyFiles, read: Collection[Path]) -> Iterator[StudyStage]:
    """Score the natural sentences under every model."""
    wanted = SCORES in read or {"scores", "pairs"} & files.study.sections.keys()
    if files.natural is not None and wanted:
        section = files.section("scores", ScoresSection) or ScoresSection()
        errors = STANDARD_ERRORS if section.standard_errors else None
        yield _scoring(files, "scores", files.natural, SCORES, errors)


def _scoring(
    files: StudyFiles, name: str, sentences: Path, out: Path, errors: Path | None = None
) -> StudyStage:
    section = files.section("scores", ScoresSection) or ScoresSection()
    step = ScoreSentences(
        models=files.specifications,
        sentences=sentences,
        out=out,
        standard_errors=errors,
        execution=part_of(section, ScoringExecution),
        loading=files.study.loading,
        store=STORE,
    )
    return StudyStage(name, f"score the sentences of {sentences}", step, files.models)


def _pairs(files: StudyFiles) -> Iterator[StudyStage]:
    """Select natural pairs."""
    settings = files.section("pairs", PairSettings)
    if settings is not None:
        step = SelectPairs(
            scores=SCORES,
            out=PAIRS,
            settings=settings,
            review=_decisions_about(ItemKind.PAIR, files.decisions),
            earlier=_earlier(files, PAIRS, TRIALS),
        )
        yield StudyStage("pairs", "select natural pairs", step)


def _triplets(files: StudyFiles) -> Iterator[StudyStage]:
    """Search for triplets."""
    section, natural = files.section("triplets", TripletsSection), files.natural
    if section is None or natural is None:
        return
    study = files.study
    step = SearchTriplets(
        models=files.specifications,
        sentences=natural,
        out=TRIPLETS,
        vocabulary=files.vocabulary,
        settings=part_of(section, SearchRules),
        uncapped=section.uncapped,
        execution=part_of(section, Execution),
        retry_failed=section.retry_failed,
        store=STORE,
        assignment=ASSIGNMENT,
        begin_with=ARCHIVED_ASSIGNMENT if ARCHIVED_ASSIGNMENT.exists() else None,
        review=_decisions_about(ItemKind.TRIPLET, files.decisions),
        earlier=_earlier(files, TRIALS),
        loading=study.loading,
        seed=study.seed,
    )
    yield StudyStage("triplets", "search for triplets", step, files.models)


def _selection(files: StudyFiles) -> Iterator[StudyStage]:
    """Select triplets."""
    settings = files.section("selection", SelectionSettings)
    if settings is not None:
        step = SelectTriplets(
            triplets=TRIPLETS,
            out=SELECTED,
            settings=settings,
            review=_decisions_about(ItemKind.TRIPLET, files.decisions),
            earlier=_earlier(files, SELECTED, TRIALS),
        )
        yield StudyStage("selection", "select triplets", step)


def _design(files: StudyFiles) -> Iterator[StudyStage]:
    """Share trials out to groups of participants."""
    settings = files.section("design", DesignSettings)
    if settings is not None:
        step = MakeDesign(
            out=TRIALS,
            pairs=PAIRS if "pairs" in files.study.sections else None,
            triplets=files.triplets,
            sentences=files.natural,
            # Frequencies of words come from the largest text there is
            settings=replace(settings, text=settings.text or files.training_text),
            seed=files.study.seed,
            review=files.decisions,
            earlier=_earlier(files, TRIALS),
        )
        yield StudyStage("design", "share trials out to groups", step)


def _reviews(files: StudyFiles) -> Iterator[StudyStage]:
    """Write pages on which people keep or reject pairs, triplets and trials."""
    section = files.section("review", ReviewSection)
    if section is None:
        return
    sections, settings = files.study.sections, part_of(section, ReviewSettings)
    tables = {
        "pairs": PAIRS if "pairs" in sections else None,
        "triplets": files.triplets,
        "trials": TRIALS if "design" in sections else None,
    }
    for what, table in tables.items():
        if table is not None:
            step = WriteReviewPage(
                table=table,
                out=REVIEW / f"{what}.html",
                settings=replace(settings, text=settings.text or files.training_text),
                scores=SCORES if what == "pairs" else None,  # of natural sentences only
                earlier_rounds=files.decisions,
            )
            yield StudyStage(f"review {what}", f"write a page for reviewers of {what}", step)


def _trial_scores(files: StudyFiles, read: Collection[Path]) -> Iterator[StudyStage]:
    """Score the sentences of all trials, for power, simulated people and the analysis."""
    sections = files.study.sections
    responses = files.section("responses", ResponsesSection)
    simulated = responses is not None and responses.simulate is not None
    wanted = simulated or TRIAL_SCORES in read or {"power", "analysis"} & sections.keys()
    if "design" in sections and wanted:
        yield _scoring(files, "trial-scores", TRIALS, TRIAL_SCORES)


def _power(files: StudyFiles) -> Iterator[StudyStage]:
    """Simulate the experiment, with new people and new items."""
    settings = files.section("power", PowerSettings)
    if settings is not None:
        step = SimulatePower(
            trials=TRIALS,
            scores=TRIAL_SCORES,
            out=TRIALS,
            settings=settings,
            seed=files.study.seed,
        )
        yield StudyStage("power", "simulate the experiment", step)


def _responses(files: StudyFiles) -> Iterator[StudyStage]:
    """Read what people answered, or let artificial participants answer."""
    section = files.section("responses", ResponsesSection)
    if section is None or section.file is not None:
        return
    if section.simulate is not None:
        settings = part_of(section, SimulationSettings)
        participants = settings.participants or files.planned_participants
        simulation = SimulateResponses(
            trials=TRIALS,
            scores=TRIAL_SCORES,
            model=section.simulate,
            out=RESPONSES,
            settings=replace(settings, participants=participants),
            seed=files.study.seed,
        )
        yield StudyStage("responses", "simulate participants", simulation)
    elif (reading := import_step(str(section.platform))) is not None:
        step = reading.of(
            {
                "files": section.data,
                "trials": TRIALS,
                "out": RESPONSES,
                "duplicates": section.duplicates,
                "scale": section.scale,
            }
        )
        yield StudyStage("responses", "read what people answered", step)


def responses_of(files: StudyFiles) -> tuple[Response, ...]:
    """Responses of people; empty where nothing is there yet.

    Raises:
        InputError: the table cannot be read.
    """
    from contstim.experiments.responses.table import read_responses
    from contstim.stimuli import read_trials

    path, section = files.responses, files.section("responses", ResponsesSection)
    if section is None or path is None or not path.is_file():
        return ()
    trials = read_trials(TRIALS) if TRIALS.is_file() else ()
    return read_responses(path, trials, scale=section.scale)


def _exports(files: StudyFiles) -> Iterator[StudyStage]:
    """Turn trials into an experiment, or into a public data set."""
    for platform, settings in files.study.exports.items():
        kind = export_step(platform)
        if kind is None:
            raise AssertionError("A platform without exports is refused when a study is read")
        out = path_inside(RESULTS / "export", platform)
        texts = tuple(out / name for name in kind.exporter.to_edit)
        yield StudyStage(
            f"export {platform}",
            f"write the experiment for {platform}",
            kind(trials=TRIALS, out=out, settings=settings),
            texts=texts,
            prepare=partial(_take_archived, texts),
        )


def _take_archived(texts: Sequence[Path]) -> None:
    """Take texts that the author of an archive wrote, where none are there."""
    for text in texts:
        archived = ARCHIVED / text.relative_to(RESULTS)
        if archived.is_file() and not text.exists():
            text.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(archived, text)


def _analysis(files: StudyFiles) -> Iterator[StudyStage]:
    """Say which models people agree with."""
    settings = files.section("analysis", AnalysisSettings)
    section, responses = files.section("responses", ResponsesSection), files.responses
    if settings is not None and section is not None and responses is not None:
        step = AnalyzeResponses(
            trials=TRIALS,
            responses=responses,
            scores=TRIAL_SCORES,
            out=ANALYSIS,
            settings=settings,
            scale=section.scale,
            seed=files.study.seed,
        )
        yield StudyStage("analysis", "compare models with people", step)


def _earlier(files: StudyFiles, *tables: Path) -> tuple[Path, ...]:
    """The tables as they stood before a review, or as they stand in the archive of a study.

    They are the study's own results: so what nobody rejects stays, from one review to the next.
    """
    if not files.decisions:
        return ()
    archived = {table: ARCHIVED / table.relative_to(RESULTS) for table in tables}
    found = (t if t.is_file() else archived[t] for t in tables)
    return tuple(path for path in found if path.is_file())


def _decisions_about(kind: ItemKind, decisions: Sequence[Path]) -> tuple[Path, ...]:
    """The files that hold decisions about natural pairs, or about triplets, or their trials.

    A step refuses a review of something else; a study has reviews of all its tables together.
    """
    return tuple(
        path
        for path in decisions
        if any(item.about is kind for item in read_reviews([path]).decisions)
    )
