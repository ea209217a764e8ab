"""Generate minimal pairs: sentences of the embedded grammar, each with an ungrammatical twin.

A paradigm is a type of minimal pair with one kind of error (see `paradigm`). The grammar derives
the good sentence, and the paradigm defines the error in the bad sentence. Constituents (words or
phrases) that both sentences share are drawn once, so that the sentences differ only in the error.

The file format and the division into paradigms follow Warstadt, Parrish, Liu, Mohananey, Peng, Wang
& Bowman (2020), *BLiMP: The Benchmark of Linguistic Minimal Pairs for English*. The words and the
paradigms differ from those of BLiMP.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.english.grammar import Grammar, Pattern, collector_paused, further_rules, rules
from contstim.english.lexicon import Entry, Symbol, lexicon
from contstim.english.paradigm import Item, Paradigm, Version, shipped_paradigms
from contstim.english.sampling import CONTENT, PATIENCE, Derivation, Sampler, is_sensible
from contstim.errors import InputError
from contstim.files.files import write_text
from contstim.items.minimal_pair_scores import PREFIX_FIELDS
from contstim.wording import find_duplicates, grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.english.grammar import GrammarRule
    from contstim.words.sentence import Sentence

__all__ = ["Generator", "LabelledPair", "generate_pairs", "refuse_other_pairs", "write_pairs"]


@dataclass(frozen=True)
class LabelledPair:
    """A sentence and its ungrammatical twin, with the fields of a line in BLiMP's files.

    BLiMP's prefix methods compare the probabilities of single words instead of sentences: of two
    words after the same beginning (one-prefix), or of one word after two beginnings (two-prefix).

    Attributes:
        field: field of linguistics, such as `syntax`.
        linguistics_term: phenomenon, such as `island_effects`.
        UID: name of the paradigm.
        pairID: number of the pair within the paradigm, from 0.
        lexically_identical: whether both sentences have the same lemmas, in any order and form.
        one_prefix: common beginning of both sentences, next word of the good sentence, and next
            word of the bad sentence; empty if BLiMP's one-prefix method does not apply.
        two_prefix: beginning of the good sentence, beginning of the bad sentence, and the word that
            follows both beginnings; empty if BLiMP's two-prefix method does not apply.
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
        """The fields of a line in BLiMP's files; without prefixes for methods that do not apply."""
        row = asdict(self) | {"simple_LM_method": True}
        for method, names in PREFIX_FIELDS.items():
            values = row.pop(method)
            row[f"{method}_method"] = bool(values)
            row |= {f"{method}_{n}": v for n, v in zip(names, values, strict=False)}
        return row


