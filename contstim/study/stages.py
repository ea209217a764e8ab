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
from itertools import product
from typing import TYPE_CHECKING, Any

from contstim.evaluation.settings import Method
from contstim.experiments.platforms.jspsych.study import PageSettings
from contstim.experiments.responses.questionnaire import questions_beside
from contstim.files.files import path_inside
from contstim.items.reviews import ItemKind, read_reviews
from contstim.models.training.settings import TRANSFORMER_TRAINING
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.design import MakeDesign
from contstim.steps.evaluation import EvaluateMinimalPairs
from contstim.steps.generation import GenerateSentences
from contstim.steps.platforms import WriteQuestions, export_step, import_step
from contstim.steps.review import WriteReviewPage
from contstim.steps.scoring import ScoreSentences
from contstim.steps.selection import SelectMinimalPairs, SelectPairs, SelectTriplets
from contstim.steps.sentences import FindSentences
from contstim.steps.simulation import SimulatePower, SimulateResponses
from contstim.steps.training import TRAININGS, TrainNgram
from contstim.steps.triplets import SearchTriplets
from contstim.steps.vocabulary import MakeVocabulary
from contstim.study import places
from contstim.study.places import StudyFiles
from contstim.study.sections import SentencesSection
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
        *_language(files),
        *_scores(files, read),
        *_items(files),
        *_design(files),
        *_people(files, read),
        *_exports(files),
        *_analysis(files),
    ]
    return _ordered([*stages, *further]) if further else stages


def _written(stages: Sequence[StudyStage]) -> list[tuple[StudyStage, Path]]:
    return [(stage, path) for stage in stages for path in stage.writes]


def _ordered(stages: Sequence[StudyStage]) -> list[StudyStage]:
    """The stages, each behind those whose files it reads, and else as they are."""
    ordered: dict[str, StudyStage] = {}
    written = _written(stages)
    begun: set[str] = set()  # of what reads each other, either is first

    def take(stage: StudyStage) -> None:
        if stage.name not in begun:
            begun.add(stage.name)
            for read, (other, path) in product(stage.reads, written):
                if other.name not in begun and _overlap(read, path):
                    take(other)
            ordered[stage.name] = stage

    for stage in stages:
        take(stage)
    return [*ordered.values()]


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _texts(files: StudyFiles) -> Iterator[StudyStage]:
    """Write sentences of the embedded English where a study asks for them."""
    texts, models = files.study.texts, files.study.models
    # Natural ones of the length that is asked for, and each text of another seed
    asked = [
        ("training", texts.training, places.TRAINING, None),
        ("natural", texts.natural, places.NATURAL_TEXT, files.only_length),
        *((f"of {each.name}", each.own_text, each.embedded_text, None) for each in models),
    ]
    for of_seed, (name, text, out, length) in enumerate(asked, files.study.seed):
        number = embedded_text(text)
        if number is not None:
            step = GenerateSentences(out=out, number=number, words=length, seed=of_seed)
            about = f"write {number:,} sentences of the embedded English"
            yield StudyStage(f"text {name}", about, step)


def _models(files: StudyFiles) -> Iterator[StudyStage]:
    """Train each model that is to be trained."""
    for model in files.study.models:
        if model.training is None:
            continue
        text, out = files.text_of(model), model.files[0]
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


def _stage(
    files: StudyFiles,
    name: str,
    about: str,
    kind: type[Step[Any]],
    *,
    section: str | None = None,
    **given: Any,
) -> StudyStage:
    """A stage whose step has what the study gives to every step, and the keys of a section.

    Args:
        files: of the study.
        name: of the stage.
        about: what it does.
        kind: of its step.
        section: where its keys stand; by default the one that the stage's name begins with.
        given: further values, by the names of the step's fields.
    """
    settings = files.study.sections.get(section or name.partition(" ")[0])
    values = {
        **files.given,
        "models": files.specifications,
        "trials": places.TRIALS,
        "vocabulary": files.vocabulary,
        "sentences": files.natural,
        **(vars(settings) if settings is not None else {}),
        **given,
    }
    step = kind.of(values)
    return StudyStage(name, about, step, files.loaded_by(step))


