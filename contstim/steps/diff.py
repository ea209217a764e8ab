"""Where two or more models part, that is, prefer different sentences."""

from __future__ import annotations

import random
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.english.minimal_pairs import generate_pairs
from contstim.english.sampling import generate
from contstim.english.words import tag_table
from contstim.errors import InputError
from contstim.evaluation.diff import Difference, find_differences, sample_changes
from contstim.evaluation.diff_report import diff_report, item_rows
from contstim.evaluation.folder import table_of
from contstim.evaluation.scores import usable_sentences
from contstim.files.files import write_text
from contstim.files.tables import write_table
from contstim.items.minimal_pair_scores import SentencePair
from contstim.models.base import conventions
from contstim.models.catalog import load_scorers
from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.models.scoring import score_sentences
from contstim.models.specifications import parse_models
from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
from contstim.optimization.jobs.question import SearchRules
from contstim.optimization.search.verification import order_of, refuse_equal_order
from contstim.options import Models, Seed, Writes, reads_kind
from contstim.steps.execution import LOCAL, LOCAL_SCORING, Execution
from contstim.steps.fields import ModelContexts, StoreBeside, read_sentence_file
from contstim.steps.step import Outcome, Step
from contstim.steps.triplets import SearchesTriplets, tell_missing
from contstim.store import Store
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import Scorer
    from contstim.reporter import Reporter

_N_SENTENCES, _MIN_SENTENCES = 200, 20  # maximum and minimum number of natural sentences
_N_OFFERED = 1_000  # generated sentences, from which the natural sentences are chosen
_WORDS = range(3, 21)  # allowed numbers of words of a natural sentence
_PER_PARADIGM = 10  # minimal pairs of each embedded paradigm