class Generator:
    """A sampler of pairs, which expands the necessary part of the grammar once.

    Args:
        paradigms: paradigms with the same additional rules (`Paradigm.rules`).

    Raises:
        InputError: if a constituent is not a category (the message names the paradigm), or a rule
            cannot be read.
    """

    def __init__(self, paradigms: Sequence[Paradigm]) -> None:
        # A version of a paradigm is one good and one bad sentence. The constituents of a version
        # are the right side of one rule. So a variable has the same value in all constituents, as
        # in "NP[agr=?a] V[agr=?a]"
        self._tops: dict[tuple[str, int], Symbol] = {}
        tops = []
        for paradigm in paradigms:
            for number, version in enumerate(paradigm.versions):
                # Parsed separately, so that an error names one of the constituents
                right = tuple(_pattern(paradigm, item.pattern) for item in _constituents(version))
                # No other category has this name, because the notation does not allow spaces
                top = Pattern(f"PAIR {paradigm.uid} {number}", ())
                tops.append((top, right, 1.0))
                self._tops[paradigm.uid, number] = Symbol(top.category)
        phrases = resources.files("contstim.english").joinpath("phrases.fcfg").read_text("utf-8")
        texts = dict.fromkeys(p.rules for p in paradigms if p.rules.strip())
        more_rules = [rule for text in texts for rule in _read_paradigm_rules(text)]
        self._grammar = Grammar((*rules(), *further_rules(phrases), *more_rules, *tops), lexicon())
        self._sampler = Sampler(self._grammar)
        categories = self._grammar.categories - {top.category for top, _, _ in tops}
        for (uid, _), (_, right, _) in zip(self._tops, tops, strict=True):
            unknown = [p.category for p in right if p.category not in categories]
            if unknown:
                raise InputError(
                    f"Paradigm {uid}: {', '.join(unknown)} is not a category of the grammar; "
                    f"the categories are {', '.join(sorted(categories))}."
                )

    def pairs(self, paradigm: Paradigm, n: int, *, seed: int) -> list[LabelledPair]:
        """Return n distinct pairs of a paradigm; with the same seed, the pairs are the same.

        Raises:
            InputError: if n is below 1; if the paradigm has fewer than n pairs; or if the paradigm
                has a recursive rule, constituents that no words match, a phrase with changed
                features, or a prefix method that does not apply to its sentences.
        """
        if n < 1:
            raise InputError(f"The number of pairs per paradigm must be at least 1, got {n}.")
        rng = random.Random(f"{seed} {paradigm.uid}")  # independent of other paradigms
        pairs: dict[tuple[str, str], LabelledPair] = {}
        misses = 0  # consecutive draws without a new pair
        with collector_paused():
            while len(pairs) < n:
                pair = self._draw(paradigm, rng, len(pairs))
                misses += 1
                if pair and (pair.sentence_good, pair.sentence_bad) not in pairs:
                    pairs[pair.sentence_good, pair.sentence_bad] = pair
                    misses = 0
                if misses > PATIENCE:
                    raise InputError(
                        f"Paradigm {paradigm.uid} has only {len(pairs):,} distinct pairs, but "
                        f"{n:,} were requested. Request fewer, or restrict the paradigm less."
                    )
        return list(pairs.values())

    def _draw(self, paradigm: Paradigm, rng: random.Random, number: int) -> LabelledPair | None:
        """Draw a pair, or return None.

        None means that a sentence is not sensible, a word lacks the required form, or both
        sentences are equal.
        """
        index = rng.randrange(len(paradigm.versions))
        version, top = paradigm.versions[index], self._tops[paradigm.uid, index]
        try:
            mass = self._grammar.expand(top)
        except RecursionError:
            raise InputError(
                f"Paradigm {paradigm.uid}: a rule of its file is recursive. The inner phrase "
                "must have another category than the outer phrase."
            ) from None
        constituents = _constituents(version)
        if not mass:
            raise InputError(
                f"Paradigm {paradigm.uid}: no words match "
                f"{' '.join(item.pattern for item in constituents)}. Check that the "
                "categories have these features, and that each variable can have one value."
            )
        children = self._sampler.draw(rng, symbol=top).children
        drawn = {item.name: child for item, child in zip(constituents, children, strict=True)}
        # The good sentence adds its literal words to `drawn`, so that the bad sentence can use the
        # same words
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
        """Build a sentence from items; draw literal words, and add them to `drawn`.

        Return None if a word lacks the required form, or the sentence is not sensible.
        """
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
        """Return the form of a word that has changed features; None if there is no such form.

        If a function word has no such form, it is replaced by another word with the changed
        features. The two words have the same rank in the lexicon, among the words with the old and
        with the changed features. For example, the first singular demonstrative becomes the first
        plural demonstrative.
        """
        if word.entry is None:
            raise InputError(f"{word.symbol} is a phrase, but only single words have other forms.")
        symbol = Symbol.of(word.category, **(dict(word.symbol.features) | changes))
        entries = self._grammar.lexicon.fitting(symbol)
        candidates = [entry for entry in entries if entry.lemma == word.entry.lemma]
        if not candidates and entries and word.category not in CONTENT:
            # "this" and "these" are two lemmas
            rank = self._grammar.lexicon.fitting(word.symbol).index(word.entry)
            candidates = [entries[rank % len(entries)]]
        return Derivation(symbol, (), candidates[0]) if candidates else None