def _language(files: StudyFiles) -> Iterator[StudyStage]:
    """Choose the words that sentences may be made of, and find natural sentences in a text."""
    section, text = files.study.sections.get("vocabulary"), files.training_text
    if section is not None and section.file is None and text is not None:
        given: dict[str, Any] = {"text": text, "prose": files.prose(text), "out": places.VOCABULARY}
        yield _stage(files, "vocabulary", "choose the words", MakeVocabulary, **given)
    section, text = files.study.sections.get("sentences", SentencesSection()), files.natural_text
    if section.file is None and text is not None:
        training = files.training_texts if section.exclude_training else ()
        given = {"text": text, "prose": files.prose(text), "out": places.NATURAL}
        given["exclude"] = (*section.exclude, *training)
        yield _stage(files, "sentences", "find natural sentences", FindSentences, **given)


def _scores(files: StudyFiles, read: Collection[Path]) -> Iterator[StudyStage]:
    """Score the natural sentences under every model."""
    sections = files.study.sections
    wanted = places.SCORES in read or {"scores", "pairs"} & sections.keys()
    if files.natural is not None and wanted:
        with_errors = "scores" in sections and sections["scores"].standard_errors
        errors = places.STANDARD_ERRORS if with_errors else None
        yield _scoring(files, "scores", files.natural, places.SCORES, errors)


def _scoring(
    files: StudyFiles, name: str, sentences: Path, out: Path, errors: Path | None = None
) -> StudyStage:
    about = f"score the sentences of {sentences}"
    given: dict[str, Any] = {"sentences": sentences, "out": out, "standard_errors": errors}
    return _stage(files, name, about, ScoreSentences, section="scores", **given)


def _items(files: StudyFiles) -> Iterator[StudyStage]:
    """Select natural pairs, search for triplets, and select triplets and minimal pairs."""
    sections = files.study.sections
    if "pairs" in sections:
        given: dict[str, Any] = {"scores": places.SCORES, "out": places.PAIRS}
        given["review"] = files.decisions
        yield _stage(files, "pairs", "select natural pairs", SelectPairs, **given)
    review = _decisions_about(ItemKind.TRIPLET, files.decisions)
    if "triplets" in sections and files.natural is not None:
        yield _stage(
            files,
            "triplets",
            "search for triplets",
            SearchTriplets,
            out=places.TRIPLETS,
            frontier=places.FRONTIER if sections["triplets"].nats else None,
        )
    if "selection" in sections:
        given = {"triplets": places.TRIPLETS, "out": places.SELECTED}
        given["review"] = files.decisions
        selection, search = sections["selection"], sections.get("triplets")
        if search is not None:
            given["tags"] = selection.tags or search.tags
            if selection.objective == "readable" and selection.enough is None:
                # No more nats than were searched for
                given["enough"] = search.few_changes and search.few_changes.enough
        yield _stage(files, "selection", "select triplets", SelectTriplets, **given)
    if "minimal_pairs" in sections:
        scores, data = places.MINIMAL_PAIR_SCORES, sections["minimal_pairs"].data
        given = {"out": scores, "method": (Method.FULL_SENTENCE,)}
        about = f"score the minimal pairs of {data}"
        yield _stage(files, "minimal_pairs scores", about, EvaluateMinimalPairs, **given)
        given = {"pairs": scores / "pairs.csv", "out": places.MINIMAL_PAIRS}
        given["review"] = files.decisions
        yield _stage(files, "minimal_pairs", "select minimal pairs", SelectMinimalPairs, **given)


def _design(files: StudyFiles) -> Iterator[StudyStage]:
    """Share trials out to groups, and write pages on which people keep or reject items."""
    sections = files.study.sections
    pairs = places.PAIRS if "pairs" in sections else None
    if "design" in sections:
        yield _stage(
            files,
            "design",
            "share trials out to groups",
            MakeDesign,
            out=places.TRIALS,
            pairs=pairs,
            triplets=files.triplets,
            minimal_pairs=places.MINIMAL_PAIRS if "minimal_pairs" in sections else None,
            # Frequencies of words come from the largest text there is
            text=sections["design"].text or files.training_text,
            review=files.decisions,
        )
    trials = places.TRIALS if "design" in sections else None
    for what, table in (("pairs", pairs), ("triplets", files.triplets), ("trials", trials)):
        if table is not None and "review" in sections:
            yield _stage(
                files,
                f"review {what}",
                f"write a page for reviewers of {what}",
                WriteReviewPage,
                table=table,
                out=places.REVIEW / f"{what}.html",
                text=sections["review"].text or files.training_text,
                scores=places.SCORES if what == "pairs" else None,  # of natural sentences only
                review=files.decisions,
            )


