"""Minimal pairs: the grammar derives the good sentence, the paradigm says what goes wrong.

Everything that both sentences have is drawn once and stands in both, so that they differ where the
paradigm says and nowhere else.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.english.grammar import (
    Grammar,
    GrammarRule,
    Pattern,
    collector_paused,
    further_rules,
    rules,
)
from contstim.english.lexicon import Entry, Symbol, lexicon
from contstim.english.minimal_pairs.paradigm import shipped_paradigms
from contstim.english.sampling import CONTENT, PATIENCE, Derivation, Sampler, is_sensible
from contstim.errors import InputError
from contstim.files import write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.english.minimal_pairs.paradigm import Item, Paradigm, Version
    from contstim.sentence import Sentence

_WORDS = "WORDS"
Drawn = dict[str, Derivation]


@dataclass(frozen=True)
class LabelledPair:
    """A sentence and its ungrammatical twin, as a line of BLiMP's files has them.

    Attributes:
        sentence_good: the grammatical sentence.
        sentence_bad: the other.
        field: of linguistics, such as `syntax`.
        linguistics_term: the phenomenon, such as `island_effects`.
        UID: the paradigm.
        pairID: number of the pair within the paradigm, from 0.
        lexically_identical: whether both have the same lemmas, in whatever order and form.
        one_prefix: what both begin with, and the next word of the good and of the bad sentence.
        two_prefix: what the good and the bad sentence begin with, and the word that follows both.
    """

    sentence_good: str
    sentence_bad: str
    field: str
    linguistics_term: str
    UID: str
    pairID: str  # noqa: N815 - BLiMP's name
    lexically_identical: bool
    one_prefix: tuple[str, str, str] | None = None
    two_prefix: tuple[str, str, str] | None = None

    @property
    def row(self) -> dict[str, Any]:
        """The fields of BLiMP's JSON lines; those of prefix methods only where they apply."""
        row = asdict(self) | {"simple_LM_method": True}
        parts = {
            "one": ("prefix", "word_good", "word_bad"),
            "two": ("prefix_good", "prefix_bad", "word"),
        }
        for method, names in parts.items():
            values = row.pop(f"{method}_prefix")
            row[f"{method}_prefix_method"] = values is not None
            row |= {f"{method}_prefix_{n}": v for n, v in zip(names, values or (), strict=False)}
        return row


def labelled(
    paradigm: Paradigm,
    number: int,
    good: tuple[Sequence[Item], Derivation],
    bad: tuple[Sequence[Item], Derivation],
) -> LabelledPair | None:
    """A numbered pair from the items and trees of two sentences; None if they read the same.

    Raises:
        InputError: the paradigm's prefix method does not fit the sentences.
    """
    twins = [replace(tree.sentence, end=paradigm.end) for _, tree in (good, bad)]
    if twins[0] == twins[1]:
        return None
    lemmas = [sorted(entry.lemma for entry in tree.entries()) for _, tree in (good, bad)]
    return LabelledPair(
        sentence_good=twins[0].text,
        sentence_bad=twins[1].text,
        field=paradigm.field,
        linguistics_term=paradigm.phenomenon,
        UID=paradigm.uid,
        pairID=str(number),
        lexically_identical=lemmas[0] == lemmas[1],
        one_prefix=_one_prefix(paradigm, *twins) if paradigm.prefix == "one" else None,
        two_prefix=_two_prefix(paradigm, good, bad, twins) if paradigm.prefix == "two" else None,
    )


def _one_prefix(paradigm: Paradigm, good: Sentence, bad: Sentence) -> tuple[str, str, str]:
    pairs = list(zip(good.words, bad.words, strict=False))
    # The first word that differs; 0 where it is the very first, or where none differs.
    place = next((i for i, (word, other) in enumerate(pairs) if word != other), 0)
    if not place:
        raise InputError(
            f"Paradigm {paradigm.uid}: {good.text!r} and {bad.text!r} do not begin alike and go on "
            f"with different words; prefix = 'one' does not fit them."
        )
    return " ".join(good.words[:place]), good.words[place], bad.words[place]


def _two_prefix(
    paradigm: Paradigm,
    good: tuple[Sequence[Item], Derivation],
    bad: tuple[Sequence[Item], Derivation],
    twins: Sequence[Sentence],
) -> tuple[str, str, str]:
    prefixes, words = [], []
    for (items, tree), sentence in zip((good, bad), twins, strict=True):
        # The words before the critical constituent are those of the constituents before it
        place = [item.name for item in items].index(paradigm.critical)
        lengths = [sum(len(e.words) for e in child.entries()) for child in tree.children]
        start = sum(lengths[:place])
        prefixes.append(" ".join(sentence.words[:start]))
        words.append(" ".join(sentence.words[start : start + lengths[place]]))
    if words[0] != words[1] or prefixes[0] == prefixes[1]:
        raise InputError(
            f"Paradigm {paradigm.uid}: {twins[0].text!r} and {twins[1].text!r} do not have "
            f"{paradigm.critical!r} after different beginnings; prefix = 'two' does not fit them."
        )
    return prefixes[0], prefixes[1], words[0]


