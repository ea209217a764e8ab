"""Minimal pairs made here: sentences of the embedded grammar, and each with one thing wrong.

The grammar derives the good sentence, the paradigm (`paradigm`) says what goes wrong. Everything
that both sentences have is drawn once and stands in both, so that they differ where the paradigm
says and nowhere else.

The file format and the idea of a paradigm: Warstadt, Parrish, Liu, Mohananey, Peng, Wang & Bowman
(2020), *BLiMP: The Benchmark of Linguistic Minimal Pairs for English*. Words and paradigms are our
own.
"""

from __future__ import annotations

import json
import random
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
from contstim.english.paradigm import shipped_paradigms
from contstim.english.sampling import CONTENT, PATIENCE, Derivation, Sampler, is_sensible
from contstim.errors import InputError
from contstim.files.files import write_text
from contstim.items.minimal_pair_scores import PREFIX_FIELDS
from contstim.wording import repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.english.paradigm import Item, Paradigm, Version
    from contstim.words.sentence import Sentence

__all__ = ["Generator", "LabelledPair", "generate_pairs", "refuse_other_pairs", "write_pairs"]


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
    one_prefix: tuple[str, ...] = ()
    two_prefix: tuple[str, ...] = ()

    @property
    def row(self) -> dict[str, Any]:
        """The fields of BLiMP's JSON lines; those of prefix methods only where they apply."""
        row = asdict(self) | {"simple_LM_method": True}
        for method, names in PREFIX_FIELDS.items():
            values = row.pop(method)
            row[f"{method}_method"] = bool(values)
            row |= {f"{method}_{n}": v for n, v in zip(names, values, strict=False)}
        return row


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
        self._tops: dict[tuple[str, int], Symbol] = {}
        tops = []
        for paradigm in paradigms:
            for number, version in enumerate(paradigm.versions):
                patterns = [item.pattern for item in _constituents(version)]
                for pattern in patterns:  # so that an error is about one constituent
                    _right_side(paradigm, pattern)
                # A name of its own, which the notation of the grammar would not allow
                top = Pattern(f"PAIR {paradigm.uid} {number}", ())
                tops.append(GrammarRule(top, _right_side(paradigm, " ".join(patterns)), 1.0))
                self._tops[paradigm.uid, number] = Symbol(top.category)
        phrases = resources.files("contstim.english").joinpath("phrases.fcfg").read_text("utf-8")
        texts = dict.fromkeys(paradigm.rules for paradigm in paradigms)
        own = [rule for text in texts for rule in _own_rules(text)]
        self._grammar = Grammar((*rules(), *further_rules(phrases), *own, *tops), lexicon())
        categories = self._grammar.categories - {top.left.category for top in tops}
        for (uid, _), rule in zip(self._tops, tops, strict=True):
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
                misses += 1
                if pair and (pair.sentence_good, pair.sentence_bad) not in pairs:
                    pairs[pair.sentence_good, pair.sentence_bad] = pair
                    misses = 0
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
        constituents = _constituents(version)
        if not mass:
            raise InputError(
                f"Paradigm {paradigm.uid}: no words go together in "
                f"{' '.join(item.pattern for item in constituents)}. See that categories "
                f"have the features asked for, and that variables can have one value."
            )
        # Children of the rule stand in the order of the constituents, good ones before bad ones.
        children = self._sampler.draw(rng, symbol=top).children
        drawn = {item.name: child for item, child in zip(constituents, children, strict=True)}
        # The good sentence first: the bad one takes over words that it has chosen of several.
        good_items, bad_items, _ = version
        good = self._realise(good_items, drawn, rng, top)
        bad = self._realise(bad_items, drawn, rng, top) if good else None
        if not good or not bad:
            return None
        twins = [replace(tree.sentence, end=paradigm.end) for tree in (good, bad)]
        if twins[0] == twins[1]:
            return None
        lemmas = [sorted(entry.lemma for entry in tree.entries()) for tree in (good, bad)]
        prefix = _prefix(paradigm, twins, ((good_items, good), (bad_items, bad)))
        return LabelledPair(
            sentence_good=twins[0].text,
            sentence_bad=twins[1].text,
            field=paradigm.field,
            linguistics_term=paradigm.phenomenon,
            UID=paradigm.uid,
            pairID=str(number),
            lexically_identical=lemmas[0] == lemmas[1],
            **({f"{paradigm.prefix}_prefix": prefix} if prefix else {}),
        )

    def _realise(
        self, items: Iterable[Item], drawn: dict[str, Derivation], rng: random.Random, top: Symbol
    ) -> Derivation | None:
        """A sentence of the items; `drawn` gets the words that it chooses, for the other one."""
        children = []
        for item in items:
            if item.alternatives:
                text = rng.choice(item.alternatives)
                entry = Entry("WORDS", text, text, 1.0, {})
                drawn[item.name] = Derivation(Symbol("WORDS"), (), entry)
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


