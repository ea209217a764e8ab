"""Options that several commands share, each with its help text written once."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from contstim.word_rules import WordRules

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides everything that is left to chance.")]
Folder = Annotated[Path, typer.Option(help="The folder to write.")]

# Models, and how they are loaded

_MODEL = typer.Option(
    metavar="[NAME=]MODEL",
    help="A model, such as kenlm:trigram.arpa or gpt2=hf:gpt2@chain; NAME stands for it in files, "
    "figures and tables. Repeatable.",
)
Model = Annotated[list[str], _MODEL]
Models = Annotated[list[str] | None, _MODEL]
Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    typer.Option(help="Where networks run; auto: a GPU where there is one."),
]
Dtype = Annotated[
    Literal["auto", "float32", "bfloat16", "float16"],
    typer.Option(help="What transformers compute in; auto: float32. Half precision makes ties."),
]
Prompt = Annotated[
    str | None,
    typer.Option(help="What causal transformers read before a sentence; it never counts."),
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code",
        help="Let transformers run Python code that comes with a checkpoint. Read it first.",
    ),
]


# Texts, words and sentences

_TEXT_HELP = "UTF-8 text, one sentence a line; - for stdin."
Text = Annotated[Path, typer.Option(help=_TEXT_HELP)]
OptionalText = Annotated[Path | None, typer.Option(help=_TEXT_HELP)]
Prose = Annotated[
    bool, typer.Option("--prose", help="The text is running prose: split it into sentences.")
]
Sentences = Annotated[
    Path, typer.Option(help="Sentences, one a line, or a table with columns of sentences.")
]
Words = Annotated[
    Path | None,
    typer.Option(help="Words to use; by default those frequent in the models' own text."),
]

# Words of a text


Language = Annotated[
    Literal["en", "any"],
    typer.Option(help="en: rules for English; any: what Unicode says of every script."),
]
Blocked = Annotated[
    Path | None,
    typer.Option(help="The block list, one word a line, instead of the one for English."),
]


def word_rules(language: str, blocked: Path | None) -> WordRules:
    """What counts as a word of a language, names included, with the block list that is given."""
    from contstim.english.words import english_rules
    from contstim.word_rules import WordRules, read_words

    rules = english_rules(names=True) if language == "en" else WordRules()
    return rules if blocked is None else replace(rules, blocked=read_words(blocked))


@dataclass(frozen=True, kw_only=True)
class WordChoice:
    """Which words of a text are taken."""

    language: Language = "en"
    names: Annotated[
        Literal["keep", "drop"] | None,
        typer.Option(help="Words that are always capitalised; by default dropped from English."),
    ] = None
    without: Annotated[Path | None, typer.Option(help="Leave out these words, one a line.")] = None
    blocked: Blocked = None
    zipf: Annotated[
        str | None,
        typer.Option(
            metavar="LOW-HIGH",
            help="Keep words of these frequencies in the text, on the Zipf scale, such as 3.5-7.",
        ),
    ] = None
    every_word: Annotated[
        bool,
        typer.Option("--every-word", help="Take whatever the text holds, words or not."),
    ] = False

    @property
    def keeps_names(self) -> bool:
        """Whether names stay."""
        return self.names == "keep" or (self.names is None and self.language == "any")

    def rules(self) -> WordRules | None:
        """What counts as a word; None: everything."""
        from contstim.english.words import english_rules
        from contstim.errors import InputError
        from contstim.word_rules import WordRules, read_words

        if self.every_word:
            # Whatever else was given would change nothing
            if self != WordChoice(every_word=True):
                raise InputError("--every-word leaves no word out: give it without other choices.")
            return None
        band = (-float("inf"), float("inf"))
        if self.zipf is not None:
            ends = re.fullmatch(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", self.zipf)
            if ends is None:
                raise InputError(
                    f"--zipf is {self.zipf!r}; expected the lowest and the highest, such as 3.5-7."
                )
            band = (float(ends[1]), float(ends[2]))
        lists = {
            name: read_words(path)
            for name, path in (("blocked", self.blocked), ("excluded", self.without))
            if path is not None
        }
        make = english_rules if self.language == "en" else WordRules
        return make(names=self.keeps_names, zipf=band, **lists)


# Databases in which scores and results are kept between runs

StoreInFolder = Annotated[
    Path | None,
    typer.Option(help="Where scores are kept between runs; contstim.sqlite in --out."),
]
StoreBesideTable = Annotated[
    Path | None,
    typer.Option(help="Where scores are kept between runs; contstim.sqlite beside --out."),
]

# What reviewers decided

Reviews = Annotated[
    list[Path] | None,
    typer.Option(
        "--review",
        help="What `contstim review` wrote of what stood before: rejected items go, all others "
        "stay as far as they can. Repeatable; give the reviews of all rounds.",
    ),
]

# What people saw and answered

Trials = Annotated[Path, typer.Option(help="The table of trials that people saw.")]
Responses = Annotated[Path, typer.Option(help="The table of responses.")]
TrialScores = Annotated[Path, typer.Option(help="Scores of the trials' sentences, as of `score`.")]
