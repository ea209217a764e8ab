"""Spelling of regular English inflection; irregular forms stand in the lexicon.

Source: the orthographic rules of Quirk, Greenbaum, Leech & Svartvik (1985), *A Comprehensive
Grammar of the English Language*, sections 3.5-3.10 (verbs), 5.79-5.80 (nouns).
"""

from __future__ import annotations

VOWELS = "aeiou"
SIBILANTS = ("s", "x", "z", "ch", "sh")


def _ends_in_consonant_y(word: str) -> bool:
    return len(word) > 1 and word.endswith("y") and word[-2] not in VOWELS


def _doubles_last_letter(word: str) -> bool:
    """One vowel letter before one consonant letter, in a word of one syllable: stop, plan, chat."""
    # Not show, fix, play: w, x and y are never doubled
    if len(word) < 3 or word[-1] in VOWELS + "wxy":
        return False
    return word[-2] in VOWELS and sum(letter in VOWELS for letter in word) == 1


def add_s(word: str) -> str:
    """The plural of a noun, and the third person singular of a verb."""
    if _ends_in_consonant_y(word):
        return word[:-1] + "ies"
    if word.endswith(SIBILANTS) or word in ("go", "do"):
        return word + "es"
    return word + "s"


def add_ed(word: str) -> str:
    """The regular past tense and past participle."""
    if word.endswith("e"):
        return word + "d"
    if _ends_in_consonant_y(word):
        return word[:-1] + "ied"
    return (word + word[-1] if _doubles_last_letter(word) else word) + "ed"


def add_ing(word: str) -> str:
    """The present participle."""
    # die, dying; make, making; but see, dye and canoe keep their e
    if word.endswith("ie"):
        return word[:-2] + "ying"
    if word.endswith("e") and not word.endswith(("ee", "ye", "oe")):
        return word[:-1] + "ing"
    return (word + word[-1] if _doubles_last_letter(word) else word) + "ing"


def verb_forms(lemma: str, irregular: tuple[str, ...]) -> dict[str, str]:
    """All forms of a verb, by name: base, s, past, part, ing.

    Irregular forms are given in the order past, participle, -ing. Only the first word of a verb
    such as "look at" is inflected by rule.
    """
    head, space, rest = lemma.partition(" ")
    regular = {
        "base": lemma,
        "s": add_s(head) + space + rest,
        "past": add_ed(head) + space + rest,
        "part": add_ed(head) + space + rest,
        "ing": add_ing(head) + space + rest,
    }
    if lemma == "have":
        # The only verb but "be" whose third person is irregular ("does" is regular in spelling)
        regular["s"] = "has"
    # Fewer irregular forms than three leave the later ones regular
    return regular | dict(zip(("past", "part", "ing"), irregular, strict=False))
