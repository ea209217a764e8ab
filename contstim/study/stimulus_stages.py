"""The stages from texts to stimuli: models, words, sentences, scores, pairs and triplets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.models.origins import model_origins, with_neighbours
from contstim.steps.execution import ScoringExecution
from contstim.steps.pairs import PairSettings
from contstim.steps.selection import SelectionSettings
from contstim.steps.text_settings import SentenceSettings, VocabularySettings
from contstim.steps.triplets import Execution, TripletSettings
from contstim.study.places import (
    ALLOTMENT,
    ARCHIVED_ALLOTMENT,
    NATURAL,
    NATURAL_TEXT,
    NETWORKS,
    PAIRS,
    SCORES,
    SELECTED,
    SOLVERS,
    STANDARD_ERRORS,
    STORE,
    TRAINING,
    TRIALS,
    TRIPLETS,
    VOCABULARY,
    judges_of,
    options_of,
    part_of,
    present,
    triplet_store,
    user_files,
)
from contstim.study.reviewed import decisions_about, earlier
from contstim.study.sections import (
    ScoresSection,
    SentencesSection,
    TripletsSection,
    VocabularySection,
)
from contstim.study.stage import StudyStage
from contstim.study.stage_records import checksums, read_stage_record
from contstim.study.study import NgramSettings, embedded_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.steps.watching import Watcher
    from contstim.study.places import StudyFiles
    from contstim.study.study import ModelTraining, StudyModel


def text_stages(files: StudyFiles) -> Iterator[StudyStage]:
    """Write sentences of the embedded English where a study asks for them."""
    texts, seed = files.study.texts, files.study.seed
    if texts.training is not None:
        yield from _embedded("text training", texts.training, TRAINING, None, seed)
    if texts.natural is not None:
        # Of the length that is asked for, and of another seed than what models are trained on
        section = files.section("sentences", SentencesSection) or SentencesSection()
        words = int(section.words) if section.words.isdecimal() else None
        yield from _embedded("text natural", texts.natural, NATURAL_TEXT, words, seed + 1)


def _embedded(
    name: str, text: str, out: Path, words: int | None, seed: int
) -> Iterator[StudyStage]:
    embedded = embedded_text(text)
    if embedded is None:
        return

    def step(watch: Watcher) -> None:
        from contstim.steps.embedded_text import write_embedded_text

        write_embedded_text(out, embedded.sentences, words=words, seed=seed, watch=watch)

    options = {"sentences": embedded.sentences, "words": words, "seed": seed}
    about = f"write {embedded.sentences:,} sentences of the embedded English"
    yield StudyStage(name, about, step, (), (out,), options)


def model_stages(files: StudyFiles) -> Iterator[StudyStage]:
    """Train each model that is to be trained."""
    for model in files.study.models:
        if model.training is not None:
            yield _model_stage(files, model, model.training)


def _model_stage(files: StudyFiles, model: StudyModel, training: ModelTraining) -> StudyStage:
    text = files.text_of(training)
    out = model.files[0]
    prose = files.prose(text)
    place, settings, network = training.place, training.settings, training.network
    options = {**options_of(network), "prose": prose}
    writes: tuple[Path, ...] = (out,)
    if settings is None or isinstance(network, NgramSettings):
        order = int(options["order"])
        writes = tuple(with_neighbours([out]))

        def step(watch: Watcher) -> None:
            from contstim.steps.training import train_ngram_model

            train_ngram_model(text, out, order=order, prose=prose, watch=watch)
    else:
        options |= {**options_of(settings), "device": place.device, "precision": place.precision}

        def step(watch: Watcher) -> None:
            from contstim.steps.training import train_network

            train_network(
                network,
                text,
                out,
                training=settings,
                prose=prose,
                device=place.device,
                precision=place.precision,
                watch=watch,
            )

    name = f"model {model.name}"
    return StudyStage(name, f"train {model.name}", step, (text,), writes, options, NETWORKS)


def vocabulary_stage(files: StudyFiles) -> StudyStage | None:
    """Choose the words that sentences may be made of."""
    section = files.section("vocabulary", VocabularySection)
    text = files.training_text
    if section is None or section.file is not None or text is None:
        return None
    settings = replace(part_of(section, VocabularySettings), prose=files.prose(text))

    def step(watch: Watcher) -> None:
        from contstim.steps.vocabulary import make_vocabulary

        make_vocabulary(
            text,
            VOCABULARY,
            settings=settings,
            models=files.specifications,
            trust_remote_code=files.study.loading.trust_remote_code,
            watch=watch,
        )

    dropped = () if settings.every_word else (Path(f"{VOCABULARY}.dropped.csv"),)
    return StudyStage(
        "vocabulary",
        "choose the words",
        step,
        reads=(text, *user_files(settings), *files.models),
        writes=(VOCABULARY, *dropped),
        options={
            **options_of(settings),
            "models": files.specifications,
            "trust_remote_code": files.study.loading.trust_remote_code,
        },
        libraries=("tokenizers",),
        models=files.bare_specifications,
    )


def sentences_stage(files: StudyFiles) -> StudyStage | None:
    """Find natural sentences in a text."""
    section = files.section("sentences", SentencesSection) or SentencesSection()
    text = files.natural_text
    if section.file is not None or text is None:
        return None
    settings = replace(part_of(section, SentenceSettings), prose=files.prose(text))
    exclude = section.exclude
    if section.exclude_training:
        exclude = (*exclude, *files.training_texts)

    def step(watch: Watcher) -> None:
        from contstim.steps.sentences import find_sentences

        find_sentences(
            text,
            NATURAL,
            settings=settings,
            vocabulary=files.vocabulary,
            exclude=exclude,
            watch=watch,
        )

    return StudyStage(
        "sentences",
        "find natural sentences",
        step,
        reads=(text, *present(files.vocabulary), *exclude, *user_files(settings)),
        writes=(NATURAL,),
        options={**options_of(settings), "exclude": exclude},
        libraries=("nltk",) if settings.finite_verb else (),
    )


def scores_stage(files: StudyFiles) -> StudyStage | None:
    """Score the natural sentences under every model."""
    if files.natural is None or not {"scores", "pairs"} & files.study.sections.keys():
        return None
    section = files.section("scores", ScoresSection) or ScoresSection()
    errors = STANDARD_ERRORS if section.standard_errors else None
    return score_stage(files, "scores", files.natural, SCORES, errors)


def score_stage(
    files: StudyFiles, name: str, sentences: Path, out: Path, errors: Path | None = None
) -> StudyStage:
    """Score some sentences under every model."""
    loading = files.study.loading
    section = files.section("scores", ScoresSection) or ScoresSection()
    # As for searches: where they are computed makes no scores stale
    execution = part_of(section, ScoringExecution)

    def step(watch: Watcher) -> None:
        from contstim.steps.scoring import score

        score(
            files.specifications,
            sentences,
            out,
            standard_errors=errors,
            execution=execution,
            loading=loading,
            store=STORE,
            watch=watch,
        )

    return StudyStage(
        name,
        f"score the sentences of {sentences}",
        step,
        reads=(sentences, *files.models),
        writes=(out, *present(errors)),
        options={"models": files.specifications, **options_of(loading)},
        libraries=NETWORKS,
        models=files.bare_specifications,
    )


def pairs_stage(files: StudyFiles) -> StudyStage | None:
    """Select natural pairs."""
    settings = files.section("pairs", PairSettings)
    if settings is None:
        return None
    decisions = decisions_about("pairs", files.decisions)

    def step(watch: Watcher) -> None:
        from contstim.steps.pairs import select_pairs

        before = earlier(files, PAIRS, TRIALS)
        select_pairs(
            SCORES, PAIRS, settings=settings, review=decisions, earlier=before, watch=watch
        )

    return StudyStage(
        "pairs",
        "select natural pairs",
        step,
        reads=(SCORES, *files.training_hashes, *user_files(settings), *decisions),
        writes=(PAIRS, Path(f"{PAIRS}.certificate.json")),
        options=options_of(settings),
        libraries=SOLVERS,
    )


def triplets_stage(files: StudyFiles) -> StudyStage | None:
    """Search for triplets."""
    section = files.section("triplets", TripletsSection)
    natural = files.natural
    if section is None or natural is None:
        return None
    settings, execution = part_of(section, TripletSettings), part_of(section, Execution)
    judges, decisions = judges_of(settings), decisions_about("triplets", files.decisions)
    loading, seed = files.study.loading, files.study.seed
    options = {
        "models": files.specifications,
        "seed": seed,
        **options_of(loading),
        **options_of(settings),
    }

    def step(watch: Watcher) -> object:
        from contstim.optimization.jobs.store_changes import AllowedChanges
        from contstim.steps.triplets import search_triplets

        # The study file is what counts: of what the store has, all stays that still holds
        every = frozenset(model.specification for model in files.study.models)
        changes = AllowedChanges(models=True, sentences=True, vocabulary=True, renew=every)
        return search_triplets(
            files.specifications,
            natural,
            TRIPLETS,
            vocabulary=files.vocabulary,
            settings=settings,
            execution=execution,
            store=triplet_store(options, settings),
            allotment=ALLOTMENT,
            begin_with=_known_allotment(natural, files),
            changes=changes,
            review=decisions,
            earlier=earlier(files, TRIALS),
            loading=loading,
            seed=seed,
            watch=watch,
        )

    return StudyStage(
        "triplets",
        "search for triplets",
        step,
        reads=(
            natural,
            *present(files.vocabulary),
            *user_files(settings),
            *settings.files,
            *model_origins(judges).files,
            *decisions,
            *files.models,
            *present(ARCHIVED_ALLOTMENT if ARCHIVED_ALLOTMENT.exists() else None),
        ),
        writes=(TRIPLETS, ALLOTMENT),
        options=options,
        libraries=NETWORKS,
        models=(*files.bare_specifications, *judges),
    )


def _known_allotment(natural: Path, files: StudyFiles) -> Path | None:
    """Path of the natural sentences that pairs of models got before, for a store that begins anew.

    That of an archive that is done again; or the study's own, where it is of the same models,
    sentences, words and seed.
    """
    if ARCHIVED_ALLOTMENT.exists():
        return ARCHIVED_ALLOTMENT
    record = read_stage_record("triplets")
    if record is None or not ALLOTMENT.exists():
        return None
    now = checksums((natural, *present(files.vocabulary)))
    same_texts = all(record.reads.get(name) == checked for name, checked in now.items())
    same_models = record.options.get("models") == list(files.specifications)
    same_seed = record.options.get("seed") == files.study.seed
    return ALLOTMENT if same_texts and same_models and same_seed else None


def selection_stage(files: StudyFiles) -> StudyStage | None:
    """Select triplets."""
    settings = files.section("selection", SelectionSettings)
    if settings is None:
        return None
    decisions = decisions_about("triplets", files.decisions)

    def step(watch: Watcher) -> None:
        from contstim.steps.selection import choose_triplets

        before = earlier(files, SELECTED, TRIALS)
        choose_triplets(
            TRIPLETS, SELECTED, settings=settings, review=decisions, earlier=before, watch=watch
        )

    return StudyStage(
        "selection",
        "select triplets",
        step,
        reads=(TRIPLETS, *user_files(settings), *decisions),
        writes=(SELECTED, Path(f"{SELECTED}.certificate.json")),
        options=options_of(settings),
        libraries=SOLVERS,
    )
