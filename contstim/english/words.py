"""Lists of English words: those of one letter, shortened ones, and those to block."""

from __future__ import annotations

from pathlib import Path

from contstim.corpus import read_lines
from contstim.word_rules import WordRules, read_words

_SHORT_WORDS = Path(__file__).with_name("short_words.txt")
BLOCKED = Path(__file__).with_name("blocked.txt")
"""Profanity, slurs and explicit words; compiled for this package, under its licence."""

_ABBREVIATIONS = """
approx capt chap coll corp dept edns esp etal figs govt hons ibid illus intl lieut misc orig prof
pubs refs sept suppl thurs trans tues univ viz vols
""".split()

_ONSETS = """
bl br ch cl cr cz dh dj dr dw fj fl fr gh gl gn gr gw kh kl kn kr kw ll mn ph pl pn pr ps pt rh sc
sh sk sl sm sn sp sq sr st sv sw th tr ts tw vr wh wr zh
""".split()

_ADDRESSES = """
http https ftp www com org edu net gov html htm pdf php asp aspx jsp doi url urls isbn issn jstor
linkedin youtube
""".split()


_COMMON = """
about above after again all almost also although always among and another any anybody anyone
anything are as at because been before being below beside besides both but by can could did do
does during each either enough even ever every everybody everyone everything everywhere few first
for from had has have he hence her here hers herself him himself his how however if in indeed
instead into is it its itself just last later least let let's likewise many maybe me meanwhile
might mine moreover most much must my myself near neither never nevertheless next no nobody none
nor not nothing now of off often on once one only or other others otherwise our ours out over own
perhaps please quite rather same second several shall she should since so some somebody someone
something sometimes somewhere soon still such than that the their theirs them then there therefore
these they third this those though through thus till to today together tomorrow too toward towards
under unless until up upon us very was we were what whatever when whenever where whereas wherever
whether which whichever while who whoever whom whose why will with within without would yes
yesterday yet you your yours
""".split()

_UNFINISHED = """
a an the and or but nor because although while whereas if unless than as of from into onto upon per
via my your his its our their whose every no see eds
""".split()


def english_rules(
    *,
    blocked: frozenset[str] | None = None,
    excluded: frozenset[str] = frozenset(),
    names: bool = False,
    zipf: tuple[float, float] = (-float("inf"), float("inf")),
) -> WordRules:
    """The rules for English words.

    Args:
        blocked: words that nobody should meet in an experiment, in lower case; by default those of
            `BLOCKED`.
        excluded: further words to leave out, in lower case.
        names: whether names stay.
        zipf: lowest and highest frequency, on the Zipf scale.

    Raises:
        VocabularyError: the lowest frequency is above the highest.
    """
    return WordRules(
        single_letters=frozenset({"a", "I"}),
        abbreviations=frozenset(_ABBREVIATIONS),
        addresses=frozenset(_ADDRESSES),
        vowels=frozenset("aeiouy"),
        onsets=frozenset(_ONSETS),
        short_words=frozenset(
            word
            for line in read_lines(_SHORT_WORDS)
            if not line.startswith("#")
            for word in line.split()
        ),
        common=frozenset(_COMMON),
        unfinished=frozenset(_UNFINISHED),
        blocked=read_words(BLOCKED) if blocked is None else blocked,
        excluded=excluded,
        names=names,
        zipf=zipf,
    )
