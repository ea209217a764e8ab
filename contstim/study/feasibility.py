"""Feasibility of a study: all that is known before anything costs time.

Missing files, models that do not load, sections that need others, and numbers that cannot go
together, such as ten triplets for each pair of models and four groups of participants.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from itertools import combinations
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.counts import read_pair_counts
from contstim.errors import ContstimError, InputError
from contstim.files import is_file
from contstim.models.catalog import check_model
from contstim.models.specifications import parse_specification
from contstim.scale import Scale
from contstim.steps.analysis import AnalysisSettings
from contstim.steps.simulation import PowerSettings
from contstim.study.amounts import most_sentences, numbers_of
from contstim.study.places import StudyFiles
from contstim.study.sections import (
    ResponsesSection,
    SentencesSection,
    TripletsSection,
    VocabularySection,
)
from contstim.study.single_steps import check_steps
from contstim.study.study import RESULTS, embedded_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.study.amounts import ModelPair, StudyNumbers
    from contstim.study.problems import Problems
    from contstim.study.study import Study
    from contstim.study.toml_lines import Key

_NEEDS_MODELS = ("scores", "pairs", "triplets")
_OF_CONFIDENCE = ("jspsych", "jatos", "pcibex", "psychopy", "gorilla", "qualtrics")


def check_study(study: Study, problems: Problems) -> None:
    """Add what is wrong with a study whose keys and types are right.

    The current folder is the study's.
    """
    _check_texts(study, problems)
    _check_models(study, problems)
    _check_files(study, problems)
    _check_sections(study, problems)
    _check_settings(study, problems)
    _check_numbers(study, problems)
    if not problems.problems:
        check_steps(study, problems)
    if not problems.problems:
        _check_results(study, problems)


def _check_texts(study: Study, problems: Problems) -> None:
    for name in ("training", "natural"):
        text = getattr(study.texts, name)
        if text is not None and not embedded_text(text):
            remedy = "Give a file, or english:N for N sentences of the embedded English."
            if text.startswith("english"):
                remedy = "Write english:N with a number, such as english:2000."
            _check_file(Path(text), ("texts", name), problems, remedy)
    files = StudyFiles(study)
    needs_training = [m.name for m in study.models if m.training and not m.training.place.text]
    if study.texts.training is None:
        for name in needs_training:
            problems.add(("models", name), "is to be trained on what? Name training under [texts].")
        vocabulary = study.sections.get("vocabulary")
        if isinstance(vocabulary, VocabularySection) and vocabulary.file is None:
            problems.add(
                ("vocabulary",),
                "words are counted in a text: name training under [texts], or file.",
            )
    for model in study.models:
        text = model.training.place.text if model.training else None
        if text is not None and not embedded_text(text):
            _check_file(Path(text), ("models", model.name, "text"), problems)
        elif text is not None:
            problems.add(
                ("models", model.name, "text"),
                "a model of its own text takes a file; english:N stands under [texts].",
            )
    if files.natural is None:
        for name in ("sentences", *_NEEDS_MODELS):
            if name in study.sections:
                problems.add(
                    (name,),
                    "needs natural sentences: name natural under [texts], or file under "
                    "[sentences].",
                )


def _check_models(study: Study, problems: Problems) -> None:
    trained = {model.specification for model in study.models if model.training is not None}
    places = {parse_specification(text).location for text in trained}
    for model in study.models:
        parsed = parse_specification(model.specification)
        if parsed.location in places:
            continue  # it will be there
        try:
            check_model(parsed, study.loading)
        except ContstimError as error:
            problems.add(("models", model.name), str(error))
    wanted = [name for name in _NEEDS_MODELS if name in study.sections]
    if len(study.models) < 2 and wanted and not problems.concern("models"):
        problems.add(
            ("models",),
            f"[{wanted[0]}] compares models, and the study names {len(study.models)}: name at "
            f"least two.",
        )


def _check_files(study: Study, problems: Problems) -> None:
    for key, path in _files(study):
        # The only folders that are read are these
        if not (key[-1] in ("library", "pilot") and path.is_dir()):
            _check_file(path, key, problems)


def _check_results(study: Study, problems: Problems) -> None:
    """Check that results that are read, such as responses for a data set, will be there."""
    from contstim.study.stages import stages_of

    written = {path for stage in stages_of(study) for path in stage.writes}
    for key, path in _files(study):
        if written.isdisjoint((path, *path.parents)) and not path.exists():
            problems.add(key, f"there is no file {str(path)!r}, and no stage writes it.")


def _files(study: Study) -> Iterator[tuple[Key, Path]]:
    """Every file that a section names, with its key."""
    settings: dict[Key, Any] = {(name,): values for name, values in study.sections.items()}
    settings |= {("export", name): values for name, values in study.exports.items()}
    for section, values in settings.items():
        for name, value in asdict(values).items():
            for path in value if isinstance(value, tuple) else (value,):
                if isinstance(path, Path):
                    yield (*section, name), path


def _check_file(path: Path, key: Key, problems: Problems, remedy: str = "") -> None:
    # Whether the study itself will write a result, its stages say
    if not is_file(path) and RESULTS not in path.parents:
        what = (
            f"{str(path)!r} is not a file" if path.exists() else f"there is no file {str(path)!r}"
        )
        problems.add(key, f"{what}. {remedy}".rstrip())


def _check_sections(study: Study, problems: Problems) -> None:
    """Check that the sections that a section needs are there."""
    sections = study.sections
    for name, others in {
        "selection": ("triplets",),
        "power": ("design",),
        "responses": ("design",),
        "analysis": ("design", "responses"),
        "review": ("pairs", "triplets", "design"),
    }.items():
        if name not in sections:
            continue
        lacking = [other for other in others if other not in sections]
        # A review needs any of them, the others need all
        if lacking and (name != "review" or len(lacking) == len(others)):
            listed = " or ".join(f"[{other}]" for other in lacking)
            problems.add((name,), f"needs {listed}, which the study does not have.")
    for platform in study.exports:
        if "design" not in sections:
            problems.add(("export", platform), "trials are exported: the study needs [design].")
        elif sections["design"].scale is Scale.CHOICE and platform in _OF_CONFIDENCE:
            problems.add(
                ("export", platform),
                'asks for confidence, and [design] has scale = "choice": leave one of them out. '
                "[export.csv] writes a table for a program of your own.",
            )
    responses = sections.get("responses")
    if isinstance(responses, ResponsesSection):
        _check_responses(study, responses, problems)


def _check_responses(study: Study, responses: ResponsesSection, problems: Problems) -> None:
    from contstim.experiments.platforms.platform import platform_named, platforms

    key = ("responses",)
    ways = {"file": responses.file, "platform": responses.platform, "simulate": responses.simulate}
    chosen = [name for name, value in ways.items() if value is not None]
    if len(chosen) != 1:
        problems.add(
            key,
            "name one of file (a table of responses), platform with data (what people answered "
            f"there), or simulate (a model), not {' and '.join(chosen) or 'none'}.",
        )
        return
    names = [model.name for model in study.models]
    if responses.simulate is not None and responses.simulate not in names:
        problems.add(
            (*key, "simulate"),
            f"{responses.simulate!r} is not a model of the study; there are {', '.join(names)}.",
        )
    if responses.platform is not None:
        platform = platform_named(responses.platform)
        if platform is None or platform.reader is None or not platform.reader.files:
            readable = [p.name for p in platforms() if p.reader is not None and p.reader.files]
            problems.add(
                (*key, "platform"),
                f"{responses.platform!r} is not a platform whose data can be read; there are "
                f"{', '.join(readable)}.",
            )
        if not responses.data:
            problems.add((*key, "platform"), 'name the files of the platform: data = ["…"].')
    elif responses.data:
        problems.add((*key, "data"), "is for platform: name the platform, too.")


def _check_settings(study: Study, problems: Problems) -> None:
    """Check texts that have a form of their own, such as `words = "7-9"`, and small tables."""
    from contstim.experiments.analysis.families import read_contrasts
    from contstim.experiments.responses.admission import CatchRule
    from contstim.optimization.search.recipes import recipe_named
    from contstim.reviews import read_reviews

    files, names = StudyFiles(study), [model.name for model in study.models]
    checks: list[tuple[str, str, Callable[[], object]]] = []
    if triplets := files.section("triplets", TripletsSection):
        checks.append(("triplets", "recipe", lambda: recipe_named(triplets.recipe)))
        checks.append(("triplets", "plausible", lambda: triplets.plausibility))
        checks.append(("triplets", "fluency", lambda: triplets.judge))
    vocabulary = files.section("vocabulary", VocabularySection)
    if vocabulary is not None and (vocabulary.zipf or vocabulary.every_word):
        checks.append(("vocabulary", "zipf", vocabulary.rules))
    if sentences := files.section("sentences", SentencesSection):
        checks.append(("sentences", "words", sentences.lengths))
    checks += [
        (name, "counts", partial(_check_counts, file, names))
        for name in ("pairs", "selection")
        if (file := getattr(study.sections.get(name), "counts", None)) is not None
    ]
    if (power := files.section("power", PowerSettings)) and power.pilot is not None:
        checks.append(("power", "pilot", power.measured))
    if analysis := files.section("analysis", AnalysisSettings):
        if analysis.contrasts is not None:
            stated = partial(read_contrasts, analysis.contrasts, names)
            checks.append(("analysis", "contrasts", stated))
        design = study.sections.get("design")
        if analysis.min_catch is not None and design is not None:
            rule = CatchRule(number=analysis.min_catch)
            checks.append(("analysis", "min_catch", partial(rule.required, design.catch_per_group)))
        if analysis.pair is not None:
            checks.append(("analysis", "pair", partial(_check_pair, analysis.pair, names)))
    checks += [("review", "decisions", partial(read_reviews, [path])) for path in files.decisions]
    for section, key, check in checks:
        try:
            if not problems.concern(section, key):
                check()
        except ContstimError as error:
            problems.add((section, key), str(error))


def _check_counts(path: Path, names: Sequence[str]) -> None:
    """Refuse a table of numbers of items that is about other models."""
    for pair in read_pair_counts(path).keys() - set(combinations(names, 2)):
        raise InputError(
            f"{path} has a number for {', '.join(pair)}, which are not two models of the study in "
            f"its order: {', '.join(names)}."
        )


def _check_pair(pair: Sequence[str], names: Sequence[str]) -> None:
    if len({*pair} & {*names}) < 2:
        raise InputError(f"name two of the study's models: {', '.join(names)}.")


def _check_numbers(study: Study, problems: Problems) -> None:
    """Check that numbers of items can be selected, and dealt out evenly."""
    numbers, sections = numbers_of(study), study.sections
    # A number that was refused stands at its default here, from which nothing follows
    groups = 0 if problems.concern("design", "groups") else numbers.groups
    for name in ("pairs", "selection"):
        if name in sections and sections[name].per_pair < 1:
            problems.add((name, "per_pair"), "must be 1 or more, not 0.")
    selection, quantiles = sections.get("selection"), 0
    if selection is not None and numbers.searched:
        quantiles = selection.quantiles
        for key, whom, number in _wanted(study, "selection", numbers.selected_of):
            if number > numbers.searched_each:
                problems.add(
                    key,
                    f"{number} triplets of {whom} cannot be selected from "
                    f"{numbers.searched_each}: raise per_pair under [triplets] to more than "
                    f"{number}.",
                )
            if quantiles and number % quantiles:
                multiple = _next_multiple(number, quantiles, numbers.groups)
                problems.add(
                    ("selection", "quantiles"),
                    f"{number} triplets of {whom} cannot be spread evenly over {quantiles} "
                    f"quantiles: choose per_pair = {multiple}, or quantiles that divide {number}, "
                    "or 0 for none.",
                )
    if numbers.groups and numbers.selected and numbers.groups < 3:
        problems.add(
            ("design", "groups"),
            "a triplet gives three trials for three different groups, and there are "
            f"{numbers.groups}: choose 3 groups or more.",
        )
    of_triplets = "triplets" if selection is None else "selection"
    for section, of_pairs, what, step in (
        ("pairs", numbers.pairs_of, "natural pairs", 1),
        (of_triplets, numbers.selected_of, "triplets", quantiles),
    ):
        for key, whom, number in _wanted(study, section, of_pairs):
            if groups and number % groups:
                multiple = _next_multiple(number, step, groups)
                problems.add(
                    key,
                    f"{number} {what} of {whom} cannot be dealt out evenly to {groups} "
                    f"groups: choose per_pair = {multiple}, or groups that divide {number}.",
                )
    if groups == numbers.groups and not problems.concern("triplets", "per_pair"):
        _check_sentences(study, numbers, problems)


def _wanted(
    study: Study, section: str, of_pairs: Mapping[ModelPair, int]
) -> list[tuple[Key, str, int]]:
    """Where numbers of items stand, of which pairs of models they are, and the numbers."""
    settings = study.sections.get(section)
    if settings is None:
        return []
    if getattr(settings, "counts", None) is None:
        return [((section, "per_pair"), "each pair of models", settings.per_pair)]
    key = (section, "counts")
    return [(key, " and ".join(pair), number) for pair, number in of_pairs.items()]


def _next_multiple(number: int, *divisors: int) -> int:
    """The least number, not below a number, that all divisors divide; 0 divides any."""
    step = lcm(*(max(1, divisor) for divisor in divisors))
    return -(-number // step) * step


def _check_sentences(study: Study, numbers: StudyNumbers, problems: Problems) -> None:
    if (numbers.random_per_group or numbers.catch_per_group) and not StudyFiles(study).natural:
        problems.add(
            ("design",),
            "random pairs and catch trials are made of natural sentences: name natural under "
            "[texts], or set random_per_group and catch_per_group to 0.",
        )
    most, needs = most_sentences(study), numbers.needs
    if most is not None and needs is not None and most < needs.in_all:
        problems.add(
            ("texts", "natural") if study.texts.natural else ("sentences", "file"),
            f"holds {most:,} sentences at most, and the study needs {needs.in_all:,} natural ones, "
            "so that none has to serve twice: give more text, or ask for less.",
        )