class FindDifferences(SearchesTriplets, Step[list[Difference]], name="diff"):
    """Find where two or more models part, and write a page about it.

    The command needs no study and no data. Two models part on a pair of sentences if they prefer
    different sentences. The command compares the models on natural sentences, on changes of one
    word, and on minimal pairs that come with contstim. For every two models, it also searches for
    triplets. A triplet has a natural sentence and two synthetic sentences. One model accepts each
    synthetic sentence, and the other model rejects it. The page shows how often the models part, by
    part of speech, word frequency, position, sentence length and paradigm, with 95 % intervals.
    diff.csv has all synthetic sentences.

    The natural sentences are those of the embedded English (a grammar that comes with contstim), or
    of --text. A --baseline is a model that should agree with the first model. For example, it is
    the first model trained with another seed. The page then shows how much more often the
    models part than the first model and its baseline do. An interrupted run continues where it
    stopped.

    Example: `contstim diff hf:gpt2 hf:distilgpt2`
    """

    models: Annotated[tuple[str, ...], Models("Two models or more.", kind="models", argument=True)]
    text: Annotated[
        Path | None,
        reads_kind(
            "Natural sentences, one a line; by default sentences of the embedded English.",
            "sentences",
        ),
    ] = None
    baseline: Annotated[
        str | None, Models("A model that should agree with the first one.", flag="--baseline")
    ] = None
    out: Annotated[
        Path,
        Writes(
            "Path of the page and of the table, without the endings .html and .csv.",
            beside=(".csv", ".html"),
            stem=True,
            name="diff",
        ),
    ] = Path("diff")
    settings: SearchRules = SearchRules(per_pair=10, max_scored=200)
    store: StoreBeside = None
    execution: Execution = LOCAL
    loading: Loading = DEFAULT_LOADING
    context: ModelContexts = ()
    seed: Seed = 0
    saved_results = "All scores and sentences so far are saved in the store."
    leave_out = frozenset(
        "fix exclude same_length same_frequency max_changes max_scored recipe restarts "
        "allow_unknown".split()
    )

    def check(self) -> None:
        """Check the number of models, the name of the page and the search settings."""
        if len(self.models) < 2:
            raise InputError(f"`models` must name at least 2 models, got {len(self.models)}.")
        if self.out.suffix in (".html", ".csv"):
            raise InputError(f"`out` must not end in .html or .csv, got {self.out}.")
        super().check()

    def work(self, reporter: Reporter) -> Outcome[list[Difference]]:
        """Score and search, and write the page and the table."""
        baseline = parse_models(self.baseline)[0].name if self.baseline else ""
        table = tag_table(self.settings.tags)
        # Open the store first: if another process uses it, the error comes before models are loaded
        with Store(self.store_path()) as store:
            models = load_scorers([*self.models, *filter(None, [self.baseline])], self.loading)
            refuse_equal_order(*map(order_of, models))
            natural, words = self._natural(models, reporter)
            changes = sample_changes(natural, words, self.question(), self.seed)
            if not changes:
                raise InputError("`tags` must allow at least one change of a word, got none.")
            pairs = [] if self.settings.tags else _minimal_pairs(models, self.seed)
            sentences = [*natural, *(change.changed for change in changes)]
            sentences += [side for pair in pairs for side in (pair.good, pair.bad)]
            progress = LOCAL_SCORING.progress(reporter, len({*sentences}))
            scores = score_sentences(models, sentences, store=store, progress=progress)
            results = self.find(natural, words, store, reporter)
            synthetic = [s for triplet in results.triplets for s in triplet.sentences[1:]]
            of_synthetic = score_sentences(models, synthetic, store=store)
        differences = find_differences(
            scores, natural, changes, pairs, table, results.triplets, baseline, self.seed
        )
        columns = [
            f"{'log_prob' if m.convention.is_log_probability else 'score'}_{m.name}" for m in models
        ]
        rows = [row for d in differences for row in item_rows(d, of_synthetic, table, columns)]
        write_table(self.writes()[0], table_of(rows, ("natural", "sentence")))
        tell_missing(results, reporter)
        source = "the embedded English" if self.text is None else self.text.name
        page = diff_report(
            differences,
            scores.of(natural),
            baseline=baseline,
            natural_text=source,
            command=self._study_command(),
        )
        write_text(self.writes()[1], page.html())
        facts = {"models": conventions(models), "seed": self.seed, "sentences": len(natural)}
        is_complete = all(pair.triplets for pair in results.pairs)
        return Outcome(differences, facts, complete=is_complete, parts=[*page.printed()])

    def _study_command(self) -> str:
        """Return the command that makes a study of the models, with the same judges and text."""
        options = [f"--model={model}" for model in self.models]
        options += [f"--judge={judge}" for judge in self.settings.judge]
        options += [] if self.text is None else [f"--text={self.text}"]
        return shlex.join(["contstim", "new", "study", *options])

    def _natural(
        self, models: Sequence[Scorer], reporter: Reporter
    ) -> tuple[list[Sentence], Vocabulary]:
        """Return distinct natural sentences, and a vocabulary of words that all models know.

        The sentences contain only words of the vocabulary.
        """
        words = default_vocabulary(models)
        if self.text is None:
            offered = generate(_N_OFFERED, seed=self.seed)
        else:
            offered = read_sentence_file(self.text, reporter)
            random.Random(self.seed).shuffle(offered)
            of_text = Vocabulary.from_sentences(offered)
            # With `tags`, the text is not English, so words come from the text only
            added = words if self.settings.tags is None else of_text
            words = Vocabulary(
                of_text.initial + added.initial, of_text.inner + added.inner, words.repeatable
            )
        words, _ = shared_vocabulary(models, words)
        suitable = (sentence for sentence in dict.fromkeys(offered) if len(sentence) in _WORDS)
        usable = usable_sentences(models, suitable, words)[:_N_SENTENCES]
        least = max(_MIN_SENTENCES, self.settings.per_pair)
        if len(usable) < least:
            raise InputError(
                f"`text` must have at least {least} sentences of {_WORDS.start} to "
                f"{_WORDS.stop - 1} words that all models know, got {len(usable)} of "
                f"{len(offered):,}. Name a text like those on which the models were trained."
            )
        if self.text is not None:
            reporter.say(f"{self.text}: {len(usable):,} of {len(offered):,} sentences are used.")
        return usable, words


def _minimal_pairs(models: Sequence[Scorer], seed: int) -> list[SentencePair]:
    """Return the embedded minimal pairs in which every model knows all words."""
    pairs = [
        SentencePair(p.UID, p.pairID, *map(Sentence.parse, (p.sentence_good, p.sentence_bad)))
        for p in generate_pairs(_PER_PARADIGM, seed=seed)
    ]
    return [
        pair
        for pair in pairs
        if all(model.knows((*pair.good.words, *pair.bad.words)).all() for model in models)
    ]
