"""Feasibility of a study: all that is known before anything costs time.

Missing files, models that do not load, and numbers that exclude each other, such as ten triplets
for each pair of models and four groups of participants. A single step checks its own options
(`Step.check`).
"""

from __future__ import annotations

import os
from math import lcm
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import ContstimError, InputError
from contstim.experiments.platforms.texts import LANGUAGES, has_texts
from contstim.experiments.responses.questionnaire import questions_beside
from contstim.models.catalog import check_model
from contstim.models.specifications import parse_model
from contstim.options import Aside, Help, Reads, Writes
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.contents import check_input
from contstim.steps.design import MakeDesign
from contstim.steps.platforms import ExportTrials
from contstim.steps.selection import SelectMinimalPairs, SelectPairs, SelectTriplets
from contstim.steps.step import fields_of
from contstim.steps.targets import check_targets, identity, store_paths, targets
from contstim.steps.triplets import SearchTriplets
from contstim.study.amounts import StudyNumbers, most_sentences
from contstim.study.study import ARCHIVED, BEGUN, LOCK, PAGE, RESULTS, STORE, embedded_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contstim.study.amounts import ModelPair, Selection
    from contstim.study.problems import Key, Problems
    from contstim.study.study import Section, Study, StudyStage

    _Claim = tuple[str, Path, Key]  # owner, such as `the stage 'design'`, its path, and its key

_TEXT = Reads("A text.", content="text")
_OF_BUTTONS = ("pcibex", "psychopy", "gorilla", "qualtrics")


def check_study(study: Study, sections: Sequence[Section], problems: Problems) -> None:
    """Check a study whose keys and types are right, and add its problems.

    The current folder is the study's.
    """
    _check_files(study, sections, problems)
    _check_models(study, problems)
    _check_numbers(study, problems)
    _check_together(study, problems)
    if problems:
        return
    for stage in study.stages:
        with problems.of(stage.key):
            _check_stage(stage, study)
    for (owner, path, key), (first_owner, *_) in () if problems else _conflicts(study):
        message = f"{owner} would write {path}, which belongs to {first_owner}: name another path."
        problems.add(key, message)


def _check_files(study: Study, sections: Sequence[Section], problems: Problems) -> None:
    """Check each file or name of a model that the study file names."""
    texts: list[tuple[Key, str | None]]
    texts = [(("texts", name), getattr(study.texts, name)) for name in ("training", "natural")]
    texts += [(("models", model.name, "text"), model.own_text) for model in study.models]
    inputs: list[tuple[Key, Any, Help]] = []
    for key, text in texts:
        if text == "english":
            problems.add(key, "must be a file, or english:N, such as english:2000, got 'english'.")
        elif text and not embedded_text(text):
            inputs.append((key, Path(text), _TEXT))
    for section in sections:
        for field in fields_of(section.step):
            note, value = field.note, section.values.get(field.name)
            values = value if isinstance(value, tuple) else (value,)
            # What Aside names is no input, except a folder such as that of a pilot
            if not isinstance(note, Writes) and not (isinstance(note, Aside) and not note.folder):
                inputs += [((*section.key, field.name), value, note) for value in values]
    written = {path for stage in study.stages for path in stage.writes}
    for key, value, note in inputs:
        with problems.of(key):
            if note.content == "model names":
                if value not in (None, *study.names):
                    names = ", ".join(study.names)
                    raise InputError(f"must be a model of the study ({names}), got {value!r}.")
            elif isinstance(value, Path) or (value is not None and note.content):
                path = Path(value)
                if RESULTS not in path.parents:
                    check_input(path, note, study.names)
                elif written.isdisjoint((path, *path.parents)) and not os.path.lexists(path):
                    raise InputError(f"there is no file {str(path)!r}, and no stage writes it.")


def _check_models(study: Study, problems: Problems) -> None:
    """Check that models load, and that a study that compares models has two."""
    trained = {model.location for model in study.models if model.training is not None}
    for model in study.models:
        if model.location not in trained:  # else it will be there
            with problems.of(("models", model.name)):
                check_model(parse_model(model.specification, model.name), study.loading)
    compared = [
        stage for stage in study.stages if stage.step.name.startswith(("select", "triplets"))
    ]
    if len(study.models) < 2 and compared and not problems.concern("models"):
        message = f"[{'.'.join(compared[0].key)}] compares models, and the study names "
        problems.add(("models",), f"{message}{len(study.models)}: name at least two.")


