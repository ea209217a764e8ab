"""Feasibility of a study: all that is known before anything costs time.

Missing files, models that do not load, sections that need others, and numbers that cannot go
together, such as ten triplets for each pair of models and four groups of participants.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import asdict
from functools import partial
from itertools import combinations
from math import lcm
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import ContstimError, InputError
from contstim.experiments.platforms.texts import LANGUAGES, has_texts
from contstim.files.files import is_file
from contstim.files.records import record_path
from contstim.items.counts import read_pair_counts
from contstim.models.catalog import check_model
from contstim.models.specifications import parse_model
from contstim.options import Help, Reads
from contstim.steps.step import fields_of
from contstim.study.amounts import StudyNumbers, most_sentences
from contstim.study.owners import conflicts, section_of
from contstim.study.places import StudyFiles
from contstim.study.single_steps import check_input, check_steps, step_files
from contstim.study.study import RESULTS, embedded_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.models.specifications import Specification
    from contstim.steps.design import DesignSettings
    from contstim.study.amounts import ModelPair
    from contstim.study.problems import Problems
    from contstim.study.sections import ResponsesSection
    from contstim.study.study import Study
    from contstim.study.toml_lines import Key

TEXT, _ANY_FILE = Reads("A text.", content="text"), Reads("A file.")
_NEEDS_MODELS = ("scores", "pairs", "triplets")
_OF_BUTTONS = ("pcibex", "psychopy", "gorilla", "qualtrics")
_NEEDS = {
    "selection": ("triplets",),
    "power": ("design",),
    "responses": ("design",),
    "analysis": ("design", "responses"),
}


def check_study(study: Study, problems: Problems) -> None:
    """Add what is wrong with a study whose keys and types are right.

    The current folder is the study's.
    """
    _check_texts(study, problems)
    _check_models(study, problems)
    for key, path, note in (*_files(study), *step_files(study)):
        check_input(path, note, key, problems)
    _check_sections(study, problems)
    _check_settings(study, problems)
    _check_numbers(study, problems)
    if not problems:
        check_steps(study, problems)
    if not problems:
        _check_stages(study, problems)


def _check_texts(study: Study, problems: Problems) -> None:
    for name in ("training", "natural"):
        text = getattr(study.texts, name)
        if text is not None and not embedded_text(text):
            remedy = "Give a file, or english:N, such as english:2000, for embedded English."
            check_input(Path(text), TEXT, ("texts", name), problems, remedy)
    for model in study.models:
        if model.training is None:
            continue
        key, text = ("models", model.name), model.own_text
        if text is None and study.texts.training is None:
            problems.add(key, "is to be trained on what? Name training under [texts].")
        elif text is not None and not embedded_text(text):
            check_input(Path(text), TEXT, (*key, "text"), problems)
    vocabulary = study.sections.get("vocabulary")
    if study.texts.training is None and vocabulary is not None and vocabulary.file is None:
        told = "words are counted in a text: name training under [texts], or file."
        problems.add(("vocabulary",), told)
    if StudyFiles(study).natural is None:
        told = "needs natural sentences: name natural under [texts], or file under [sentences]."
        for name in {"sentences", *_NEEDS_MODELS} & study.sections.keys():
            problems.add((name,), told)


def _check_models(study: Study, problems: Problems) -> None:
    trained = _trained(study)
    for model in study.models:
        if model.location not in trained:  # else it will be there
            with problems.of(("models", model.name)):
                check_model(parse_model(model.specification, model.name), study.loading)
    wanted = [name for name in _NEEDS_MODELS if name in study.sections]
    if len(study.models) < 2 and wanted and not problems.concern("models"):
        named = f"[{wanted[0]}] compares models, and the study names {len(study.models)}"
        problems.add(("models",), f"{named}: name at least two.")


def _check_judge(judge: Specification | None, study: Study) -> None:
    """Refuse a further model that is not there and that no part of the study trains."""
    made = _trained(study) | {str(values.get("out")) for values in study.steps.values()}
    made |= {model.location for model in study.models}  # checked for themselves
    if judge is not None and made.isdisjoint((judge.location, relpath(judge.location))):
        check_model(judge, study.loading)


def _trained(study: Study) -> set[str]:
    """Where models of the study will stand that it trains."""
    return {model.location for model in study.models if model.training is not None}


def _files(study: Study) -> Iterator[tuple[Key, Path, Help]]:
    """Every file or folder that a section names, with its key and what it must be."""
    settings: dict[Key, Any] = {(name,): values for name, values in study.sections.items()}
    settings |= {("export", name): values for name, values in study.exports.items()}
    for section, values in settings.items():
        notes = {field.name: field.note for field in fields_of(type(values))}
        for name, value in asdict(values).items():
            note = notes.get(name, _ANY_FILE)
            for path in value if isinstance(value, tuple) else (value,):
                if isinstance(path, Path) or (path is not None and note.content):
                    yield (*section, name), Path(path), note


def _check_stages(study: Study, problems: Problems) -> None:
    """Check that each path has one owner, and that results that are read will be there."""
    from contstim.study.stages import stages_of

    stages = stages_of(study)
    for claim, other in conflicts(study, stages):
        told = f"{claim.owner} would write {claim.path}, which belongs to {other.owner}: name "
        told += "another path."
        problems.add(claim.key, told)
    for stage in stages:
        key = section_of(study, stage)
        with problems.of(key):
            stage.step.check()
        for text in stage.step.specifications():
            with problems.of(key):
                _check_judge(parse_model(text, text), study)
    written = {path for stage in stages for path in stage.writes}
    for key, path, _ in (*_files(study), *step_files(study)):
        if written.isdisjoint((path, *path.parents)) and not os.path.lexists(path):
            problems.add(key, f"there is no file {str(path)!r}, and no stage writes it.")


def _check_sections(study: Study, problems: Problems) -> None:
    """Check that the sections that a section needs are there."""
    sections, needs = study.sections, dict(_NEEDS)
    if not {"pairs", "triplets", "design"} & sections.keys():  # any of them will do
        needs["review"] = ("pairs", "triplets", "design")
    for name in needs.keys() & sections.keys():
        if lacking := [f"[{other}]" for other in needs[name] if other not in sections]:
            told = f"needs {' or '.join(lacking)}, which the study does not have."
            problems.add((name,), told)
    for platform, settings in study.exports.items():
        key = ("export", platform)
        language = getattr(settings, "language", LANGUAGES[0])
        edited = [*(RESULTS / "export" / platform).rglob("labels.csv")]
        if not has_texts(language) and not edited:
            told = f"there are no texts in {language!r}, but in {', '.join(LANGUAGES)}. Export in "
            told += "one of these, put yours in place of its texts, and then name the language."
            problems.add((*key, "language"), told)
        if study.questions and getattr(settings, "questions", None) is not None:
            told = "the study has questions of its own, [[questions]]: leave one of them out."
            problems.add((*key, "questions"), told)
        if "design" not in sections:
            problems.add(key, "trials are exported: the study needs [design].")
        elif not sections["design"].scale.buttons and platform in _OF_BUTTONS:
            told = 'makes buttons, and [design] has scale = "slider": leave one of them out.'
            problems.add(key, f"{told} [export.jspsych] and [export.jatos] make a slider.")
    if "responses" in sections:
        _check_responses(study, problems)


def _check_responses(study: Study, problems: Problems) -> None:
    from contstim.experiments.platforms.platform import platforms

    key, responses = ("responses",), study.sections["responses"]
    ways = [
        name for name in ("file", "platform", "simulate") if getattr(responses, name) is not None
    ]
    if len(ways) != 1:
        told = "name one of file (a table of responses), platform with data (what people answered "
        told += f"there), or simulate (a model), not {' and '.join(ways) or 'none'}."
        problems.add(key, told)
        return
    names = [model.name for model in study.models]
    readable = [p.name for p in platforms() if p.reader is not None and p.reader.files]
    if responses.simulate is not None and responses.simulate not in names:
        told = f"{responses.simulate!r} is not a model of the study; there are {', '.join(names)}."
        problems.add((*key, "simulate"), told)
    if responses.platform not in (None, *readable):
        told = f"{responses.platform!r} is not a platform whose data can be read"
        problems.add((*key, "platform"), f"{told}; there are {', '.join(readable)}.")
    if responses.platform is not None and not responses.data:
        problems.add((*key, "platform"), 'name the files of the platform: data = ["…"].')
    if responses.platform is None and responses.data:
        problems.add((*key, "data"), "is for platform: name the platform, too.")


def _check_settings(study: Study, problems: Problems) -> None:
    """Check texts that have a form of their own, such as `words = "7-9"`, and small tables."""
    for section, name, check in _checks(study):
        key = (*section.split("."), name)
        if not problems.concern(*key):
            with problems.of(key):
                check()


def _checks(study: Study) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Section, such as `export.jspsych`, key, and what is to raise no error."""
    from contstim.experiments.analysis.families import read_contrasts
    from contstim.experiments.platforms.jspsych.folder import check_practice
    from contstim.experiments.responses.questionnaire import read_questions
    from contstim.items.reviews import read_reviews
    from contstim.optimization.search.recipes import recipe_named
    from contstim.steps.design import read_attention

    sections, names = study.sections, [model.name for model in study.models]
    if triplets := sections.get("triplets"):
        yield "triplets", "recipe", lambda: recipe_named(triplets.recipe)
        if triplets.plausible is not None:  # else as the recipe has it
            yield "triplets", "plausible", lambda: _check_judge(triplets.judge, study)
    vocabulary = sections.get("vocabulary")
    if vocabulary is not None and (vocabulary.zipf or vocabulary.every_word):
        yield "vocabulary", "zipf", vocabulary.rules
    if "sentences" in sections:
        yield "sentences", "words", sections["sentences"].lengths
    for name in ("pairs", "selection"):
        if (file := getattr(sections.get(name), "counts", None)) is not None:
            yield name, "counts", partial(_check_counts, file, names)
    if (power := sections.get("power")) and power.pilot is not None:
        yield "power", "pilot", power.measured
    responses, design = sections.get("responses"), sections.get("design")
    if responses is not None and responses.file is not None and is_file(responses.file):
        yield "responses", "file", partial(_check_table, responses, design)
    if analysis := sections.get("analysis"):
        if analysis.contrasts is not None:
            yield "analysis", "contrasts", partial(read_contrasts, analysis.contrasts, names)
        yield "analysis", "max_missing", partial(_check_missing, study)
        if analysis.min_catch is not None and design is not None:
            yield "analysis", "min_catch", partial(_check_catch, analysis.min_catch, design)
        if analysis.pair is not None:
            yield "analysis", "pair", partial(_check_pair, analysis.pair, names)
    if design is not None and design.attention is not None:
        yield "design", "attention", partial(read_attention, design.attention)
    for platform, settings in study.exports.items():
        for name, check in (("questions", read_questions), ("practice", check_practice)):
            if (path := getattr(settings, name, None)) is not None:
                yield f"export.{platform}", name, partial(check, path)
    for path in StudyFiles(study).decisions:
        yield "review", "decisions", partial(read_reviews, [path])


