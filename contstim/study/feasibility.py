"""Feasibility of a study: all that is known before anything costs time.

Missing files, models that do not load, sections that need others, and numbers that cannot go
together, such as ten triplets for each pair of models and four groups of participants.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from math import comb, lcm
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import ContstimError
from contstim.files import is_file
from contstim.models.catalog import check_model
from contstim.models.specifications import parse_specification
from contstim.scale import Scale
from contstim.study.places import StudyFiles
from contstim.study.sections import (
    ResponsesSection,
    ReviewSection,
    SentencesSection,
    TripletsSection,
    VocabularySection,
)
from contstim.study.single_steps import check_steps
from contstim.study.study import RESULTS, embedded_text

if TYPE_CHECKING:
    from collections.abc import Callable

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
    settings = {**study.sections, **{f"export.{n}": s for n, s in study.exports.items()}}
    for section, values in settings.items():
        for name, value in asdict(values).items():
            paths = value if isinstance(value, tuple) else (value,)
            for path in paths:
                if isinstance(path, Path):
                    if name == "library" and path.is_dir():
                        continue  # the only folder that is read
                    _check_file(path, (*section.split("."), name), problems)


def _check_file(path: Path, key: Key, problems: Problems, remedy: str = "") -> None:
    # What the study itself writes will be there, such as responses for a data set
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
    """Texts that have a form of their own, such as `words = "7-9"`."""
    sections = study.sections
    checks: list[tuple[str, str, Callable[[], object]]] = []
    triplets = sections.get("triplets")
    if isinstance(triplets, TripletsSection):
        from contstim.optimization.search.recipes import recipe_named

        checks.append(("triplets", "recipe", lambda: recipe_named(triplets.recipe)))
        checks.append(("triplets", "plausible", lambda: triplets.plausibility))
        checks.append(("triplets", "fluency", lambda: triplets.judge))
    vocabulary, sentences = sections.get("vocabulary"), sections.get("sentences")
    if isinstance(vocabulary, VocabularySection) and (vocabulary.zipf or vocabulary.every_word):
        checks.append(("vocabulary", "zipf", vocabulary.rules))
    if isinstance(sentences, SentencesSection):
        checks.append(("sentences", "words", sentences.lengths))
    review = sections.get("review")
    if isinstance(review, ReviewSection):
        from contstim.reviews import read_reviews

        checks += [
            ("review", "decisions", partial(read_reviews, [path]))
            for path in review.decisions
            if path.exists()
        ]
    for section, key, check in checks:
        try:
            check()
        except ContstimError as error:
            problems.add((section, key), str(error))


@dataclass(frozen=True)
class Counts:
    """Numbers of items of each kind that a study asks for; 0 of what it does not have.

    Attributes:
        models: that are compared.
        searched: triplets for each pair of models.
        selected: triplets for each pair of models that become trials.
        pairs: natural pairs for each pair of models.
        groups: of participants; 0 without a design.
        random_per_group: random natural pairs.
        catch_per_group: catch trials.
    """

    models: int
    searched: int
    selected: int
    pairs: int
    groups: int
    random_per_group: int
    catch_per_group: int

    @property
    def model_pairs(self) -> int:
        """Number of pairs of models."""
        return comb(self.models, 2)

    @property
    def trials_per_group(self) -> int:
        """Number of trials that every participant sees."""
        if not self.groups:
            return 0
        of_pairs = self.model_pairs * (self.pairs + 3 * self.selected)
        return of_pairs // self.groups + self.random_per_group + self.catch_per_group

    @property
    def sentences(self) -> int:
        """Least number of natural sentences that the study needs, where each serves once."""
        fillers = self.groups * (2 * self.random_per_group + self.catch_per_group)
        return self.model_pairs * (self.searched + 2 * self.pairs) + fillers


def counts_of(study: Study) -> Counts:
    """Numbers of items that a study asks for."""
    sections = study.sections
    triplets, selection = sections.get("triplets"), sections.get("selection")
    pairs, design = sections.get("pairs"), sections.get("design")
    searched = triplets.per_pair if triplets else 0
    return Counts(
        len(study.models),
        searched,
        selection.per_pair if selection else searched,
        pairs.per_pair if pairs else 0,
        design.groups if design else 0,
        design.random_per_group if design else 0,
        design.catch_per_group if design else 0,
    )


def most_sentences(study: Study) -> int | None:
    """No more natural sentences than these can come of the study's text; None where unknown."""
    files = StudyFiles(study)
    text = study.texts.natural
    embedded = None if text is None else embedded_text(text)
    if embedded is not None:
        return embedded.sentences
    path = files.natural if files.natural_text is None else files.natural_text
    if path is None or study.texts.prose or not is_file(path):
        return None
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())


