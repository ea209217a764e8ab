"""How many natural sentences of a text are whole, and what do the rules about verbs cost?

    python benchmarks/natural_sentences.py [--quick] [--show N]

Eight-word sentences of OpenStax's textbooks that keep all other rules, and of the published corpus
(CONTSTIM_DATA), with and without the rules that ask the table of tags for a finite verb and a main
clause. A parser that contstim does not use (Debian's `link-grammar`) tells of which sentences it
parses every word, and in which of these a finite verb is the head (links WV and Q).
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
from shutil import which
from typing import TYPE_CHECKING

import numpy as np
from inputs import OPENSTAX, STUDY

from contstim.english.tags import english_tags
from contstim.steps.sentences import SentenceSettings
from contstim.words.corpus import read_sentences
from contstim.words.filters import filter_sentences, finite_verb, whole_statement, word_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.words.sentence import Sentence

NATURAL = STUDY / "resources" / "sentence_corpora"
_BATCH = ("-graphics=0", "-links=1", "-verbosity=1", "-null=0", "-limit=100")
_HEAD = re.compile(r"LEFT-WALL +h?(?:WV|Q)")


def parses(sentences: Sequence[Sentence]) -> list[tuple[bool, bool]]:
    """Of each sentence, whether every word is parsed, and whether a finite verb is its head."""
    lines = "".join(f"{sentence.text}\n" for sentence in sentences)
    command = ["link-parser", "en", *_BATCH]
    told = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout
    answers = re.split(r"^(?=Found |No complete)", told, flags=re.MULTILINE)[1:]
    if len(answers) == len(sentences):
        return [(each[0] == "F", bool(_HEAD.search(each))) for each in answers]
    if len(sentences) == 1:  # which the parser takes for several
        return [(False, False)]
    middle = len(sentences) // 2
    return parses(sentences[:middle]) + parses(sentences[middle:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="100 sentences of each text")
    parser.add_argument("--show", type=int, default=0, help="print so many that stay, and do not")
    options = parser.parse_args()
    if which("link-parser") is None or not (STUDY.is_dir() and OPENSTAX.is_file()):
        print("skipped: it needs Debian's link-grammar and the texts (CONTSTIM_DATA)")
        return
    verbs = [finite_verb(english_tags()), whole_statement(english_tags())]
    found = SentenceSettings().find(read_sentences(OPENSTAX))
    reasons = {rule.reason for rule in verbs}
    others = [rule.fresh() if rule.fresh else rule for rule in found.rules]
    without = [rule for rule in others if rule.reason not in reasons]
    texts = {
        "openstax": list(filter_sentences(read_sentences(OPENSTAX), without)),
        "published": list(
            filter_sentences(
                read_sentences(next(NATURAL.glob("*optimization.txt"))), [word_count(8)]
            )
        ),
    }
    for name, sentences in texts.items():
        random.Random(0).shuffle(sentences)
        drawn = sentences[: 100 if options.quick else 1_500]
        parsed, whole = np.array(parses(drawn)).T
        out = np.array([[rule.rejects(sentence) for sentence in drawn] for rule in verbs])
        stays = ~out.any(axis=0)
        print(
            f"{name}: {len(drawn):,} sentences, {stays.sum():,} stay;"
            f" parsed {parsed.mean():.3f}, of those that stay {parsed[stays].mean():.3f};"
            f" clauses {whole.mean():.3f}, {whole[stays].mean():.3f}"
        )
        for rule, rejected in zip(verbs, out, strict=True):
            print(f"  {rule.reason}: {rejected.sum()}, of all clauses {rejected[whole].mean():.3f}")
        for label, chosen in (("stays", stays), ("left out", ~stays)):
            for place in np.flatnonzero(chosen)[: options.show].tolist():
                print(f"    {label}: {drawn[place]}")


if __name__ == "__main__":
    main()