def _check_missing(study: Study) -> None:
    """Refuse deadlines after which everybody who misses a pair would be left out."""
    if study.sections["analysis"].max_missing:
        return
    for platform, settings in study.exports.items():
        if deadline := getattr(settings, "deadline", 0):
            raise InputError(
                f"after the deadline of [export.{platform}], {deadline:g} s, answers are missing, "
                "and with max_missing = 0 whoever misses a single one is left out: state the share "
                "that people may miss, such as max_missing = 0.1."
            )


def _check_catch(number: int, design: DesignSettings) -> None:
    from contstim.experiments.responses.admission import CatchRule
    from contstim.steps.design import read_attention

    further = 0
    if design.attention is not None:
        try:
            further = len(read_attention(design.attention))
        except ContstimError:  # said of the table itself
            return
    CatchRule(number=number).required(design.catch_per_group + further)


def _check_counts(path: Path, names: Sequence[str]) -> None:
    """Refuse a table of numbers of items that is about other models."""
    for pair in read_pair_counts(path).keys() - set(combinations(names, 2)):
        raise InputError(
            f"{path} has a number for {', '.join(pair)}, which are not two models of the study in "
            f"its order: {', '.join(names)}."
        )


def _check_table(section: ResponsesSection, design: DesignSettings | None) -> None:
    """Refuse a file that is not a table of responses."""
    from contstim.experiments.responses.table import read_responses

    scale = section.scale
    if design is not None and scale is None and not record_path(str(section.file)).is_file():
        scale = design.scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said by the stage that reads them
        read_responses(str(section.file), scale=scale)