def _people(files: StudyFiles, read: Collection[Path]) -> Iterator[StudyStage]:
    """Write questions, score the trials, simulate the experiment, and get what people answered."""
    sections, section = files.study.sections, files.study.sections.get("responses")
    if asked := files.study.questions:
        writing = WriteQuestions(questions=asked, out=places.QUESTIONS)
        yield StudyStage("questions", "write the questions to participants", writing)
    simulated = section is not None and section.simulate is not None
    wanted = simulated or places.TRIAL_SCORES in read or {"power", "analysis"} & sections.keys()
    if "design" in sections and wanted:
        yield _scoring(files, "trial-scores", places.TRIALS, places.TRIAL_SCORES)
    given: dict[str, Any] = {"scores": places.TRIAL_SCORES, "out": places.TRIALS}
    if "power" in sections:
        yield _stage(files, "power", "simulate the experiment", SimulatePower, **given)
    if section is None or section.file is not None:
        return
    given["out"] = places.RESPONSES
    if section.simulate is not None:
        given["participants"] = section.participants or files.planned_participants
        given["model"] = section.simulate
        given["questions"] = places.QUESTIONS if asked else None
        yield _stage(files, "responses", "simulate participants", SimulateResponses, **given)
    elif (reading := import_step(section.platform)) is not None:
        names = ("duplicates", "scale", "keep")
        values = {"files": section.data, "trials": places.TRIALS, "out": places.RESPONSES}
        step = reading.of({**values, **{name: getattr(section, name) for name in names}})
        yield StudyStage("responses", "read what people answered", step)


def responses_of(files: StudyFiles) -> tuple[Response, ...]:
    """Responses of people; empty where nothing is there yet.

    Raises:
        InputError: the table cannot be read.
    """
    from contstim.experiments.responses.table import read_responses
    from contstim.items.stimuli import read_trials

    path, section = files.responses, files.study.sections.get("responses")
    if section is None or path is None or not path.is_file():
        return ()
    trials = read_trials(places.TRIALS) if places.TRIALS.is_file() else ()
    return read_responses(path, trials, scale=section.scale)


def _exports(files: StudyFiles) -> Iterator[StudyStage]:
    """Turn trials into an experiment, or into a public data set."""
    for platform, settings in files.study.exports.items():
        kind = export_step(platform)
        assert kind is not None, "A platform without exports is refused when a study is read"
        out = path_inside(RESULTS / "export", platform)
        texts = tuple(out / name for name in kind.exporter.to_edit)
        if files.study.questions and isinstance(settings, PageSettings):
            settings = replace(settings, questions=places.QUESTIONS)
        step = kind(trials=places.TRIALS, out=out, settings=settings)
        about, prepare = f"write the experiment for {platform}", partial(_take_archived, texts)
        yield StudyStage(f"export {platform}", about, step, texts=texts, prepare=prepare)


def _take_archived(texts: Sequence[Path]) -> None:
    """Take texts that the author of an archive wrote, where none are there."""
    for text in texts:
        archived = places.ARCHIVED / text.relative_to(RESULTS)
        if archived.is_file() and not text.exists():
            text.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(archived, text)


def _analysis(files: StudyFiles) -> Iterator[StudyStage]:
    """Say which models people agree with."""
    sections, responses = files.study.sections, files.responses
    if "analysis" in sections and responses is not None:
        given: dict[str, Any] = {"responses": responses, "scale": sections["responses"].scale}
        given |= {"scores": places.TRIAL_SCORES, "out": places.ANALYSIS}
        if sections["analysis"].require and sections["analysis"].participants is None:
            given["participants"] = questions_beside(responses)
        yield _stage(files, "analysis", "compare models with people", AnalyzeResponses, **given)


def _earlier(files: StudyFiles, *tables: Path) -> tuple[Path, ...]:
    """The tables as they stood before a review, or as they stand in the archive of a study.

    They are the study's own results: so what nobody rejects stays, from one review to the next.
    """
    if not files.decisions:
        return ()
    archived = {table: places.ARCHIVED / table.relative_to(RESULTS) for table in tables}
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
