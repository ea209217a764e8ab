"""Count the tags of English words: what made contstim/english/tags.csv and tag_pairs.csv.

    python benchmarks/english_tags.py [--quick] [FOLDER]

The Hanover Tagger (LGPL, `pip install HanTa==1.2.1`) gives each word of OpenStax's textbooks (CC BY
4.0; `text/openstax.train.txt` in CONTSTIM_DATA) its tag of the BNC's basic tagset. Everyday words
that textbooks lack come from the list of LemmInflect (MIT, `pip install lemminflect==0.2.3`), with
the tags that the tagger knows of them, each counted as often as its probability suggests, ten
occurrences in all. Neither package is needed for anything else, and no sentence of the text is
kept. It takes about a quarter of an hour; --quick reads 500 sentences and writes nothing.
"""

from __future__ import annotations

import argparse
import gzip
from collections import Counter, defaultdict
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from itertools import islice, pairwise
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inputs import OPENSTAX, ROOT

from contstim.tables import columns_of, write_table
from contstim.tags import END, START, TaggedWord, TagPair

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "NP0"
LEAST = 2  # occurrences of a word in the text
KNOWN = -15.0  # log-probability, nats, from which the tagger is taken to know a word
OCCURRENCES = 10  # of a word that the text lacks


def count_text(
    tagger: Any, lines: Iterable[str]
) -> tuple[dict[str, Counter[str]], Counter[tuple[str, str]]]:
    """Tags of each word of a text, and pairs of tags that follow one another."""
    tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
    pairs: Counter[tuple[str, str]] = Counter()
    for line in lines:
        tagged = tagger.tag_sent(line.split())
        for word, _, tag in tagged:
            tags[word if tag == NAME else word.lower()][tag] += 1
        pairs.update(pairwise([START, *(tag for _, _, tag in tagged), END]))
    return tags, pairs


def further_words() -> set[str]:
    """Forms of LemmInflect's list that are written in small letters."""
    path = files("lemminflect") / "resources" / "lemma_lu.csv.gz"
    with gzip.open(str(path), "rt", encoding="utf-8") as file:
        words = {line.split(",")[0] for line in file}
    return {word for word in words if word.isalpha() and word.islower() and len(word) > 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="500 sentences, and write nothing")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "contstim" / "english")
    options = parser.parse_args()
    if not (find_spec("HanTa") and find_spec("lemminflect") and OPENSTAX.is_file()):
        print("skipped: it needs HanTa, lemminflect and the text (set CONTSTIM_DATA)")
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
        words = [TaggedWord(word, tag, count) for word, tag, count in sorted(rows)]
        write_table(options.folder / "tags.csv", columns_of(TaggedWord, words))
        followers = [TagPair(*pair, count) for pair, count in sorted(pairs.items())]
        write_table(options.folder / "tag_pairs.csv", columns_of(TagPair, followers))


if __name__ == "__main__":
    main()