def _check_stage(stage: StudyStage, study: Study) -> None:
    """Check a step with all its values.

    Raises:
        ContstimError: if options exclude each other, a model is missing, or an output has a wrong
            place.
    """
    stage.step.check()
    check_targets(stage.step)
    for path in stage.step.writes():
        if RESULTS not in path.parents or ".." in path.parts:
            raise InputError(f"writes {path}: name a path in {RESULTS}/.")
    written = {path.as_posix() for writer in study.stages for path in writer.writes}
    written |= {model.location for model in study.models}  # checked for themselves
    for text in stage.step.specifications():
        model = parse_model(text, text)
        if written.isdisjoint((model.location, relpath(model.location))):
            check_model(model, study.loading)


def _check_together(study: Study, problems: Problems) -> None:
    """Check what two sections say of the same thing."""
    design, analysis = study.step(MakeDesign), study.step(AnalyzeResponses)
    for stage in study.stages:
        if not isinstance(stage.step, ExportTrials):
            continue
        settings, platform = stage.step.settings, stage.key[1]
        language = getattr(settings, "language", LANGUAGES[0])
        if not has_texts(language) and not [*stage.step.out.rglob("labels.csv")]:
            problems.add(
                (*stage.key, "language"),
                f"there are no texts in {language!r}, but in {', '.join(LANGUAGES)}. Export in one "
                "of these, put yours in place of its texts, and then name the language.",
            )
        deadline = getattr(settings, "deadline", 0)
        if deadline and analysis is not None and not analysis.settings.max_missing:
            problems.add(
                ("analyze", "max_missing"),
                f"after the deadline of [export.{platform}], {deadline:g} s, answers are missing, "
                "and max_missing = 0 leaves out each participant who misses one: state the share "
                "that may be missing, such as max_missing = 0.1.",
            )
        if design is not None and not design.settings.scale.buttons and platform in _OF_BUTTONS:
            problems.add(
                stage.key,
                'makes buttons, and [design] has scale = "slider": leave one of them out. '
                "[export.jspsych] and [export.jatos] make a slider.",
            )
    if design is not None and analysis is not None and analysis.settings.min_catch is not None:
        with problems.of(("analyze", "min_catch")):
            _check_catch(analysis.settings.min_catch, design)


def _check_catch(number: int, design: MakeDesign) -> None:
    from contstim.experiments.responses.admission import CatchRule
    from contstim.steps.design import read_attention

    further = 0
    if (table := design.settings.attention) is not None:
        try:
            further = len(read_attention(table))
        except ContstimError:  # said of the table itself
            return
    CatchRule(number=number).required(design.settings.catch_per_group + further)


def _conflicts(study: Study) -> Iterator[tuple[_Claim, _Claim]]:
    """Yield each claim on a path that has another owner, with the claim of that owner.

    Paths are compared without links, `..` and upper case. The current folder is the study's.
    """
    claims: list[_Claim] = [
        ("the study file", Path(study.path.name), ()),
        ("the page of the study", PAGE, ()),
        ("the lock of the study", LOCK, ()),
        ("the record of begun stages", BEGUN, ()),
        ("the archived results", ARCHIVED, ()),
        *(("the store of the study", path, ()) for path in store_paths(STORE)),
    ]
    for stage in study.stages:
        owner, section = f"the stage {stage.name!r}", stage.key
        claims += [(owner, path, (*section, name)) for name, path in targets(stage.step)]
        record, store = stage.step.record_path(), stage.step.store_path()
        if record is not None:
            claims.append((owner, record, section))
        if store is not None and identity(store) != identity(STORE):
            claims += [(owner, path, (*section, "store")) for path in store_paths(store)]
        claims += [
            (owner, questions_beside(value), section)
            for field, value in stage.step.values()
            if isinstance(field.note, Writes) and field.note.kind == "responses"
        ]
    claimed: dict[Path, _Claim] = {}
    inside: dict[Path, _Claim] = {}  # folder → a claim on something in it
    for claim in claims:
        path = identity(claim[1])
        around = (claimed[folder] for folder in (path, *path.parents) if folder in claimed)
        first_claim = next(around, inside.get(path))
        if first_claim is not None and first_claim[0] != claim[0]:
            yield claim, first_claim
        claimed.setdefault(path, claim)
        for folder in path.parents:
            inside.setdefault(folder, claim)


