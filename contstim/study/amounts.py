"""Count the items of a study, the natural sentences that it needs, and those that it has."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from math import inf, lcm
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from contstim.errors import ContstimError, InputError
from contstim.experiments.design.population import SECONDS_PER_TRIAL
from contstim.experiments.design.summary import sentences_needed
from contstim.files.files import is_file
from contstim.items.scores import read_pair_counts
from contstim.items.stimuli import read_stimuli
from contstim.steps.design import MakeDesign
from contstim.steps.generation import GenerateSentences
from contstim.steps.selection import SelectMinimalPairs, SelectPairs, SelectTriplets
from contstim.steps.sentences import FindSentences
from contstim.steps.training import TrainNgram
from contstim.steps.triplets import SearchTriplets
from contstim.steps.vocabulary import MakeVocabulary
from contstim.study.study import embedded_text
from contstim.words.corpus import read_sentences
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.reporter import Reporter
    from contstim.steps.sentences import FoundSentences
    from contstim.study.problems import Key, Problems
    from contstim.study.states import StageState
    from contstim.study.study import Study
    from contstim.words.sentence import Sentence

ModelPair: TypeAlias = tuple[str, str]
Selection: TypeAlias = SelectPairs | SelectTriplets | SearchTriplets


class StudyNumbers:
    """Numbers that follow from a study file; 0 for items that the study does not have.

    Attributes:
        searched_each: number of triplets to search for each pair of models. A triplet is a natural
            sentence and two synthetic sentences.
        searched: total number of triplets to search.
        selected_of: pair of models → number of triplets that become trials.
        selected: total number of triplets that become trials.
        pairs_of: pair of models → number of natural pairs. A natural pair is two natural sentences.
        pairs_each: number of natural pairs for each pair of models. If a table of counts sets a
            number for each pair of models, use `pairs_of` instead.
        trials_each: maximum number of trials of a participant.
        minutes: duration of a participant's trials, not counting pauses and instructions.
        new_sentences: number of sentences in the trials, not counting natural sentences.
    """

    def __init__(self, study: Study) -> None:
        design, search = study.step(MakeDesign), study.step(SearchTriplets)
        selection = study.step(SelectTriplets)
        pairs, minimal = study.step(SelectPairs), study.step(SelectMinimalPairs)
        self.models = len(study.models)
        self.searched_each = search.settings.per_pair if search else 0
        self.pairs_each = pairs.settings.per_pair if pairs else 0
        self.selected_of = _counts_by_pair(study, selection or search)
        self.pairs_of = _counts_by_pair(study, pairs)
        self.model_pairs = len(self.pairs_of)
        self.searched = self.model_pairs * self.searched_each
        self.selected = sum(self.selected_of.values())
        self.natural_pairs = sum(self.pairs_of.values())
        self.minimal_pairs = self.model_pairs * minimal.settings.per_pair if minimal else 0
        self.groups = design.groups if design else 0
        self.random_per_group = design.random_per_group if design else 0
        self.catch_per_group = design.catch_per_group if design else 0
        fillers = self.groups * (self.random_per_group + self.catch_per_group)
        trials_of_triplet = 3 if design and design.twins else 1
        of_items = trials_of_triplet * self.selected + self.natural_pairs + self.minimal_pairs
        self.trials = of_items + fillers if self.groups else 0
        self.trials_each = -(-self.trials // self.groups) if self.groups else 0
        seconds = design.seconds_per_trial if design else SECONDS_PER_TRIAL
        self.minutes = self.trials_each * seconds / 60
        # Each triplet has two new sentences, each minimal pair two, and each catch trial one
        self.new_sentences = 2 * (self.selected + self.minimal_pairs)
        self.new_sentences += self.groups * self.catch_per_group

    @property
    def sentence_needs(self) -> tuple[int, list[tuple[str, int, int, int]]]:
        """Results of `sentences_needed`; 0 and no rows if the study has fewer than two models."""
        if self.models < 2:
            return 0, []
        return sentences_needed(
            self.models,
            # All selected triplets have different natural sentences. The searches need only
            # `searched_each` sentences in total, because searches for different pairs of models may
            # use the same sentence
            triplets_per_pair=-(-max(self.selected, self.searched_each) // self.model_pairs),
            pairs_per_pair=self.pairs_each,
            groups=self.groups,
            random_per_group=self.random_per_group,
            catch_per_group=self.catch_per_group,
        )

    @property
    def needed_sentences(self) -> int:
        """Number of natural sentences that the study needs if it uses each sentence once."""
        return self.sentence_needs[0]


def _counts_by_pair(study: Study, step: Selection | None) -> dict[ModelPair, int]:
    """Return pair of models → number of items, from the table of counts or `per_pair`."""
    counts: dict[ModelPair, int] = {}
    path = getattr(step, "counts", None) if step else None
    if path is not None:
        with suppress(ContstimError):  # the check of the table reports the error
            counts = read_pair_counts(path)
    per_pair = step.settings.per_pair if step else 0
    return {pair: counts.get(pair, per_pair) for pair in combinations(study.names, 2)}


def max_sentences(study: Study) -> int | None:
    """Return the maximum number of natural sentences in the study's text; None if unknown."""
    if (embedded := embedded_text(study.texts.natural)) is not None:
        return embedded
    path = study.texts.natural_text or study.files.get("sentences")
    if path is None or study.texts.prose or not is_file(path):
        return None
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())