def _prefix(
    paradigm: Paradigm,
    twins: Sequence[Sentence],
    items_and_trees: Iterable[tuple[Sequence[Item], Derivation]],
) -> tuple[str, ...]:
    """Return the fields of the paradigm's prefix method; empty if the paradigm has no method."""
    good, bad = (sentence.words for sentence in twins)
    if paradigm.prefix == "one":
        # First index at which the words differ. The index is 0 if the method does not apply: the
        # first words differ, or one sentence begins with all words of the other sentence
        differing = (i for i, (a, b) in enumerate(zip(good, bad, strict=False)) if a != b)
        if index := next(differing, 0):
            return " ".join(good[:index]), good[index], bad[index]
        requirement = "begin in the same way and continue with different words"
    elif paradigm.prefix == "two":
        parts = []
        for (items, tree), sentence in zip(items_and_trees, twins, strict=True):
            index = [item.name for item in items].index(paradigm.critical)
            lengths = [sum(len(e.words) for e in child.entries()) for child in tree.children]
            start, end = sum(lengths[:index]), sum(lengths[: index + 1])
            parts.append((" ".join(sentence.words[:start]), " ".join(sentence.words[start:end])))
        (good_prefix, good_word), (bad_prefix, bad_word) = parts
        if good_word == bad_word and good_prefix != bad_prefix:
            return good_prefix, bad_prefix, good_word
        requirement = f"have {paradigm.critical!r} after different beginnings"
    else:
        return ()
    raise InputError(
        f"Paradigm {paradigm.uid}: {twins[0].text!r} and {twins[1].text!r} do not "
        f"{requirement}; prefix = {paradigm.prefix!r} does not match them."
    )


def generate_pairs(
    n: int,
    *,
    seed: int,
    paradigms: Sequence[Paradigm] | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[LabelledPair]:
    """Generate n distinct minimal pairs of each paradigm; the same seed gives the same pairs.

    Args:
        n: number of pairs of each paradigm.
        seed: any integer.
        paradigms: paradigms to use; by default all that ship with contstim.
        progress: callback with the completed and the total number of paradigms.

    Raises:
        InputError: if two paradigms have the same name, or as described at `Generator` and
            `Generator.pairs`.
    """
    selected = shipped_paradigms() if paradigms is None else list(paradigms)
    if twice := sorted(find_duplicates(paradigm.uid for paradigm in selected)):
        raise InputError(f"Several paradigms have the name {', '.join(twice)}. Rename them.")
    # The grammar is expanded once for paradigms with the same rules
    by_rules = grouped((paradigm.rules, paradigm) for paradigm in selected)
    generators = {text: Generator(group) for text, group in by_rules.items()}
    pairs = []
    for number, paradigm in enumerate(selected, start=1):
        pairs += generators[paradigm.rules].pairs(paradigm, n, seed=seed)
        progress(number, len(selected))
    return pairs


def _constituents(version: Version) -> list[Item]:
    return [item for items in version for item in items if item.pattern]


def _pattern(paradigm: Paradigm, text: str) -> Pattern:
    subject = f"Paradigm {paradigm.uid}: cannot read {text!r}"
    ((_, (pattern,), _),) = _read_rules(f"PAIR -> {text} [1.0]", subject)
    return pattern


def _read_paradigm_rules(text: str) -> tuple[GrammarRule, ...]:
    paradigm_rules = _read_rules(text, "Cannot read the rules of a paradigm file")
    if weightless := [left.category for left, _, weight in paradigm_rules if not weight > 0]:
        raise InputError(
            f"The rules of {', '.join(weightless)} must end in a probability, such as [1.0]."
        )
    return paradigm_rules


def _read_rules(text: str, problem: str) -> tuple[GrammarRule, ...]:
    try:
        return further_rules(text)
    except ValueError as error:
        # The last line of NLTK's message is the reason
        reason = str(error).splitlines()[-1].strip(" ^")
        raise InputError(f"{problem}: {reason}.") from error


def write_pairs(folder: Path | str, pairs: Iterable[LabelledPair]) -> list[Path]:
    """Write a file UID.jsonl for each paradigm, replacing existing files.

    Raises:
        InputError: if a file cannot be written.
    """
    texts: dict[Path, str] = {}
    for pair in pairs:
        path = Path(folder) / f"{pair.UID}.jsonl"
        texts[path] = texts.get(path, "") + json.dumps(pair.row, ensure_ascii=False) + "\n"
    for path, text in texts.items():
        write_text(path, text)
    return list(texts)


def refuse_other_pairs(folder: Path | str, paradigms: Sequence[str]) -> None:
    """Refuse an output folder that contains files of other paradigms.

    Evaluations of the folder would also read these files.
    """
    expected = {f"{uid}.jsonl" for uid in paradigms}
    extra = sorted({path.name for path in Path(folder).glob("*.jsonl")} - expected)
    if extra:
        raise InputError(
            f"{Path(folder) / extra[0]} is not a paradigm of this run, but an evaluation of "
            "the folder would read it. Set --out to a new folder, or remove the file"
            + (f" and {len(extra) - 1} other such files." if extra[1:] else ".")
        )
