"""The main job on embedded text: train two models, and find the sentences they disagree about."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.english import generate
from contstim.experiments.report import write_report
from contstim.files import write_text
from contstim.filters import DistinctWords, InVocabulary, NotIn, keep
from contstim.models.base import conventions
from contstim.models.ngram.adapter import KenlmModel
from contstim.models.ngram.training import train_ngram
from contstim.models.scoring import score_sentences
from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
from contstim.optimization.selection import select_natural
from contstim.optimization.synthesis import synthesize_triplet
from contstim.records import write_record
from contstim.stimuli import write_pairs, write_triplets

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.stimuli import Pair, Triplet
    from contstim.vocabulary import Vocabulary

_TRAINING_SENTENCES = 20_000
_NATURAL_SENTENCES = 2_000
_WORDS = 8
_TRIPLETS = 10
_PAIRS = 5


@dataclass(frozen=True)
class Demo:
    """What the demo found: triplets, most controversial first, and natural pairs with scores."""

    out: Path
    triplets: tuple[Triplet, ...]
    pairs: tuple[Pair, ...]
    scores: ScoreTable


def run_demo(
    out: Path | str, *, seed: int = 0, say: Callable[[str], None] = lambda _line: None
) -> Demo:
    """Train a 2-gram and a 3-gram on the embedded English and write their controversial sentences.

    Writes models, natural sentences, vocabulary, scores, pairs with their certificate, triplets and
    a page to look at into a folder.

    Args:
        out: the folder, made if need be.
        seed: decides the text and every search.
        say: told what happens next.
    """
    out = Path(out)
    say(f"Writing {_TRAINING_SENTENCES:,} sentences of the embedded English")
    text = generate(_TRAINING_SENTENCES, seed=seed)
    _write_sentences(out / "text.txt", text)
    say("Training a 2-gram and a 3-gram")
    bigram, trigram = models = [_train(out / f"{n}-gram.arpa", text, n) for n in (2, 3)]
    vocabulary, _ = shared_vocabulary(models, default_vocabulary(models))
    vocabulary.save(out / "vocab.txt")
    natural = _natural_sentences(text, vocabulary, seed)
    _write_sentences(out / "natural.txt", natural)
    say(f"Scoring {len(natural):,} new sentences and selecting natural pairs")
    scores = score_sentences(models, natural)
    scores.write(out / "scores.csv")
    selection = select_natural(scores, per_pair=_PAIRS)
    write_pairs(out / "pairs.csv", selection.pairs)
    selection.certificate.save(out / "pairs.csv.certificate.json")
    say(f"Synthesizing {_TRIPLETS} triplets")
    found = (
        synthesize_triplet(bigram, trigram, sentence, vocabulary, seed=seed)[0]
        for sentence in natural
    )
    changed = (t for t in found if t.natural not in (t.synthetic_1, t.synthetic_2))
    triplets = tuple(sorted(islice(changed, _TRIPLETS), key=lambda t: -t.controversiality))
    write_triplets(out / "triplets.csv", triplets)
    write_report(
        out / "report.html",
        title="Where a 2-gram and a 3-gram disagree",
        triplets=triplets,
        pairs=selection.pairs,
        scores=scores,
    )
    for name in ("scores.csv", "pairs.csv", "triplets.csv"):
        write_record(out / name, seed=seed, models=conventions(models))
    return Demo(out, triplets, selection.pairs, scores)


def _train(path: Path, text: list[Sentence], order: int) -> KenlmModel:
    train_ngram(text, order, path)
    return KenlmModel(path, name=path.stem)


def _natural_sentences(text: list[Sentence], vocabulary: Vocabulary, seed: int) -> list[Sentence]:
    """Sentences of eight words that no model was trained on."""
    rules = (DistinctWords(vocabulary.repeatable), InVocabulary(vocabulary), NotIn(text))
    return list(keep(generate(_NATURAL_SENTENCES, seed=seed + 1, words=_WORDS), rules))


def _write_sentences(path: Path, sentences: list[Sentence]) -> None:
    write_text(path, "".join(f"{sentence.text}\n" for sentence in sentences))
