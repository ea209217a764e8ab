"""Natural sentences that a study has or will find in its text, counted before a run."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.files.files import is_file
from contstim.items.stimuli import read_stimuli
from contstim.steps.generation import GenerateSentences
from contstim.steps.sentences import FindSentences
from contstim.steps.training import TrainNgram
from contstim.steps.vocabulary import MakeVocabulary
from contstim.words.corpus import read_sentences
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from contstim.reporter import Reporter
    from contstim.steps.sentences import FoundSentences
    from contstim.study.amounts import StudyNumbers
    from contstim.study.states import StageState
    from contstim.study.study import Study
    from contstim.words.sentence import Sentence


@dataclass(frozen=True)
class NaturalSupply:
    """Natural sentences of a study.

    Attributes:
        number: number of natural sentences.
        path: file of the sentences, or the text to search.
        in_text: number of sentences of the text; None without a text.
        found_sentences: result of the search in the text; None if a stage already did it.
        may_be_fewer: true if models that were not loaded may not know all words.
        vocabulary: words that a stage has not written yet; None without such a stage.
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
    """Find the natural sentences that a study has, or that its rules allow from its text.

    Outputs of earlier stages that are not done are made in memory: sentences of the embedded
    English and the vocabulary, except words that its models do not know.

    The current folder is the study's.

    Args:
        study: as `read_study` reads it.
        states: states of its stages.
        reporter: receives the progress of reading texts.
        deadline: time, by `monotonic`, after which no text is read further.

    Returns:
        None if the study has no natural sentences, or another stage has not written their text yet.

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
        """The sentences of a text; None where another stage has yet to write it."""
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
        text_of_words = (
            None if making.text is None else sentences_of(making.text, prose=making.settings.prose)
        )
        if text_of_words is not None:
            vocabulary = making.settings.choose(text_of_words)[0]
        # An n-gram model certainly knows all words of the text that it is trained on
        may_be_fewer = not all(
            isinstance(model.training, TrainNgram) and model.training.text == making.text
            for model in study.models
        )
    elif step.vocabulary is not None:
        vocabulary = Vocabulary.load(step.vocabulary)
    result = step.settings.find(text, vocabulary, exclude)
    number, in_text = len(result.sentences), result.in_text
    words = vocabulary if step.vocabulary in makers else None
    return NaturalSupply(number, step.text, in_text, result, may_be_fewer, words)


def _until(deadline: float, path: Path, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """Sentences of a text, as long as there is time."""
    for sentence in sentences:
        if monotonic() > deadline:
            raise InputError(
                f"{path} is too long to be counted now. `contstim run --until sentences` counts it."
            )
        yield sentence


def count_missing(numbers: StudyNumbers, supply: NaturalSupply | None) -> int:
    """Number of natural sentences that a study lacks; 0 where it is not known."""
    needs = numbers.needs
    return 0 if needs is None or supply is None else max(needs.in_all - supply.number, 0)


def too_few(numbers: StudyNumbers, supply: NaturalSupply | None) -> Iterator[str]:
    """Caution where there are fewer natural sentences than the study needs: what to do."""
    lacks = count_missing(numbers, supply)
    if not lacks or supply is None or numbers.needs is None:
        return
    remedy = f"give {lacks:,} more"
    if supply.in_text is not None:
        remedy = "give more text"
        if supply.number:
            in_all = supply.in_text * numbers.needs.in_all / supply.number
            remedy += f" (of this kind about {float(f'{in_all:.2g}'):,.0f} sentences in all)"
    yield (
        f"The study needs {numbers.needs.in_all:,} natural sentences, each used once, "
        f"and {supply.path} has {supply.number:,}: {remedy}, loosen [sentences] or enlarge "
        "[vocabulary], or ask for less."
    )
