"""Search for one controversial sentence, or for a pair of sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from contstim.english.sampling import generate
from contstim.errors import InputError
from contstim.files.files import write_text
from contstim.items.reviews import changed_positions
from contstim.models.base import NATS, conventions
from contstim.models.catalog import load_scorers
from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.models.transforms import tell_unknown_words
from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
from contstim.optimization.search.opponents import MAX_SENTENCES, natural_sds
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.settings import SentenceSearchSettings
from contstim.optimization.search.synthesize import (
    SymmetricPair,
    Synthesis,
    synthesize,
    synthesize_pair,
)
from contstim.options import Aside, Help, Models, Seed, Writes
from contstim.reporting.report import Table, names_for_tables
from contstim.reporting.stimuli_page import mark_changes
from contstim.steps.fields import (
    ModelContexts,
    OfferedWords,
    files_of_words,
    load_words,
    report_sentences,
)
from contstim.steps.step import Outcome, Step, Value
from contstim.wording import quantity
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contstim.models.base import Scorer
    from contstim.optimization.search import climb
    from contstim.optimization.search.few_changes import Choice
    from contstim.optimization.search.restarts import SearchResult, SearchSummary
    from contstim.reporter import Reporter
    from contstim.steps.step import Shown


class SearchesSentences(Step[Value], name=""):
    """Base of steps that search new sentences, without a database of results."""

    vocabulary: OfferedWords = None
    search: SentenceSearchSettings = SentenceSearchSettings()
    loading: Loading = DEFAULT_LOADING
    context: ModelContexts = ()

    def further_reads(self) -> Iterable[Path]:
        """Return the files of words."""
        return files_of_words(self.search)

    def words_offered(
        self, models: Sequence[Scorer], sentences: Sequence[Sentence], reporter: Reporter
    ) -> tuple[Vocabulary, int]:
        """Return the words, and the number of words excluded because a model does not know them.

        Without `vocabulary`, the words come from `default_vocabulary`. Words of `sentences` that a
        model does not know are reported.

        Raises:
            InputError: if the file cannot be read, or the table of parts of speech lists less than
                half of the words.
            VocabularyError: if no word remains.
        """
        tell_unknown_words(models, sentences, reporter)
        path = self.vocabulary
        words = default_vocabulary(models) if path is None else Vocabulary.load(path)
        dropped: tuple[str, ...] = ()
        if not self.search.allow_unknown:
            words, dropped = shared_vocabulary(models, words)
        if dropped:
            reporter.say(
                f"{len(dropped):,} of {len(dropped) + len(words.words):,} words of the "
                "vocabulary are excluded, because not all models know them."
            )
        self.search.check_words(words)
        return words, len(dropped)


class SynthesizeSentence(
    SearchesSentences[Synthesis | SymmetricPair], name="synthesize", version=9
):
    """Change a sentence word by word until one model rejects it and another accepts it.

    A model rejects a sentence that is less likely than the natural sentence. It accepts a sentence
    that is at least as likely. All --accept models must accept the new sentence, and all --reject
    models must reject it. If no such sentence is found, the exit status is 3.

    New words have the same part of speech as the words that they replace. The search looks for
    sentences in which a few new words lower the reject model's log-probability by --enough nats.
    A --judge is a model that chooses the most sensible of these sentences. With --frame none, the
    search makes the sentence as unlikely as possible under the reject model. If such a search is
    fast, it is repeated with other seeds (--restarts, --seconds).

    The command prints each step, the log-probabilities under the models (nats), the reason why the
    search ended, and the number of tokens that the networks read.

    Example: `contstim synthesize --accept kenlm:trigram.arpa --reject kenlm:bigram.arpa
    --sentence "Luke has a ton of experience with winning" --vocabulary vocab.txt --enough 3`
    """

    accept: Annotated[
        tuple[str, ...],
        Models("Model under which the new sentence must be at least as likely as the natural one."),
    ]
    reject: Annotated[
        tuple[str, ...],
        Models("Model under which the new sentence must be less likely than the natural one."),
    ]
    sentence: Annotated[str, Help("The natural sentence to start from.")]
    objective: Annotated[
        Literal["accept-reject", "symmetric"],
        Help(
            "Search for one sentence (accept-reject), or for a pair on which two models disagree "
            "(symmetric)."
        ),
    ] = "accept-reject"
    as_json: Annotated[bool, Aside("Print the result as JSON.", flag="--json")] = False
    out: Annotated[Path | None, Writes("Output file of the JSON.")] = None
    seed: Seed = 0

    def work(self, reporter: Reporter) -> Outcome[Synthesis | SymmetricPair]:
        """Search, and write the result."""
        natural = Sentence.parse(self.sentence)
        report_sentences(Path("sentence"), [natural], reporter)
        search = self.search
        constraints = load_words(search).constraints(natural, every_fix=True)
        recipe = recipe_named(search.recipe)  # refuse an unknown name before models are loaded
        symmetric = self.objective == "symmetric"
        if symmetric and (len(self.accept) != 1 or len(self.reject) != 1):
            raise InputError("`objective` symmetric needs one model each in `accept` and `reject`.")
        if symmetric and (search.enough or search.judge):
            field = "enough" if search.enough else "judge"
            raise InputError(
                f"`{field}` needs the `objective` accept-reject. Set both, or remove `{field}`."
            )
        models = load_scorers([*self.accept, *self.reject, *search.judge], self.loading)
        words, n_dropped = self.words_offered(models, [natural], reporter)

        n_pair = len(self.accept) + len(self.reject)

        def tell_step(step: climb.Step) -> None:
            scores = " ".join(f"{score:9.2f}" for score in step.log_probs)
            start = f" (start {step.round + 1})" if step.round else ""
            reporter.say(f"{scores}  {step.old} → {step.new}: {step.sentence.text}{start}")

        def tell_search(search: SearchSummary) -> None:
            gain = f", {search.gain:.2f} better than before" if search.gain else ""
            reporter.say(
                f"Search {search.number + 1} (seed {search.seed}): loss {search.loss:.2f}{gain}."
            )

        options: dict[str, Any] = {
            "recipe": recipe,
            "constraints": constraints,
            "seed": self.seed,
            "restarts": search.budget,
        }
        sds = {} if symmetric else _sds_of(models[:n_pair], reporter)
        few_changes = None if symmetric else search.few_changes(in_sds=bool(sds))
        if not symmetric:
            options |= {"few_changes": few_changes, "judges": models[n_pair:], "sds": sds}
        if not self.as_json:
            options |= {"on_step": tell_step, "on_restart": tell_search}
        accepting, rejecting = models[: len(self.accept)], models[len(self.accept) : n_pair]
        result: Synthesis | SymmetricPair = (
            synthesize_pair(rejecting[0], accepting[0], natural, words, **options)
            if symmetric
            else synthesize(accepting, rejecting, natural, words, **options)
        )
        facts = {"models": conventions(models), "words_dropped": n_dropped, "seed": self.seed}
        facts |= {"standard_deviations": sds} if sds else {}
        as_json = json.dumps(result.facts | facts, indent=2, ensure_ascii=False)
        if self.out is not None:
            write_text(self.out, as_json + "\n")
        if not result.changed:
            goal, remedy = "on which these models disagree more", "another `seed`"
            if few_changes is not None:
                unit = "standard deviations" if sds else "nats"
                goal = f"in which few new words cause a drop of {few_changes.enough:g} {unit}"
                remedy = "a lower `enough`"
            reporter.say(
                f"No result: the search found no sentence {goal}. Try {remedy}, another sentence, "
                "more words, or fewer constraints."
            )
        rules = ", ".join(f"{model.name}: {model.convention.rule}" for model in models)
        parts = [as_json] if self.as_json else [*_result_parts(result), f"Scoring rules: {rules}."]
        return Outcome(result, facts, complete=bool(result.changed), parts=parts)


def _sds_of(models: Sequence[Scorer], reporter: Reporter) -> dict[str, float]:
    """Return model → standard deviation of the model's scores; empty if all units are nats."""
    # Generating sentences takes seconds, and `natural_sds` needs none if all units are nats
    if all(model.convention.is_log_probability for model in models):
        return {}
    # Skip sentences with words that a model does not know: all unknown words have the same score
    generated = generate(2 * MAX_SENTENCES, seed=0)
    known = (s for s in generated if all(model.knows(s.words).all() for model in models))
    sds = natural_sds(models, known)
    listed = ", ".join(f"{sds[m.name]:.3g} {m.convention.unit} ({m.name})" for m in models)
    reporter.say(f"Standard deviations of scores of the embedded English: {listed}.")
    return sds