def check_numbers(study: Study, problems: Problems) -> None:
    """Check that enough items can be selected, and that all groups can get equally many items."""
    numbers = StudyNumbers(study)
    # If the number of groups is invalid, the problem is already reported, and `numbers` has the
    # default number of groups. Do not check this default
    groups = 0 if problems.has_problem("design", "groups") else numbers.groups
    search, selection = study.step(SearchTriplets), study.step(SelectTriplets)
    quantiles = selection.settings.quantiles if selection and search else 0
    for selecting in (study.step(SelectPairs), selection):
        if selecting and selecting.settings.per_pair < 1:
            problems.add((*_key(study, selecting), "per_pair"), "must be 1 or more, not 0.")
    design = study.step(MakeDesign)
    if design and design.twins and numbers.selected and 0 < numbers.groups < 3:
        problems.add(
            ("design", "groups"),
            "must be at least 3 with `twins`, because the three trials of a triplet are for three "
            f"different groups, got {numbers.groups}.",
        )
    minimal = study.step(SelectMinimalPairs)
    half = minimal.settings.per_pair // 2 if minimal else 0
    if groups and half % groups:
        problems.add(
            ("select", "minimal_pairs", "per_pair"),
            f"each of two models is right in {half} minimal pairs, which cannot be divided evenly "
            f"among {groups} groups: choose per_pair = {2 * _next_multiple(half, groups)}, or "
            f"a number of groups that divides {half}.",
        )
    for step, of_pairs, items, n_quantiles in (
        (study.step(SelectPairs), numbers.pairs_of, "natural pairs", 0),
        (selection or search, numbers.selected_of, "triplets", quantiles),
    ):
        for key, pair, number in _numbers_of(study, step, of_pairs):
            multiple = _next_multiple(number, n_quantiles, groups)
            if search and step is selection and number > numbers.searched_each:
                problems.add(
                    key,
                    f"{number} triplets of {pair} cannot be selected from {numbers.searched_each}: "
                    f"raise per_pair under [triplets] to at least {number}.",
                )
            if n_quantiles and number % n_quantiles:
                problems.add(
                    ("select", "triplets", "quantiles"),
                    f"{number} triplets of {pair} cannot be spread evenly over {n_quantiles} "
                    f"quantiles: choose per_pair = {multiple}, a number of quantiles that divides "
                    f"{number}, or quantiles = 0.",
                )
            if groups and number % groups:
                problems.add(
                    key,
                    f"{number} {items} of {pair} cannot be divided evenly among {groups} "
                    f"groups: choose per_pair = {multiple}, or a number of groups that divides "
                    f"{number}.",
                )
    if groups == numbers.groups and not problems.has_problem("triplets", "per_pair"):
        maximum, needed = max_sentences(study), numbers.needed_sentences
        if maximum is not None and maximum < needed:
            problems.add(
                ("texts", "natural"),
                f"has at most {maximum:,} sentences, but the study needs {needed:,} natural "
                "sentences to use each only once: give more text, or request fewer items.",
            )


def _numbers_of(
    study: Study, step: Selection | None, of_pairs: Mapping[ModelPair, int]
) -> Iterator[tuple[Key, str, int]]:
    """Yield a key in the study file, a text that names pairs of models, and a number of items."""
    if step is None:
        return
    if getattr(step, "counts", None) is None:
        yield (*_key(study, step), "per_pair"), "each pair of models", step.settings.per_pair
        return
    for pair, number in of_pairs.items():
        yield (*_key(study, step), "counts"), " and ".join(pair), number


def _key(study: Study, step: Selection) -> Key:
    return next(stage.key for stage in study.stages if stage.step is step)


