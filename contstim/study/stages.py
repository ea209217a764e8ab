"""Stages of a study: each section is a step that reads the files of other sections.

Each field of a step that names a file declares the kind of this file. A kind is a content, such as
`pairs` or `trials` (`contstim.options.Help.kind`):

    [sentences] --sentences--> [select.natural] --pairs-----+
         |                                                  +--> [design] --trials--> [analyze]
         +--------> [triplets] --triplets--> [select.triplets] --triplets--+

If a section does not set such a field, the field gets a file of the same kind, which another
section writes or names. Other fields get values of the whole study: texts, models, seed, store, and
options for loading models. All paths are relative to the study's folder, and the stages run in this
folder.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, replace
from itertools import product
from math import ceil, comb
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.experiments.design.waves import WaveRules
from contstim.files.files import path_inside
from contstim.files.records import Record, record_path
from contstim.options import Models, Reads, Writes
from contstim.steps import BY_DEFAULT, step_named, step_names
from contstim.steps.generation import GenerateSentences
from contstim.steps.platforms import WriteQuestions
from contstim.steps.step import Step, fields_of
from contstim.study.study import (
    NATURAL_TEXT,
    QUESTIONS,
    RESULTS,
    STORE,
    TRAINING,
    Section,
    StudyStage,
    embedded_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.steps.step import Field
    from contstim.study.problems import Key, Problems
    from contstim.study.study import Study


def with_stages(study: Study, sections: Sequence[Section], problems: Problems) -> Study:
    """Return the study with its stages, each after the stages whose files it reads."""
    wiring = _Wiring(study, sections, problems)
    stages = []
    # A draft is a stage whose inputs are not known yet; `wiring.stage` may append a draft
    for draft in wiring.drafts:
        with problems.of(draft.section.key):
            stages.append(wiring.stage(draft))
    keys = [section.key for section in sections]
    stages.sort(key=lambda stage: (*keys, stage.key).index(stage.key))
    kinds = {kind for draft in wiring.drafts for kind in (*draft.reads, *draft.writes)}
    paths_of_kind = {kind: wiring.find(kind, Step, by_default=False) for kind in sorted(kinds)}
    files = {kind: values[0] for kind, values in paths_of_kind.items() if len(values) == 1}
    ordered = _sort_stages([*_texts_and_models(study, sections), *stages])
    planned = wiring.planned_participants
    return replace(study, stages=ordered, files=files, planned_participants=planned)


def _texts_and_models(study: Study, sections: Sequence[Section]) -> Iterator[StudyStage]:
    # A generated natural text has sentences of the length that [sentences] requests. Each generated
    # text has a different seed
    words = next((s.values.get("words") for s in sections if s.key == ("sentences",)), None) or "8"
    length = int(words) if words.isdecimal() else None
    texts = [
        (("texts", "training"), study.texts.training, TRAINING, None),
        (("texts", "natural"), study.texts.natural, NATURAL_TEXT, length),
        *((("models", m.name), m.own_text, m.embedded_text, None) for m in study.models),
    ]
    for seed, (key, text, out, words_each) in enumerate(texts, study.seed):
        number = embedded_text(text)
        if number is not None:
            step = GenerateSentences(out=out, number=number, words=words_each, seed=seed)
            about = f"write {number:,} sentences of the embedded English"
            name = f"text of {key[1]}" if key[0] == "models" else f"text {key[1]}"
            yield StudyStage(name, about, step, key)
    for model in study.models:
        if model.training is not None:
            key = ("models", model.name)
            yield StudyStage(f"model {model.name}", f"train {model.name}", model.training, key)
    if study.questions:
        writing = WriteQuestions(questions=study.questions, out=QUESTIONS)
        about = "write the questions to participants"
        yield StudyStage("questions", about, writing, ("questions",))


@dataclass(frozen=True)
class _Draft:
    """A stage whose inputs are not known yet.

    Attributes:
        section: section of the stage; if the study file has no such section, a section without
            keys.
        choice: index of the kind of input. For `pairs|triplets`, 0 is `pairs` and 1 is `triplets`.
        outputs: name of a field → path of the output.
        reads: kinds of the inputs.
        writes: kind → path of an output.
    """

    section: Section
    choice: int
    name: str
    outputs: Mapping[str, Path]
    reads: frozenset[str]
    writes: Mapping[str, Path]


def _draft(section: Section, choice: int = 0, *, is_first: bool = True) -> _Draft:
    """Return the draft of a stage of a section.

    If the section can read several kinds of input, `choice` is the index of one kind. Only the
    first stage of a section uses the paths that the section sets. Its other stages use default
    paths.
    """
    step, fields = section.step, fields_of(section.step)
    if not is_first:
        paths = {f.name for f in fields if isinstance(f.note, Writes) or len(f.note.kinds) > 1}
        values = {name: value for name, value in section.values.items() if name not in paths}
        section = replace(section, values=values)
    reads: set[str] = set()
    outputs: dict[str, Path] = {}
    writes: dict[str, Path] = {}
    for field in fields:
        note, section_path = field.note, section.values.get(field.name)
        kind = note.kind_of(choice)
        if isinstance(note, Writes):
            path = note.path_of(step.name, choice) if note.name or not outputs else ""
            if section_path or (path and not note.when):
                outputs[field.name] = section_path or path_inside(RESULTS, path)
                writes |= {kind: outputs[field.name] / note.part} if kind else {}
        elif kind:
            reads.add(kind)
    name = f"{section.name} {(*_list_alternatives(section), '')[choice]}".rstrip()
    return _Draft(section, choice, name, outputs, frozenset(reads), writes)


def _list_alternatives(section: Section) -> tuple[str, ...]:
    """Return the kinds of input of a section, one per stage; empty if the section has one stage."""
    for field in fields_of(section.step):
        several = len(field.note.kinds) > 1 and not isinstance(field.note, Writes)
        if several and field.default is MISSING and field.name not in section.values:
            return field.note.kinds
    return ()


class _Wiring:
    """Drafts of all stages, and values of the fields that sections do not set."""

    def __init__(self, study: Study, sections: Sequence[Section], problems: Problems) -> None:
        self._study, self._sections = study, sections
        options: dict[Key, dict[str, Any]] = {}
        for section in sections:
            defaults = {field.name: field.default for field in fields_of(section.step)}
            options[section.key] = {**defaults, **section.values}
        power, design = options.get(("power",)), options.get(("design",))
        self.planned_participants: int | None = None
        if power and design:
            groups = power["power_groups"] or design["groups"]
            self.planned_participants = groups * power["participants"]
        self._study_values = {**vars(study.loading), "seed": study.seed, "store": STORE}
        self._supplied: dict[str, Any] = {
            "models": study.specifications,
            "judge": study.judge or None,
            "training text": study.texts.training_text,
            "training texts": study.training_texts,
            "natural text": study.texts.natural_text,
            "questions": QUESTIONS if study.questions else None,
            "planned participants": self.planned_participants,
            "twins": (design and design["twins"]) or None,
            "items of waves": self._items_of_waves(),
        }
        self.drafts = [_draft(section) for section in sections if not _list_alternatives(section)]
        for section in sections:
            kinds = _list_alternatives(section)
            choices = [n for n, kind in enumerate(kinds) if self.find(kind, section.step)]
            self.drafts += [_draft(section, n, is_first=n == choices[0]) for n in choices]
            if kinds and not choices:
                listed = ", ".join(kinds)
                problems.add(section.key, f"no section writes any of {listed}: name a file.")

    def _items_of_waves(self) -> int | None:
        """Return how many triplets per pair of models the next wave needs; None without [waves].

        Waves of participants take part one after another, and each wave gets new items.
        """
        section = next((s for s in self._sections if s.key == ("waves",)), None)
        if section is None:
            return None
        record = Record.from_file(record_path(self._study.folder / _draft(section).outputs["out"]))
        if record is not None and "triplets_per_pair" in record.facts:
            return int(record.facts["triplets_per_pair"])
        values = section.values
        rules = WaveRules(**{name: values[name] for name in vars(WaveRules()) if name in values})
        n_matches = max(1, comb(len(self._study.models), 2))
        items = ceil(rules.lists(0) * rules.trials_per_person / n_matches)
        # Reviewers may reject some of the triplets
        return items if not values.get("review") else ceil(1.25 * items)

    def find(
        self,
        kind: str,
        reader: type[Step[Any]],
        *,
        is_setting: bool = False,
        by_default: bool = True,
    ) -> list[Any]:
        """Return all values that a field of a kind, such as `trials`, could get.

        The values are paths, settings of other sections, or one value of the whole study.

        Args:
            kind: kind of the values.
            reader: step that reads one of the values.
            is_setting: whether the values are settings, not files. Settings come only from sections
                whose commands precede the reader's command in `step_names`.
            by_default: whether a stage may be added to write a file of this kind.
        """
        drafts = [w for w in self.drafts if kind in w.writes and w.section.step is not reader]
        # A stage can both read and write the kind; for example, a selection reads and writes
        # triplets. Other stages then read only the output of such a stage
        drafts = [draft for draft in drafts if kind in draft.reads] or drafts
        if drafts:
            return [draft.writes[kind] for draft in drafts]
        if self._supplied.get(kind) is not None:
            return [self._supplied[kind]]
        names = step_names()
        earlier = names[: names.index(reader.name)] if is_setting else names
        values = [
            value
            for section in self._sections
            for field in fields_of(section.step)
            if section.step is not reader and section.step.name in earlier
            if field.note.kind == kind and isinstance(field.note, Reads) is not is_setting
            if (value := section.values.get(field.name))
        ]
        if values or not by_default:
            return [*dict.fromkeys(values)]
        return self._add_default(kind)

    def _add_default(self, kind: str) -> list[Path]:
        """Add a stage that writes a file of a kind, if its step needs no section (`BY_DEFAULT`).

        Return a list with the path of this file; the list is empty if no stage was added.
        """
        for step in filter(None, map(step_named, BY_DEFAULT)):
            empty = Section(step.name, (step.name,), step, {})
            section = next((section for section in self._sections if section.step is step), empty)
            needed = [field.note for field in fields_of(step) if field.default is MISSING]
            needed = [note for note in needed if note.kind and not isinstance(note, Writes)]
            for choice in range(max(len(note.kinds) for note in needed)):
                draft = _draft(section, choice, is_first=False)
                reads = [note.kind_of(choice) for note in needed]
                if kind in draft.writes and all(self.find(read, step) for read in reads):
                    self.drafts.append(draft)
                    return [draft.writes[kind]]
        return []

    def stage(self, draft: _Draft) -> StudyStage:
        """Return the stage of a draft, with values for the fields that its section does not set.

        Raises:
            ContstimError: if a value is missing, or options contradict each other.
        """
        kind, study = draft.section.step, self._study
        fields = {field.name: field for field in fields_of(kind)}
        values, settings = {**draft.outputs, **draft.section.values}, []
        for name, field in fields.items():
            value = None if name in values else self._value(field, draft)
            if value is not None:
                values[name] = value
                is_setting = not isinstance(field.note, Reads | Models)
                if field.note.kind and (is_setting or field.note.kind == "judge"):
                    settings.append(name)
        if missing := [n for n, f in fields.items() if f.default is MISSING and n not in values]:
            raise InputError(" ".join(f"`{name}` is missing." for name in missing))
        model_texts = {model.name: model.text for model in study.models}
        for name, value in draft.section.values.items():
            if isinstance(fields[name].note, Models):
                texts = value if isinstance(value, tuple) else (value,)
                specifications = tuple(model_texts.get(text, text) for text in texts)
                values[name] = specifications if isinstance(value, tuple) else specifications[0]
        text = values.get("text")
        if text is not None and study.is_prose(text):
            if "prose" not in fields and fields["text"].note.content == "text":
                raise InputError(f"reads one sentence a line, and {text} is running prose.")
            values.setdefault("prose", True)
        step: Any
        # `settings` names fields whose values come from other sections or from the whole study.
        # Leave out such a value if it contradicts the settings of this section
        for left_out in ([], *([name] for name in settings), settings):
            try:
                step = kind.of({n: v for n, v in values.items() if n not in left_out})
                break
            except InputError:
                if left_out == settings:
                    raise
        for name, field in fields.items():
            note = field.note
            if isinstance(note, Writes) and note.when and name not in values:
                path = path_inside(RESULTS, note.name)
                step = replace(step, **{name: path}) if attrgetter(note.when)(step) else step
        if not step.writes():
            raise InputError("`out` must name the file to write.")
        return StudyStage(
            draft.name, kind.summary(), step, draft.section.key, study.loaded_by(step)
        )

    def _value(self, field: Field, draft: _Draft) -> Any:
        """Return the value of a field that a section does not set; None means the default.

        Raises:
            InputError: if several sections provide a value, or no section provides a required one.
        """
        note, kind, step = field.note, field.note.kind_of(draft.choice), draft.section.step
        if isinstance(note, Writes):
            return None
        if not kind:
            # Judges are models that choose sensible sentences. If a step loads only judges, and no
            # judge is set, options for loading models have no effect
            models = [f.name for f in fields_of(step) if isinstance(f.note, Models)]
            judge = draft.section.values.get("judge", self._study.judge)
            is_loading = hasattr(self._study.loading, field.name)
            has_no_effect = is_loading and models == ["judge"] and not judge
            is_separate = field.name in step.separate_fields
            return None if is_separate or has_no_effect else self._study_values.get(field.name)
        if kind == "models" and draft.section.values.get("scores"):  # scores are read instead
            return None
        candidates = self.find(kind, step, is_setting=not isinstance(note, Reads | Models))
        if len(candidates) > 1:
            paths = ", ".join(map(str, candidates))
            raise InputError(f"`{field.name}` must name one of several files of {kind}: {paths}.")
        if not candidates and field.default is MISSING:
            reason = "[texts] names no" if kind in self._supplied else "no section writes"
            raise InputError(f"`{field.name}` must name a file, because {reason} {kind}.")
        return candidates[0] if candidates else None


def _sort_stages(stages: Sequence[StudyStage]) -> tuple[StudyStage, ...]:
    """Sort the stages, so that each stage comes after all stages whose files it reads.

    Otherwise the stages keep their order.
    """
    ordered: dict[str, StudyStage] = {}
    written = [(stage, path) for stage in stages for path in stage.writes]
    begun: set[str] = set()  # prevents infinite recursion if stages read each other's files

    def take(stage: StudyStage) -> None:
        if stage.name not in begun:
            begun.add(stage.name)
            for read, (writer, path) in product(stage.reads, written):
                overlap = read.is_relative_to(path) or path.is_relative_to(read)
                if overlap and writer.name not in begun:
                    take(writer)
            ordered[stage.name] = stage

    for stage in stages:
        take(stage)
    return tuple(ordered.values())
