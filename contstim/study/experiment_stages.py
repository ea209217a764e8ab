"""The stages from stimuli to people and back: trials, reviews, power, exports and the analysis."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.experiments.platforms.registry import platform_named
from contstim.files import path_inside
from contstim.steps.analysis import AnalysisSettings
from contstim.steps.design import DesignSettings, PowerSettings
from contstim.steps.simulation_settings import SimulationSettings
from contstim.steps.text_settings import ReviewSettings
from contstim.study.places import (
    ANALYSIS,
    ARCHIVED,
    PAIRS,
    RESPONSES,
    REVIEW,
    SCORES,
    SOLVERS,
    STATISTICS,
    TRIAL_SCORES,
    TRIALS,
    options_of,
    part_of,
    present,
    user_files,
)
from contstim.study.reviewed import earlier
from contstim.study.sections import ResponsesSection, ReviewSection
from contstim.study.stage import StudyStage
from contstim.study.stimulus_stages import score_stage
from contstim.study.study import RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.experiments.responses import Response
    from contstim.steps.watching import Watcher
    from contstim.study.places import StudyFiles


def design_stage(files: StudyFiles) -> StudyStage | None:
    """Share trials out to groups of participants."""
    settings = files.section("design", DesignSettings)
    if settings is None:
        return None
    # Frequencies of words come from the largest text there is
    settings = replace(settings, text=settings.text or files.training_text)
    pairs = PAIRS if "pairs" in files.study.sections else None
    seed = files.study.seed

    def step(watch: Watcher) -> None:
        from contstim.steps.design import make_design

        make_design(
            TRIALS,
            pairs=pairs,
            triplets=files.triplets,
            sentences=files.natural,
            settings=settings,
            seed=seed,
            review=files.decisions,
            earlier=earlier(files, TRIALS),
            watch=watch,
        )

    beside = (".certificate.json", ".summary.md", ".summary.png")
    return StudyStage(
        "design",
        "share trials out to groups",
        step,
        reads=(
            *present(pairs, files.triplets, files.natural),
            *user_files(settings),
            *files.decisions,
        ),
        writes=(TRIALS, *(Path(f"{TRIALS}{ending}") for ending in beside)),
        options={"seed": seed, **options_of(settings)},
        libraries=(*SOLVERS, "matplotlib"),
    )


def review_stages(files: StudyFiles) -> Iterator[StudyStage]:
    """Write pages on which people keep or reject pairs, triplets and trials."""
    section = files.section("review", ReviewSection)
    if section is None:
        return
    sections = files.study.sections
    scores = SCORES if "pairs" in sections else None
    tables = {
        "pairs": PAIRS if "pairs" in sections else None,
        "triplets": files.triplets,
        "trials": TRIALS if "design" in sections else None,
    }
    for what, table in tables.items():
        if table is not None:
            # Scores are of natural sentences only
            yield _review_stage(files, section, what, table, scores if what == "pairs" else None)


def _review_stage(
    files: StudyFiles, section: ReviewSection, what: str, table: Path, scores: Path | None
) -> StudyStage:
    settings = part_of(section, ReviewSettings)
    settings = replace(settings, text=settings.text or files.training_text)
    out = REVIEW / f"{what}.html"

    def step(watch: Watcher) -> None:
        from contstim.steps.review import write_review_page

        write_review_page(
            table,
            out,
            settings=settings,
            scores=scores,
            earlier_rounds=files.decisions,
            watch=watch,
        )

    return StudyStage(
        f"review {what}",
        f"write a page for reviewers of {what}",
        step,
        reads=(table, *present(scores), *files.decisions, *user_files(settings)),
        writes=(out,),
        options=options_of(settings),
    )


def trial_scores_stage(files: StudyFiles) -> StudyStage | None:
    """Score the sentences of all trials, for power, simulated people and the analysis."""
    sections = files.study.sections
    responses = files.section("responses", ResponsesSection)
    simulated = responses is not None and responses.simulate is not None
    if "design" not in sections or not (simulated or {"power", "analysis"} & sections.keys()):
        return None
    return score_stage(files, "trial-scores", TRIALS, TRIAL_SCORES)


def power_stage(files: StudyFiles) -> StudyStage | None:
    """Simulate the experiment, with new people and new items."""
    settings = files.section("power", PowerSettings)
    if settings is None:
        return None
    seed = files.study.seed

    def step(watch: Watcher) -> None:
        from contstim.steps.design import simulate_power

        simulate_power(TRIALS, TRIAL_SCORES, TRIALS, settings=settings, seed=seed, watch=watch)

    return StudyStage(
        "power",
        "simulate the experiment",
        step,
        reads=(TRIALS, TRIAL_SCORES, *user_files(settings)),
        writes=tuple(
            Path(f"{TRIALS}.power{ending}") for ending in (".md", ".csv", "-sizes.csv", ".png")
        ),
        options={"seed": seed, **options_of(settings)},
        libraries=STATISTICS,
    )


def responses_stage(files: StudyFiles) -> StudyStage | None:
    """Read what people answered, or let artificial participants answer."""
    section = files.section("responses", ResponsesSection)
    if section is None or section.file is not None:
        return None
    settings = part_of(section, SimulationSettings)
    if settings.participants is None:
        settings = replace(settings, participants=files.planned_participants)
    seed = files.study.seed
    reads: tuple[Path, ...]
    if section.simulate is not None:
        model = section.simulate
        reads = (TRIALS, TRIAL_SCORES)
        options = {"model": model, "seed": seed, **options_of(settings)}

        def step(watch: Watcher) -> None:
            from contstim.steps.responses import simulate_people

            simulate_people(
                TRIALS, TRIAL_SCORES, model, RESPONSES, settings=settings, seed=seed, watch=watch
            )
    else:
        platform = str(section.platform)
        reads = (TRIALS, *section.data)
        options = {
            "platform": platform,
            "duplicates": section.duplicates,
            "scale": section.scale,
        }

        def step(watch: Watcher) -> None:
            from contstim.steps.responses import import_responses

            import_responses(
                platform,
                section.data,
                TRIALS,
                RESPONSES,
                duplicates=section.duplicates,
                scale=section.scale,
                watch=watch,
            )

    about = "simulate participants" if section.simulate else "read what people answered"
    return StudyStage("responses", about, step, reads, (RESPONSES,), options)


def responses_file(files: StudyFiles) -> Path | None:
    """The table of what people answered; None in a study without."""
    section = files.section("responses", ResponsesSection)
    return None if section is None else section.file or RESPONSES


def responses_of(files: StudyFiles) -> tuple[Response, ...]:
    """Responses of people; empty where nothing is there yet.

    Raises:
        InputError: the table cannot be read.
    """
    from contstim.experiments.responses import read_responses
    from contstim.stimuli import read_trials

    path, section = responses_file(files), files.section("responses", ResponsesSection)
    if section is None or path is None or not path.is_file():
        return ()
    trials = read_trials(TRIALS) if TRIALS.is_file() else ()
    return read_responses(path, trials, scale=section.scale)


def export_stages(files: StudyFiles) -> Iterator[StudyStage]:
    """Turn trials into an experiment, or into a public data set."""
    for platform, settings in files.study.exports.items():
        yield _export_stage(platform, settings)


def _export_stage(platform: str, settings: Any) -> StudyStage:
    out = path_inside(RESULTS / "export", platform)
    place = platform_named(platform)
    exporter = None if place is None else place.exporter
    texts = tuple(out / name for name in (() if exporter is None else exporter.to_edit))

    def step(watch: Watcher) -> None:
        from contstim.steps.export import export_trials

        for text in texts:
            # Done again from an archive: texts that the author wrote are not made again
            archived = ARCHIVED / text.relative_to(RESULTS)
            if archived.is_file() and not text.exists():
                text.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(archived, text)
        export_trials(platform, TRIALS, out, settings=settings, watch=watch)

    return StudyStage(
        f"export {platform}",
        f"write the experiment for {platform}",
        step,
        reads=(TRIALS, *user_files(settings)),
        writes=(out,),
        options=options_of(settings),
        texts=texts,
    )


def analysis_stage(files: StudyFiles) -> StudyStage | None:
    """Say which models people agree with."""
    settings = files.section("analysis", AnalysisSettings)
    section, responses = files.section("responses", ResponsesSection), responses_file(files)
    if settings is None or section is None or responses is None:
        return None
    scale = section.scale
    seed = files.study.seed

    def step(watch: Watcher) -> None:
        from contstim.steps.analysis import analyze_responses

        analyze_responses(
            TRIALS,
            responses,
            TRIAL_SCORES,
            ANALYSIS,
            settings=settings,
            scale=scale,
            seed=seed,
            watch=watch,
        )

    return StudyStage(
        "analysis",
        "compare models with people",
        step,
        reads=(TRIALS, responses, TRIAL_SCORES, *user_files(settings)),
        writes=(ANALYSIS,),
        options={"seed": seed, "scale": scale, **options_of(settings)},
        libraries=STATISTICS,
    )