class Generator:
    """Draws pairs from paradigms; writes out what they need of the grammar, once.

    Args:
        paradigms: of one set of own phrases (`Paradigm.rules`).

    Raises:
        InputError: a constituent is not a category of the grammar or the lexicon, or a rule cannot
            be read (names the paradigm).
    """

    def __init__(self, paradigms: Sequence[Paradigm]) -> None:
        # All that a version draws is the right side of one rule: so variables that constituents
        # share have one value, as in "NP[agr=?a] V[agr=?a]".
        tops = {}
        for paradigm in paradigms:
            for number, version in enumerate(paradigm.versions):
                name = f"{paradigm.uid} {number}"
                patterns = [item.pattern for item in _constituents(version)]
                for pattern in patterns:
                    _rule_of(paradigm, [pattern], name)  # so that an error is about one constituent
                tops[paradigm.uid, number] = _rule_of(paradigm, patterns, f"PAIR {name}")
        texts = dict.fromkeys(paradigm.rules for paradigm in paradigms)
        own = [rule for text in texts for rule in _own_rules(text)]
        self._tops = {key: Symbol(rule.left.category) for key, rule in tops.items()}
        self._grammar = Grammar((*rules(), *_phrases(), *own, *tops.values()), lexicon())
        categories = self._grammar.categories - {top.category for top in self._tops.values()}
        for (uid, _), rule in tops.items():
            unknown = [p.category for p in rule.right if p.category not in categories]
            if unknown:
                raise InputError(
                    f"Paradigm {uid}: {', '.join(unknown)} is not a category of the grammar; there "
                    f"are {', '.join(sorted(categories))}."
                )

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self._grammar)

    def pairs(self, paradigm: Paradigm, n: int, *, seed: int) -> list[LabelledPair]:
        """Distinct pairs of a paradigm, the same ones for the same seed.

        Raises:
            InputError: n is below 1, or there are not n pairs.
        """
        if n < 1:
            raise InputError(f"Asked for {n} pairs of each paradigm; ask for at least 1.")
        rng = random.Random(f"{seed} {paradigm.uid}")  # other paradigms change nothing here
        pairs: dict[tuple[str, str], LabelledPair] = {}
        misses = 0  # draws in a row that brought nothing new
        with collector_paused():
            while len(pairs) < n:
                pair = self._draw(paradigm, rng, len(pairs))
                if pair and (pair.sentence_good, pair.sentence_bad) not in pairs:
                    pairs[pair.sentence_good, pair.sentence_bad] = pair
                    misses = 0
                else:
                    misses += 1
                if misses > PATIENCE:
                    raise InputError(
                        f"Paradigm {paradigm.uid} gave {len(pairs):,} distinct pairs, not {n:,}: "
                        f"ask for fewer, or leave more of it open."
                    )
        return list(pairs.values())

    def _draw(self, paradigm: Paradigm, rng: random.Random, number: int) -> LabelledPair | None:
        """A pair, or None where the words do not go together or have no such other form."""
        which = rng.randrange(len(paradigm.versions))
        version, top = paradigm.versions[which], self._tops[paradigm.uid, which]
        try:
            mass = self._grammar.expand(top)
        except RecursionError:
            raise InputError(
                f"Paradigm {paradigm.uid}: a rule of its file leads back to its own left side; "
                f"give a phrase inside a phrase a category of its own."
            ) from None
        if not mass:
            raise InputError(
                f"Paradigm {paradigm.uid}: no words go together in "
                f"{' '.join(item.pattern for item in _constituents(version))}. See that categories "
                f"have the features asked for, and that variables can have one value."
            )
        # Children of the rule stand in the order of the constituents, good ones before bad ones.
        children = self._sampler.draw_freely(rng, top).children
        names = [item.name for item in _constituents(version)]
        drawn = dict(zip(names, children, strict=True))
        # The good sentence first: the bad one takes over words that it has chosen of several.
        good = self._realise(version.good, drawn, rng, top)
        bad = self._realise(version.bad, drawn, rng, top) if good else None
        if not good or not bad:
            return None
        return labelled(paradigm, number, (version.good, good), (version.bad, bad))

    def _realise(
        self, items: Iterable[Item], drawn: Drawn, rng: random.Random, top: Symbol
    ) -> Derivation | None:
        """A sentence of the items; `drawn` gets the words that it chooses, for the other one."""
        children = []
        for item in items:
            if item.alternatives:
                text = rng.choice(item.alternatives)
                entry = Entry(_WORDS, text, text, 1.0, {})
                drawn[item.name] = Derivation(Symbol(_WORDS), (), entry)
            child: Derivation | None = drawn[item.name]
            if item.changes:
                child = self._inflect(drawn[item.name], dict(item.changes))
            if child is None:
                return None
            children.append(child)
        sentence = Derivation(top, tuple(children))
        return sentence if is_sensible(sentence) else None

    def _inflect(self, word: Derivation, changes: dict[str, str]) -> Derivation | None:
        """The same lemma with other features; of function words the one of the same rank."""
        if word.entry is None:
            raise InputError(f"{word.symbol} is a phrase; only single words have other forms.")
        symbol = Symbol.of(word.category, **(dict(word.symbol.features) | changes))
        entries = self._grammar.lexicon.fitting(symbol)
        same = [entry for entry in entries if entry.lemma == word.entry.lemma]
        if not same and entries and word.category not in CONTENT:
            # "this" and "these" are two lemmas: the first of the singulars becomes the first plural
            rank = self._grammar.lexicon.fitting(word.symbol).index(word.entry)
            same = [entries[rank % len(entries)]]
        return Derivation(symbol, (), same[0]) if same else None


