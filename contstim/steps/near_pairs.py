"""Minimal pairs from a text: a natural sentence, and the same sentence with one new word."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from contstim.english.words import tag_table
from contstim.errors import InputError
from contstim.evaluation.scores import usable_sentences
from contstim.items.minimal_pair_scores import MinimalPairScores, SentencePair
from contstim.models.base import conventions
from contstim.models.catalog import load_scorers
from contstim.models.scoring import score_sentences
from contstim.models.training_text import contamination, tell_contamination
from contstim.optimization.search.constraints import Candidates, capitals, no_repeats
from contstim.optimization.search.near_pairs import near_pairs
from contstim.optimization.search.opponents import natural_sds
from contstim.options import WritesTable
from contstim.reporting.report import Table
from contstim.steps.fields import GivenModels, Sentences, load_words, read_sentence_file
from contstim.steps.step import Outcome
from contstim.steps.synthesis import SearchesSentences
from contstim.wording import quantity

if TYPE_CHECKING:
    from contstim.reporter import Reporter


class FindNearPairs(SearchesSentences[MinimalPairScores], name="near-pairs", version=5):
    """Make minimal pairs on which two models disagree, by one new word in a natural sentence.

    One model prefers the natural sentence, and the other prefers the sentence with the new word.
    For every two models and each sentence, the command chooses the replacement on which the models
    disagree most. The strength of a model's preference is the log-probability ratio of the two
    sentences under this model. The disagreement is the weaker of the two models' preferences. The
    new word has the same part of speech as the replaced word, and about the same length and
    frequency. If no replacement in a sentence makes two models disagree, there is no pair of this
    sentence for these models.

    In the table, `natural` is the natural sentence, and `changed` is the sentence with the new
    word; both can be acceptable. `paradigm` is the part of speech of the replaced word, and
    `pair_id` contains the number of the sentence, from 1. The other columns are the
    log-probabilities under all models.

    Example: `contstim near-pairs --model kenlm:bigram.arpa --model kenlm:trigram.arpa
    --sentences natural.txt --vocabulary vocab.txt --out near-pairs.csv`
    """

    models: GivenModels
    sentences: Sentences
    out: Annotated[Path, WritesTable("The table of pairs to write.", kind="minimal pair scores")]
    leave_out = frozenset(
        "max_changes enough judge judge_drop max_scored recipe restarts seconds".split()
    )

    def work(self, reporter: Reporter) -> Outcome[MinimalPairScores]:
        """Find the pairs, and write them."""
        if len(self.models) < 2:
            raise InputError("`models` must name at least 2 models for near pairs.")
        search, models = load_words(self.search), load_scorers(self.models, self.loading)
        sentences = [*dict.fromkeys(read_sentence_file(self.sentences, reporter))]
        words, n_dropped = self.words_offered(models, sentences, reporter)
        usable = usable_sentences(models, (s for s in sentences if len(s) > 1), words)
        if n_over := len(sentences) - len(usable):
            why = "one word, words outside the vocabulary, or too many tokens for a model"
            reporter.say(f"Skipped: {quantity(n_over, 'sentence')} with {why}.")
        rules = [*filter(None, [no_repeats(words.repeatable), capitals(words)])]
        tags, names = tag_table(search.tags), tuple(model.name for model in models)
        sds = natural_sds(models, usable)
        pairs_found: list[SentencePair] = []
        counts = dict.fromkeys(combinations(names, 2), 0)
        for n_done, natural in enumerate(usable, start=1):
            constraints = (*rules, *search.constraints(natural, every_fix=False))
            near = near_pairs(models, Candidates(words, natural, constraints), sds)
            for two, (position, word) in near.items():
                part = tags.part_of_speech(tags.tags(natural)[position])
                pair_id = f"{sentences.index(natural) + 1}: {' × '.join(two)}"
                changed = natural.replace(position, word)
                pairs_found.append(SentencePair(part, pair_id, natural, changed))
                counts[two] += 1
            reporter.progress("natural sentences", n_done, len(usable))
        good, bad = [pair.good for pair in pairs_found], [pair.bad for pair in pairs_found]
        scores = [score_sentences(models, side).log_probs for side in (good, bad)]
        pairs = MinimalPairScores(tuple(pairs_found), names, np.stack(scores, axis=1), near=True)
        pairs.write(self.out)
        seen = contamination({model.name: model.training_text for model in models}, good)
        facts = {
            "models": conventions(models),
            "words_dropped": n_dropped,
            "sentences": len(usable),
            "pairs": {" × ".join(two): number for two, number in counts.items()},
            **tell_contamination(seen, reporter, "natural sentences"),
        }
        header, n = ("model 1", "model 2", "pairs", "no disagreement"), len(usable)
        table = Table(header, [(*two, has, n - has) for two, has in counts.items()], texts=2)
        return Outcome(pairs, facts, complete=bool(pairs_found), parts=[table])
