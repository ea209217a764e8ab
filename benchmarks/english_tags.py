"""Count the tags of English words: what made contstim/english/tags.csv and tag_pairs.csv.

    python benchmarks/english_tags.py [--quick] [--lemmas] [FOLDER]

The Hanover Tagger (LGPL, `pip install HanTa==1.2.1`) gives each word of OpenStax's textbooks (CC BY
4.0; `text/openstax.train.txt` in CONTSTIM_DATA) its tag of the BNC's basic tagset. Everyday words
that textbooks lack come from the list of LemmInflect (MIT, `pip install lemminflect==0.2.3`), with
the tags that the tagger knows of them, each counted as often as its probability suggests, ten
occurrences in all. A word that holds two, such as `isn't`, `it's` and `women's`, has the tags of
both (VBZ+XX0, PNP+VBZ, NN2+POS). Lemmas are LemmInflect's. Neither package is needed for anything
else, and no sentence of the text is kept. It takes about a quarter of an hour; --quick reads 500
sentences and writes nothing, --lemmas writes the lemmas of the table that is there.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections import Counter, defaultdict
from dataclasses import replace
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from itertools import islice, pairwise
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inputs import OPENSTAX, ROOT

from contstim.tables import columns_of, write_table
from contstim.tags import END, START, TaggedWord, TagPair, read_tags

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "NP0"
LEAST = 2  # occurrences of a word in the text
KNOWN = -15.0  # log-probability, nats, from which the tagger is taken to know a word
OCCURRENCES = 10  # of a word that the text lacks
OF_TWO = re.compile(r"(?<=[a-z])(?=n't$|'(?:s|re|m|ve|ll|d)$)|(?<=^can)(?=not$)", re.IGNORECASE)
# By what tags begin with. Forms of be, do and have stay words of their own: every other sentence
# has one, and a cap on all of them together would leave no room for anything else.
CLASSES = {"VV": "VERB", "N": "NOUN", "AJ": "ADJ", "AV": "ADV"}


def count_text(
    tagger: Any, lines: Iterable[str]
) -> tuple[dict[str, Counter[str]], Counter[tuple[str, str]]]:
    """Tags of each word of a text, and pairs of tags that follow one another."""
    tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
    pairs: Counter[tuple[str, str]] = Counter()
    for line in lines:
        parts = [OF_TWO.split(word) for word in line.split()]
        own = iter(tag for _, _, tag in tagger.tag_sent([part for word in parts for part in word]))
        tagged = [("".join(word), "+".join(next(own) for _ in word)) for word in parts]
        for word, tag in tagged:
            # I is no name, though textbooks number wars and kings by it
            named = tag.startswith(NAME) and word != "I"
            tags[word if named else word.lower()][tag] += 1
        pairs.update(pairwise([START, *(tag for _, tag in tagged), END]))
    return tags, pairs


def further_words() -> set[str]:
    """Forms of LemmInflect's list that are written in small letters."""
    path = files("lemminflect") / "resources" / "lemma_lu.csv.gz"
    with gzip.open(str(path), "rt", encoding="utf-8") as file:
        words = {line.split(",")[0] for line in file}
    return {word for word in words if word.isalpha() and word.islower() and len(word) > 2}


def lemma(word: str, tag: str) -> str:
    """The lemma of a word with a tag; empty where it is the word itself."""
    first = OF_TWO.split(word)[0]
    kinds = [kind for start, kind in CLASSES.items() if tag.startswith(start) and tag != NAME]
    if not kinds:
        return "" if first == word else first
    found = import_module("lemminflect").getAllLemmas(first, upos=kinds[0])
    every = found.get(kinds[0]) or (first,)
    return "" if every[0] == word else str(every[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="500 sentences, and write nothing")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "contstim" / "english")
    parser.add_argument("--lemmas", action="store_true", help="of the words that are there")
    options = parser.parse_args()
    if not (find_spec("HanTa") and find_spec("lemminflect") and OPENSTAX.is_file()):
        print("skipped: it needs HanTa, lemminflect and the text (set CONTSTIM_DATA)")
        return
    if options.lemmas:
        table = options.folder / "tags.csv"
        words = [replace(each, lemma=lemma(each.word, each.tag)) for each in read_tags(table).words]
        write_table(table, columns_of(TaggedWord, words))
        return
    tagger: Any = import_module("HanTa.HanoverTagger").HanoverTagger("morphmodel_en.pgz")
    with OPENSTAX.open(encoding="utf-8") as lines:
        tags, pairs = count_text(tagger, islice(lines, 500 if options.quick else None))
    rows = [
        (word, tag, count)
        for word, counts in tags.items()
        if counts.total() >= LEAST
        for tag, count in counts.items()
    ]
    n_words = len({row[0] for row in rows})
    for word in sorted(further_words() - {row[0].lower() for row in rows}):
        known = dict(tagger.tag_word(word))
        if known and max(known.values()) > KNOWN:
            total = sum(map(exp, known.values()))
            rounded = {tag: round(OCCURRENCES * exp(p) / total) for tag, p in known.items()}
            rows += [(word, tag, count) for tag, count in rounded.items() if count]
    print(f"{n_words:,} words of the text, {len({row[0] for row in rows}):,} in all")
    if not options.quick:
        words = [TaggedWord(*row, lemma(*row[:2])) for row in sorted(rows)]
        write_table(options.folder / "tags.csv", columns_of(TaggedWord, words))
        followers = [TagPair(*pair, count) for pair, count in sorted(pairs.items())]
        write_table(options.folder / "tag_pairs.csv", columns_of(TagPair, followers))


if __name__ == "__main__":
    main()