def _check_pair(pair: Sequence[str], names: Sequence[str]) -> None:
    if len({*pair} & {*names}) < 2:
        raise InputError(f"name two of the study's models: {', '.join(names)}.")


def _check_numbers(study: Study, problems: Problems) -> None:
    """Check that numbers of items can be selected, and dealt out evenly."""
    numbers, sections = StudyNumbers(study), study.sections
    # A number that was refused stands at its default here, from which nothing follows
    groups = 0 if problems.concern("design", "groups") else numbers.groups
    selection = sections.get("selection")
    quantiles = selection.quantiles if selection is not None and numbers.searched else 0
    for name in {"pairs", "selection"} & sections.keys():
        if sections[name].per_pair < 1:
            problems.add((name, "per_pair"), "must be 1 or more, not 0.")
    if selection is not None and numbers.searched:
        most = numbers.searched_each
        for key, whom, number in _wanted(study, "selection", numbers.selected_of):
            if number > most:
                told = f"{number} triplets of {whom} cannot be selected from {most}: raise per_pair"
                problems.add(key, f"{told} under [triplets] to more than {number}.")
            if quantiles and number % quantiles:
                multiple = _next_multiple(number, quantiles, numbers.groups)
                told = f"{number} triplets of {whom} cannot be spread evenly over {quantiles} "
                told += f"quantiles: choose per_pair = {multiple}, or quantiles that divide "
                problems.add(("selection", "quantiles"), f"{told}{number}, or 0 for none.")
    if numbers.selected and 0 < numbers.groups < 3 and sections["design"].twins:
        told = (
            "with `twins` a triplet gives three trials for three different groups, and there are "
        )
        problems.add(("design", "groups"), f"{told}{numbers.groups}: choose 3 groups or more.")
    minimal = sections.get("minimal_pairs")
    if minimal is not None and groups and minimal.per_pair // 2 % groups:
        multiple = 2 * _next_multiple(minimal.per_pair // 2, groups)
        told = f"{minimal.per_pair // 2} minimal pairs of each half cannot be dealt out evenly to "
        told += f"{groups} groups: choose per_pair = {multiple}, or groups that divide "
        problems.add(("minimal_pairs", "per_pair"), f"{told}{minimal.per_pair // 2}.")
    of_triplets = "triplets" if selection is None else "selection"
    for section, of_pairs, what, step in (
        ("pairs", numbers.pairs_of, "natural pairs", 1),
        (of_triplets, numbers.selected_of, "triplets", quantiles),
    ):
        for key, whom, number in _wanted(study, section, of_pairs):
            if groups and number % groups:
                multiple = _next_multiple(number, step, groups)
                told = f"{number} {what} of {whom} cannot be dealt out evenly to {groups} groups"
                told += f": choose per_pair = {multiple}, or groups that divide {number}."
                problems.add(key, told)
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
        told = "random pairs and catch trials are made of natural sentences: name natural under "
        told += "[texts], or set random_per_group and catch_per_group to 0."
        problems.add(("design",), told)
    most, needs = most_sentences(study), numbers.needs
    if most is not None and needs is not None and most < needs.in_all:
        key = ("texts", "natural") if study.texts.natural else ("sentences", "file")
        told = f"holds {most:,} sentences at most, and the study needs {needs.in_all:,} natural "
        problems.add(
            key, f"{told}ones, so that none has to serve twice: give more text, or ask for less."
        )