def generate_pairs(
    n: int,
    *,
    seed: int,
    paradigms: Sequence[Paradigm] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[LabelledPair]:
    """Distinct minimal pairs of each paradigm, the same ones for the same seed.

    Args:
        n: pairs of each paradigm.
        seed: any integer.
        paradigms: by default all that ship.
        progress: told how many paradigms of how many are done.

    Raises:
        InputError: n is below 1, two paradigms share a name, or a paradigm has no n pairs.
    """
    wanted = shipped_paradigms() if paradigms is None else list(paradigms)
    names = [paradigm.uid for paradigm in wanted]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"Two paradigms are called {', '.join(twice)}; files need distinct names.")
    # Paradigms of one file share its rules, and so a grammar that is written out once.
    generators = {
        text: Generator([p for p in wanted if p.rules == text])
        for text in dict.fromkeys(p.rules for p in wanted)
    }
    pairs = []
    for number, paradigm in enumerate(wanted, start=1):
        pairs += generators[paradigm.rules].pairs(paradigm, n, seed=seed)
        if progress:
            progress(number, len(wanted))
    return pairs


def _constituents(version: Version) -> list[Item]:
    items = (*version.good, *version.bad, *version.hidden)
    return [item for item in items if item.pattern]


def _rule_of(paradigm: Paradigm, patterns: Sequence[str], name: str) -> GrammarRule:
    right = " ".join(patterns)
    try:
        (rule,) = further_rules(f"PAIR -> {right} [1.0]")
    except ValueError as error:
        raise InputError(
            f"Paradigm {paradigm.uid}: cannot read {right!r}: {_last_line(error)}."
        ) from error
    # Read under one name and kept under its own, which the notation of the grammar would not allow.
    return GrammarRule(Pattern(name, ()), rule.right, 1.0)


def _phrases() -> tuple[GrammarRule, ...]:
    folder = resources.files("contstim.english.minimal_pairs")
    return further_rules(folder.joinpath("phrases.fcfg").read_text(encoding="utf-8"))


def _own_rules(text: str) -> tuple[GrammarRule, ...]:
    try:
        own = further_rules(text) if text.strip() else ()
    except ValueError as error:
        raise InputError(
            f"Cannot read the rules of a paradigm file: {_last_line(error)}."
        ) from error
    weightless = [rule.left.category for rule in own if not rule.weight > 0]
    if weightless:
        raise InputError(
            f"The rules of {', '.join(weightless)} need a share above 0 in brackets at the end, "
            f"such as [1.0]."
        )
    return own


def _last_line(error: ValueError) -> str:
    """Message of the toolkit, without the rule that it repeats."""
    return str(error).splitlines()[-1].strip(" ^")


def write_pairs(folder: Path | str, pairs: Iterable[LabelledPair]) -> list[Path]:
    """Write UID.jsonl for each paradigm; what lay there under that name is replaced.

    Raises:
        InputError: a file cannot be written.
    """
    lines: dict[str, list[str]] = {}
    for pair in pairs:
        lines.setdefault(pair.UID, []).append(json.dumps(pair.row, ensure_ascii=False) + "\n")
    paths = [Path(folder) / f"{uid}.jsonl" for uid in lines]
    for path, of_paradigm in zip(paths, lines.values(), strict=True):
        write_text(path, "".join(of_paradigm))
    return paths


def refuse_other_pairs(folder: Path | str, paradigms: Sequence[str]) -> None:
    """Refuse a folder in which pairs of other paradigms would pass for ones of this run.

    Raises:
        InputError: there is a file of another paradigm.
    """
    # A file of this run's own paradigms is replaced, so that the same command may be given again.
    expected = {f"{uid}.jsonl" for uid in paradigms}
    others = sorted({path.name for path in Path(folder).glob("*.jsonl")} - expected)
    if others:
        raise InputError(
            f"{Path(folder) / others[0]} is not a paradigm of this run, yet an evaluation of the "
            "folder would read it too. Give --out a new folder, or remove the file"
            + (f" and {len(others) - 1} more like it." if others[1:] else ".")
        )
