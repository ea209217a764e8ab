"""A study file to begin with, which runs as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.files import write_text
from contstim.study.study_file import STUDY_FILE

if TYPE_CHECKING:
    from pathlib import Path

_TEMPLATE = """\
title = "{title}"
seed = 1

[texts]                        # yours: training = "corpus.txt", natural = "more.txt"
training = "english:1000"      # sentences of the embedded English, for practice
natural = "english:800"       # where natural sentences come from; none of the training text

[models]                       # yours: gpt2 = "hf:gpt2", bert = "hf:bert-base-cased@pll-word-l2r"
bigram = {{ train = "ngram", order = 2 }}
lstm = {{ train = "lstm", embedding = 16, hidden = 32, epochs = 3 }}

[vocabulary]                   # the words that sentences may be made of
min_count = 2

[sentences]                    # natural sentences
words = "8"

[pairs]                        # natural pairs on which two models disagree most
per_pair = 6

[triplets]                     # a natural sentence and two synthetic ones
per_pair = 12
restarts = 3
max_changes = 2

[selection]                    # the most controversial triplets
per_pair = 6
quantiles = 3

[review]                       # pages to look at; then: decisions = ["review.csv"]

[design]                       # who sees what
groups = 6
random_per_group = 3
catch_per_group = 3

[export.jspsych]               # the experiment, as a web page
"""


def new_study(folder: Path) -> Path:
    """Write a study file to begin with into a new folder, or one without a study.

    Returns:
        The file.

    Raises:
        InputError: there is a study already, or the file cannot be written.
    """
    path = folder / STUDY_FILE
    if path.exists():
        raise InputError(f"{path} is there already; name another folder.")
    title = folder.resolve().name.replace('"', "'").replace("\\\\", "/")
    write_text(path, _TEMPLATE.format(title=title))
    return path