def _check_numbers(study: Study, problems: Problems) -> None:
    """Check that numbers of items can be selected, and assigned evenly to groups."""
    numbers = StudyNumbers(study)
    # A number that was refused has its default here, from which nothing follows
    groups = 0 if problems.concern("design", "groups") else numbers.groups
    search, selection = study.step(SearchTriplets), study.step(SelectTriplets)
    quantiles = selection.settings.quantiles if selection and search else 0
    if selection and search:
        _check_selection(study, selection, numbers, problems)
    for selecting in (study.step(SelectPairs), selection):
        if selecting and selecting.settings.per_pair < 1:
            problems.add((*_key(study, selecting), "per_pair"), "must be 1 or more, not 0.")
    design = study.step(MakeDesign)
    if design and design.settings.twins and numbers.selected and 0 < numbers.groups < 3:
        problems.add(
            ("design", "groups"),
            "with `twins` a triplet gives three trials for three different groups, and there are "
            f"{numbers.groups}: choose 3 groups or more.",
        )
    minimal = study.step(SelectMinimalPairs)
    half = minimal.settings.per_pair // 2 if minimal else 0
    if groups and half % groups:
        problems.add(
            ("select", "minimal_pairs", "per_pair"),
            f"{half} minimal pairs of each half cannot be dealt out evenly to {groups} groups: "
            f"choose per_pair = {2 * _next_multiple(half, groups)}, or groups that divide {half}.",
        )
    for items, of_pairs, item_name, step in (
        (study.step(SelectPairs), numbers.pairs_of, "natural pairs", 1),
        (selection or search, numbers.selected_of, "triplets", quantiles),
    ):
        for key, whom, number in _numbers_of(study, items, of_pairs):
            if groups and number % groups:
                multiple = _next_multiple(number, step, groups)
                problems.add(
                    key,
                    f"{number} {item_name} of {whom} cannot be dealt out evenly to {groups} "
                    f"groups: choose per_pair = {multiple}, or groups that divide {number}.",
                )
    if groups == numbers.groups and not problems.concern("triplets", "per_pair"):
        maximum, needs = most_sentences(study), numbers.needs
        if maximum is not None and needs is not None and maximum < needs.in_all:
            problems.add(
                ("texts", "natural"),
                f"holds {maximum:,} sentences at most, and the study needs {needs.in_all:,} "
                "natural ones, so that none has to serve twice: give more text, or ask for less.",
            )


def _check_selection(
    study: Study, selection: SelectTriplets, numbers: StudyNumbers, problems: Problems
) -> None:
    """Check that the searches suffice for the selection, and that quantiles divide it."""
    n_searched, quantiles = numbers.searched_each, selection.settings.quantiles
    for key, whom, number in _numbers_of(study, selection, numbers.selected_of):
        if number > n_searched:
            problems.add(
                key,
                f"{number} triplets of {whom} cannot be selected from {n_searched}: raise per_pair "
                f"under [triplets] to more than {number}.",
            )
        if quantiles and number % quantiles:
            multiple = _next_multiple(number, quantiles, numbers.groups)
            problems.add(
                ("select", "triplets", "quantiles"),
                f"{number} triplets of {whom} cannot be spread evenly over {quantiles} quantiles: "
                f"choose per_pair = {multiple}, or quantiles that divide {number}, or 0 for none.",
            )


def _numbers_of(
    study: Study, step: Selection | None, of_pairs: Mapping[ModelPair, int]
) -> Iterator[tuple[Key, str, int]]:
    """Yield the key of each number of items, its pairs of models, and the number."""
    if step is None:
        return
    if getattr(step.settings, "counts", None) is None:
        yield (*_key(study, step), "per_pair"), "each pair of models", step.settings.per_pair
        return
    for pair, number in of_pairs.items():
        yield (*_key(study, step), "counts"), " and ".join(pair), number


def _key(study: Study, step: Selection) -> Key:
    return next(stage.key for stage in study.stages if stage.step is step)


def _next_multiple(number: int, *divisors: int) -> int:
    """The least number, not below a number, that all divisors divide; 0 divides any."""
    multiple = lcm(*(max(1, divisor) for divisor in divisors))
    return -(-number // multiple) * multiple