def _result_parts(result: Synthesis | SymmetricPair) -> Iterator[Shown]:
    names = names_for_tables(result.models)
    columns = [*names.values()]
    if isinstance(result, SymmetricPair):
        climbs, about = result.climbs, f"Disagreement {result.disagreement:.2f} nats. "
        # `log_probs` has a row for each model, but the table has a row for each sentence. The first
        # climb (run of the search loop) changes sentence_1. It lists model_2 first, because model_2
        # is the model that accepts sentence_1
        of_1, of_2 = zip(*result.log_probs, strict=True)
        second, first = climbs[0].start.log_probs.tolist()
        model_1, model_2 = columns
        rows = [
            ("natural", result.natural, (first, second)),
            (f"{model_1} rejects", result.sentence_1, of_1),
            (f"{model_2} rejects", result.sentence_2, of_2),
        ]
    else:
        climbs, about = (result.climb,), ""
        rows = [
            ("natural", result.natural, result.natural_log_probs),
            ("synthetic", result.synthetic, result.log_probs),
        ]
        columns = [f"{role}: {name}" for role, name in zip(result.roles, columns, strict=True)]
    cells = []
    for label, sentence, scores in rows:
        changes = dict.fromkeys(changed_positions(sentence, result.natural), "")
        cells.append(((label,), mark_changes(sentence, changes), *(f"{s:.2f}" for s in scores)))
    yield Table(("", "sentence", *columns), cells, texts=2)
    yield from (f"{short}: {name}" for name, short in names.items() if short != name)
    if not isinstance(result, SymmetricPair) and result.choice is not None and result.changed:
        yield _choice_text(result, result.choice)
        yield from _costs(result)
        return
    n_steps = sum(len(climb.steps) for climb in climbs)
    # Count the first start always, and a later start only if a word was replaced after it
    starts = sum(len({0, *(step.round for step in climb.steps)}) for climb in climbs)
    visits = sum(climb.visits for climb in climbs)
    yield (
        f"{about}{_units_text(result)} {quantity(n_steps, 'word')} replaced in "
        f"{quantity(visits, 'visit')} of positions from {quantity(starts, 'start')}; ended because "
        f"{climbs[-1].end}."
    )
    if len(result.searches) > 1:
        n, n_last = len(result.searches), result.n_unsuccessful
        last = f"; the last {n_last} brought almost no improvement" if n_last else ""
        yield f"This is the best of {n} searches{last}; {result.end_of_searches}."
    yield from _costs(result)


def _choice_text(result: Synthesis, choice: Choice) -> str:
    n_new = quantity(len(changed_positions(result.natural, result.synthetic)), "new word")
    proof = ", proven to be the fewest" if choice.minimal else ""
    judges = result.names("judge")
    chosen = f"chosen by {judges} from" if judges else "the best of"
    goal = "nats" if {*result.units} == {NATS} else "standard deviations"
    return (
        f"{_units_text(result)} {n_new}{proof}; {chosen} "
        f"{quantity(choice.feasible, 'sentence')} in which the drop is large enough ({goal})."
    )


def _units_text(result: SearchResult) -> str:
    if {*result.units} == {NATS}:
        return "Log-probabilities in nats."
    pairs = zip(result.models, result.units, strict=True)
    return f"Scores: {', '.join(f'{name} in {unit}' for name, unit in pairs)}."


def _costs(result: SearchResult) -> Iterator[str]:
    for name, cost in result.costs.items():
        if cost.rows:
            tokens = quantity(cost.tokens, "token")
            yield f"{name} read {quantity(cost.rows, 'sequence')} of {tokens}."