def _next_multiple(number: int, *divisors: int) -> int:
    multiple = lcm(*(max(1, divisor) for divisor in divisors))
    return -(-number // multiple) * multiple


@dataclass(frozen=True)
class NaturalSupply:
    """Natural sentences of a study.

    Attributes:
        number: number of natural sentences.
        path: file of the natural sentences, or text that is searched for natural sentences.
        in_text: number of all sentences of the text; None without a text.
        found_sentences: result of the search in the text; None if a stage has done this search.
        may_be_fewer: True if `number` may be too high. The vocabulary may then include words that
            models do not know, because no model was loaded to check this.
        vocabulary: vocabulary that a stage has not written yet; otherwise None.
    """

    number: int
    path: Path
    in_text: int | None
    found_sentences: FoundSentences | None = None
    may_be_fewer: bool = False
    vocabulary: Vocabulary | None = None


def natural_supply(
    study: Study, states: Sequence[StageState], reporter: Reporter, deadline: float = inf
) -> NaturalSupply | None:
    """Return the natural sentences that a study has, or that a run will find in the study's text.

    If earlier stages are not done, this function makes their outputs in memory. These are sentences
    of the embedded English (`english:N`), and a vocabulary. The vocabulary may include words that
    models do not know.

    The current folder must be the study's folder. If `time.monotonic()` reaches `deadline` while a
    text is read, an error is raised.

    Returns:
        The natural sentences. None if the study has no natural sentences, or if another stage has
        not written the text of the natural sentences yet.

    Raises:
        ContstimError: if a text or word list cannot be read or has no usable content, or the texts
            are too long to be read in time.
    """
    natural: Path | None = study.files.get("sentences")
    steps = [state.stage.step for state in states if state.state != "done"]
    step = next((e for e in steps if isinstance(e, FindSentences) and e.out == natural), None)
    if step is None:
        if natural is None or not is_file(natural):
            return None
        records = [state.record for state in states if natural in state.stage.writes]
        facts = records[0].facts if records and records[0] is not None else {}
        in_text = facts["kept"] + sum(facts["left_out"].values()) if "left_out" in facts else None
        return NaturalSupply(len({*read_stimuli(natural)}), natural, in_text)
    unwritten = {step.out: step for step in steps if isinstance(step, GenerateSentences)}

    def sentences_of(path: Path, *, prose: bool) -> Iterable[Sentence] | None:
        if path in unwritten:
            return _until(deadline, path, unwritten[path].sentences())
        sentences = read_sentences(path, prose=prose)
        if not is_file(path):
            return None
        return _until(deadline, path, reporter.reading(f"sentences of {path}", sentences))

    text = sentences_of(step.text, prose=step.settings.prose)
    if text is None:
        return None
    exclude = (sentences_of(path, prose=step.settings.prose) or () for path in step.exclude)
    vocabulary, may_be_fewer = None, False
    makers = {step.out: step for step in steps if isinstance(step, MakeVocabulary)}
    if step.vocabulary in makers:
        making = makers[step.vocabulary]
        if making.text and (training := sentences_of(making.text, prose=making.prose)):
            vocabulary = making.choose(training)[0]
        # An n-gram model knows all words of the text on which it is trained
        may_be_fewer = not all(
            isinstance(model.training, TrainNgram) and model.training.text == making.text
            for model in study.models
        )
    elif step.vocabulary is not None:
        vocabulary = Vocabulary.load(step.vocabulary)
    result = step.settings.find(text, vocabulary, exclude)
    if step.judge:
        result = result.with_half()
    number, in_text = len(result.sentences), result.in_text
    words = vocabulary if step.vocabulary in makers else None
    return NaturalSupply(number, step.text, in_text, result, may_be_fewer, words)


def _until(deadline: float, path: Path, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    for sentence in sentences:
        if monotonic() > deadline:
            raise InputError(
                f"{path} is too long to be counted now. `contstim run --until sentences` counts it."
            )
        yield sentence


def count_missing(numbers: StudyNumbers, supply: NaturalSupply | None) -> int:
    """Return the number of natural sentences that a study lacks; 0 if this number is unknown."""
    return 0 if supply is None else max(numbers.needed_sentences - supply.number, 0)


def shortages(numbers: StudyNumbers, supply: NaturalSupply | None) -> Iterator[str]:
    """Yield a message with a remedy if there are fewer natural sentences than the study needs."""
    lacks = count_missing(numbers, supply)
    if not lacks or supply is None:
        return
    remedy = f"give {lacks:,} more"
    if supply.in_text is not None:
        remedy = "give more text"
        if supply.number:
            in_all = supply.in_text * numbers.needed_sentences / supply.number
            remedy += f" (in all about {float(f'{in_all:.2g}'):,.0f} sentences of this kind)"
    yield (
        f"The study needs {numbers.needed_sentences:,} natural sentences, each used once, "
        f"but {supply.path} has {supply.number:,}: {remedy}, loosen [sentences], enlarge "
        "[vocabulary], or request fewer items."
    )