def _check_numbers(study: Study, problems: Problems) -> None:
    sections, counts = study.sections, counts_of(study)
    for name in ("pairs", "triplets", "selection"):
        if name in sections and sections[name].per_pair < 1:
            problems.add((name, "per_pair"), f"must be 1 or more, not {sections[name].per_pair}.")
    selection, design = sections.get("selection"), sections.get("design")
    own_counts = getattr(selection, "counts", None) or getattr(
        sections.get("pairs"), "counts", None
    )
    if selection is not None and counts.searched:
        if counts.selected > counts.searched:
            problems.add(
                ("selection", "per_pair"),
                f"{counts.selected} triplets of each pair of models cannot be selected from "
                f"{counts.searched}: raise per_pair under [triplets] to more than "
                f"{counts.selected}.",
            )
        quantiles = selection.quantiles
        if quantiles < 0:
            problems.add(("selection", "quantiles"), f"must be 0 or more, not {quantiles}.")
        elif quantiles and counts.selected % quantiles and not own_counts:
            step = lcm(quantiles, max(1, counts.groups))
            multiple = -(-counts.selected // step) * step
            problems.add(
                ("selection", "quantiles"),
                f"{counts.selected} triplets cannot be spread evenly over {quantiles} quantiles: "
                f"choose per_pair = {multiple}, or quantiles that divide {counts.selected}, or 0 "
                f"for none.",
            )
    if design is not None:
        _check_design(study, counts, problems)
    most = most_sentences(study)
    if most is not None and counts.model_pairs and most < counts.sentences:
        problems.add(
            ("texts", "natural") if study.texts.natural else ("sentences", "file"),
            f"holds {most:,} sentences at most, and the study needs {counts.sentences:,} natural "
            f"ones, so that none has to serve twice: give more text, or ask for less.",
        )


def _check_design(study: Study, counts: Counts, problems: Problems) -> None:
    if counts.groups < 1:
        problems.add(("design", "groups"), f"must be 1 or more, not {counts.groups}.")
        return
    if counts.selected and counts.groups < 3:
        problems.add(
            ("design", "groups"),
            f"a triplet gives three trials for three different groups, and there are "
            f"{counts.groups}: choose 3 groups or more.",
        )
    for section, number, what in (
        ("pairs", counts.pairs, "natural pairs"),
        ("selection" if "selection" in study.sections else "triplets", counts.selected, "triplets"),
    ):
        settings = study.sections.get(section)
        if settings is None or getattr(settings, "counts", None) is not None:
            continue
        if number % counts.groups:
            step = counts.groups
            if section == "selection":
                step = lcm(step, max(1, settings.quantiles))
            nearest = -(-number // step) * step
            problems.add(
                (section, "per_pair"),
                f"{number} {what} of each pair of models cannot be dealt out evenly to "
                f"{counts.groups} groups: choose per_pair = {nearest}, or groups that divide "
                f"{number}.",
            )
    wants_fillers = counts.random_per_group or counts.catch_per_group
    if wants_fillers and StudyFiles(study).natural is None:
        problems.add(
            ("design",),
            "random pairs and catch trials are made of natural sentences: name natural under "
            "[texts], or set random_per_group and catch_per_group to 0.",
        )
