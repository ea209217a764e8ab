"""Fields that several steps share, and functions that read texts and words for steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from contstim.english.words import english_rules
from contstim.errors import InputError
from contstim.files.files import is_file
from contstim.items.stimuli import read_stimuli
from contstim.models.loading import Loading
from contstim.optimization.search.settings import SearchSettings
from contstim.options import Aside, Help, Models, Reads, Writes, reads_kind
from contstim.words.corpus import TextNotes, read_sentences
from contstim.words.vocabulary import REPEATABLE_ENGLISH, Vocabulary, read_repeatable
from contstim.words.word_rules import WordRules, read_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contstim.reporter import Reporter
    from contstim.words.sentence import Sentence


_Limits = TypeVar("_Limits", bound=SearchSettings)
_WORDS = ("allow", "exclude")  # fields with words, or files of words

GivenModels = Annotated[
    tuple[str, ...],
    Models(
        "A model, such as kenlm:trigram.arpa or gpt2=hf:gpt2@chain; NAME is the model's name in "
        "files, figures and tables.",
        flag="--model",
        kind="models",
    ),
]
ModelContexts = Annotated[
    tuple[str, ...],
    Help(
        "Text that a causal model reads before each sentence; this text is not scored.",
        metavar="NAME=TEXT",
        panel=Loading.PANEL,
    ),
]

TEXT = Reads("UTF-8 text, one sentence a line; - for stdin.", content="text", kind="training text")
SENTENCES = reads_kind("Sentences, one a line, or a table with columns of sentences.", "sentences")
Text = Annotated[Path, TEXT]
Sentences = Annotated[Path, SENTENCES]
TRIALS = reads_kind("The table of trials, from `design`.", "trials")
SHOWN_TRIALS = replace(TRIALS, text="The table of trials that participants saw.")
TrialScores = Annotated[
    Path,
    Reads(
        "Scores of the sentences of the trials, from `score`.",
        content="scores",
        kind="scores of trials",
    ),
]
Language = Annotated[
    Literal["en", "any"],
    Help("Rules for words: rules of English (en), or rules for all languages (any)."),
]
Blocked = Annotated[
    Path | None,
    Help("Blocked words, one per line; by default contstim's list for English.", content="words"),
]
Prose = Annotated[
    bool, Help("Split running text into sentences, instead of reading one sentence a line.")
]
STORE_NAME = "contstim.sqlite"
StoreBeside = Annotated[
    Path | None, Aside("Database of scores; by default contstim.sqlite in the folder of --out.")
]

# The outputs are report.md and report.html, not the whole folder. The folder may contain the
# database of scores, which later commands change
ReportFolder = Annotated[
    Path, Writes("The folder to write.", beside=("/report.md", "/report.html"), stem=True)
]

Reviews = Annotated[
    tuple[Path, ...],
    Reads(
        "A file of reviews. If there were several rounds of reviews, name the files in the order "
        "of the rounds. Items that no reviewer rejected are kept if possible.",
        content="reviews",
    ),
]

OfferedWords = Annotated[
    Path | None,
    reads_kind(
        "Words that a search may insert; by default the frequent words of the models' training "
        "text.",
        "vocabulary",
    ),
]
Uncapped = Annotated[
    Path | None,
    Help(
        "With --word-cap: words whose uses are not limited, one per line.",
        content="repeatable words",
    ),
]


def load_words(limits: _Limits) -> _Limits:
    """Return the settings; if a setting names a file of words, the words replace the file name.

    Raises:
        InputError: if a file cannot be read.
    """
    read: dict[str, Any] = {}
    for name in (name for name in _WORDS if hasattr(limits, name)):
        # A value is the name of a file if such a file exists; otherwise, it is a word
        lists = (Vocabulary.load(t).words if is_file(t) else (t,) for t in getattr(limits, name))
        read[name] = tuple(sorted({word.lower() for words in lists for word in words}))
    return replace(limits, **read)


def files_of_words(limits: SearchSettings) -> list[Path]:
    """Return the files that the settings of a search name: lists of words, and table of tags."""
    words = [Path(text) for name in _WORDS for text in getattr(limits, name, ()) if is_file(text)]
    return words if limits.tags is None else [*words, Path(limits.tags)]


def uncapped_words(uncapped: Path | None, word_cap: int | None) -> frozenset[str]:
    """Return the words whose number of uses is not limited by `word_cap`.

    Raises:
        InputError: if the file `uncapped` is set but `word_cap` is not, or if it cannot be read.
    """
    if uncapped is None:
        return REPEATABLE_ENGLISH
    if word_cap is None:
        raise InputError("`uncapped` needs `word_cap`. Set both, or neither.")
    return read_repeatable(uncapped)


def language_rules(language: str, blocked: Path | None) -> WordRules:
    """Return the rules for the words of a language; names are allowed."""
    rules = english_rules(names=True) if language == "en" else WordRules()
    return rules if blocked is None else replace(rules, blocked=read_words(blocked))


def read_text(path: Path, reporter: Reporter, *, prose: bool = False) -> Iterator[Sentence]:
    """Yield the sentences of a text; report progress and, at the end, normalised lines."""
    notes = TextNotes()
    yield from reporter.reading("sentences", read_sentences(path, prose=prose, notes=notes))
    _report(path, notes, reporter)


def read_sentence_file(path: Path, reporter: Reporter) -> list[Sentence]:
    """Return the sentences of a text or table; report normalised and tokenised sentences."""
    notes = TextNotes()
    sentences = read_stimuli(path, notes)
    _report(path, notes, reporter)
    return sentences


def report_sentences(path: Path, sentences: Iterable[Sentence], reporter: Reporter) -> None:
    """Report normalised and tokenised sentences, for example of a benchmark."""
    notes = TextNotes()
    for sentence in sentences:
        notes.normalise(sentence.text)
    _report(path, notes, reporter)


def _report(path: Path, notes: TextNotes, reporter: Reporter) -> None:
    for remark in notes.remarks(path):
        reporter.say(remark)
    for warning in notes.warnings(path):
        reporter.warn(warning)
    if notes.facts:
        reporter.record("texts", {path.name: notes.facts})