def _prefix(
    paradigm: Paradigm,
    twins: Sequence[Sentence],
    shown: Iterable[tuple[Sequence[Item], Derivation]],
) -> tuple[str, ...]:
    """The fields of the paradigm's prefix method; none where it has no such method.

    Raises:
        InputError: the method does not fit the sentences.
    """
    good, bad = (sentence.words for sentence in twins)
    if paradigm.prefix == "one":
        # The first word that differs; none where one sentence is the beginning of the other
        both = enumerate(zip(good, bad, strict=False))
        if place := next((i for i, (word, other) in both if word != other), 0):
            return " ".join(good[:place]), good[place], bad[place]
        what = "begin alike and go on with different words"
    elif paradigm.prefix == "two":
        parts = []
        for (items, tree), sentence in zip(shown, twins, strict=True):
            # The words before the critical constituent are those of the constituents before it
            place = [item.name for item in items].index(paradigm.critical)
            lengths = [sum(len(e.words) for e in child.entries()) for child in tree.children]
            start, end = sum(lengths[:place]), sum(lengths[: place + 1])
            parts.append((" ".join(sentence.words[:start]), " ".join(sentence.words[start:end])))
        (good_prefix, good_word), (bad_prefix, bad_word) = parts
        if good_word == bad_word and good_prefix != bad_prefix:
            return good_prefix, bad_prefix, good_word
        what = f"have {paradigm.critical!r} after different beginnings"
    else:
        return ()
    raise InputError(
        f"Paradigm {paradigm.uid}: {twins[0].text!r} and {twins[1].text!r} do not {what}; "
        f"prefix = {paradigm.prefix!r} does not fit them."
    )


def generate_pairs(
    n: int,
    *,
    seed: int,
    paradigms: Sequence[Paradigm] | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
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
    if twice := sorted(repeated(paradigm.uid for paradigm in wanted)):
        raise InputError(f"Two paradigms are called {', '.join(twice)}; files need distinct names.")
    # Paradigms of one file share its rules, and so a grammar that is written out once.
    generators = {
        text: Generator([p for p in wanted if p.rules == text])
        for text in dict.fromkeys(p.rules for p in wanted)
    }
    pairs = []
    for number, paradigm in enumerate(wanted, start=1):
        pairs += generators[paradigm.rules].pairs(paradigm, n, seed=seed)
        progress(number, len(wanted))
    return pairs


def _constituents(version: Version) -> list[Item]:
    return [item for items in version for item in items if item.pattern]


def _right_side(paradigm: Paradigm, right: str) -> tuple[Pattern, ...]:
    what = f"Paradigm {paradigm.uid}: cannot read {right!r}"
    (rule,) = _read_rules(f"PAIR -> {right} [1.0]", what)
    return rule.right


def _own_rules(text: str) -> tuple[GrammarRule, ...]:
    own = _read_rules(text, "Cannot read the rules of a paradigm file") if text.strip() else ()
    if weightless := [rule.left.category for rule in own if not rule.weight > 0]:
        raise InputError(
            f"The rules of {', '.join(weightless)} need a share above 0 in brackets at the end, "
            f"such as [1.0]."
        )
    return own


def _read_rules(text: str, what: str) -> tuple[GrammarRule, ...]:
    try:
        return further_rules(text)
    except ValueError as error:
        # The toolkit's message without the rule that it repeats
        reason = str(error).splitlines()[-1].strip(" ^")
        raise InputError(f"{what}: {reason}.") from error


def write_pairs(folder: Path | str, pairs: Iterable[LabelledPair]) -> list[Path]:
    """Write UID.jsonl for each paradigm; what lay there under that name is replaced.

    Raises:
        InputError: a file cannot be written.
    """
    texts: dict[Path, str] = {}
    for pair in pairs:
        path = Path(folder) / f"{pair.UID}.jsonl"
        texts[path] = texts.get(path, "") + json.dumps(pair.row, ensure_ascii=False) + "\n"
    for path, text in texts.items():
        write_text(path, text)
    return list(texts)


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
