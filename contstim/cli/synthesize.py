"""`contstim synthesize`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from contstim.cli.options import Quiet, Seed, Words
from contstim.cli.output import (
    INCOMPLETE,
    changed_words,
    names_for_tables,
    print_table,
    remark,
    results_table,
    tell_unknown_words,
    terminal,
)
from contstim.errors import InputError
from contstim.models.loading import Loading
from contstim.steps.constraints import (
    AllowUnknown,
    Fluency,
    Restarts,
    SearchSeconds,
    WordSettings,
    read_fluency,
)
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import LanguageModel
    from contstim.optimization.search.climb import Step
    from contstim.optimization.search.restarts import SearchSummary
    from contstim.optimization.search.symmetric import SymmetricPair
    from contstim.optimization.search.synthesize import Synthesis
    from contstim.vocabulary import Vocabulary


def synthesize(
    *,
    accept: Annotated[
        list[str],
        typer.Option(
            metavar="[NAME=]MODEL",
            help="The model that is to find the sentence no less likely. Repeatable.",
        ),
    ],
    reject: Annotated[
        list[str],
        typer.Option(
            metavar="[NAME=]MODEL",
            help="The model that is to find it as unlikely as can be. Repeatable.",
        ),
    ],
    sentence: Annotated[str, typer.Option(help="The natural sentence to start from.")],
    vocabulary: Words = None,
    allow_unknown: AllowUnknown = False,
    recipe: Annotated[
        str, typer.Option(help="How to search: default, or golan2023, the published way.")
    ] = "default",
    objective: Annotated[
        Literal["accept-reject", "symmetric"],
        typer.Option(
            help="One sentence; or a pair of them on which two models disagree as much as can be."
        ),
    ] = "accept-reject",
    word_settings: WordSettings,
    fluency: Fluency = None,
    restarts: Restarts = None,
    seconds: SearchSeconds = None,
    loading: Loading,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="A file to write the same JSON to, with a record beside it.")
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Change a sentence word by word until one model rejects what another accepts.

    Shows each step, the models' log-probabilities (nats), why the search ended, and what it cost.
    Of several accept models all must accept; of several reject models all are made to reject. Where
    nothing is found, this is said and the exit status is 3.

    A sentence is searched again, each time with another seed, where that is cheap; --restarts and
    --seconds say how often and how long.

    Example: `contstim synthesize --accept kenlm:trigram.arpa --reject kenlm:bigram.arpa
    --sentence "Luke has a ton of experience with winning" --vocabulary vocab.txt --restarts 20`
    """
    from contstim.files import write_text
    from contstim.models.base import conventions
    from contstim.models.catalog import load_models
    from contstim.models.origins import model_origins
    from contstim.optimization.search.json_facts import json_facts
    from contstim.optimization.search.recipes import recipe_named
    from contstim.optimization.search.restarts import SearchBudget
    from contstim.records import write_record
    from contstim.sentence import Sentence

    natural = Sentence.parse(sentence)
    constraints = word_settings.limits().constraints(natural, every_fix=True)
    # A fluency model is the last of the models, where there is one.
    judges, floor = ([], 0.0) if fluency is None else read_fluency(fluency)
    way = recipe_named(recipe)  # an unknown recipe is refused before models are loaded
    budget = None
    if restarts is not None or seconds is not None:
        budget = SearchBudget(restarts, seconds)
    models = load_models([*accept, *reject, *judges], loading)
    tell_unknown_words(models, [natural], quiet=quiet)
    words, n_dropped = _vocabulary(vocabulary, models, allow_unknown=allow_unknown, quiet=quiet)
    options: dict[str, Any] = {
        "recipe": way,
        "constraints": constraints,
        "seed": seed,
        "restarts": budget,
        "on_step": None if as_json or quiet else _print_step,
        "fluency": (models[-1], floor) if judges else None,
        "on_restart": None if as_json or quiet else _print_search,
    }
    # In the order of loading: those that accept, those that reject, the model of fluency
    accepting, rejecting = models[: len(accept)], models[len(accept) :][: len(reject)]
    if objective == "symmetric":
        if len(accepting) != 1 or len(rejecting) != 1:
            raise InputError("--objective symmetric takes one --accept and one --reject.")
        from contstim.optimization.search.symmetric import synthesize_pair

        pair = synthesize_pair(rejecting[0], accepting[0], natural, words, **options)
        result: Any = pair
    else:
        from contstim.optimization.search.synthesize import synthesize as run

        result = run(accepting, rejecting, natural, words, **options)
    facts = {"models": conventions(models), "words_dropped": n_dropped, "seed": seed}
    as_text = json.dumps(json_facts(result) | facts, indent=2, ensure_ascii=False)
    if out is not None:
        origins = model_origins(model.specification for model in models)
        write_text(out, as_text + "\n")
        inputs = [vocabulary, *word_settings.files, *origins.files]
        write_record(out, inputs, commits=origins.commits, **facts)
    if as_json:
        print(as_text)
    else:
        _print_result(result)
        rules = ", ".join(f"{model.name}: {model.convention.rule}" for model in models)
        print(f"Scoring rules: {rules}.")
    if not result.changed:
        remark(
            "Nothing was found: no sentence on which these models disagree more. Try another "
            "--seed, another sentence, more words, or fewer constraints."
        )
        raise typer.Exit(INCOMPLETE)


def _vocabulary(
    path: Path | None, models: Sequence[LanguageModel], *, allow_unknown: bool, quiet: bool
) -> tuple[Vocabulary, int]:
    """The words to use, and how many were dropped because a model does not know them."""
    from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
    from contstim.vocabulary import Vocabulary

    words = default_vocabulary(models) if path is None else Vocabulary.load(path)
    if allow_unknown:
        return words, 0
    words, dropped = shared_vocabulary(models, words)
    if dropped:
        remark(
            f"{len(dropped):,} of {len(dropped) + len(words.words):,} words of the vocabulary are "
            f"not known to {'both' if len(models) == 2 else 'all'} models and are left out.",
            quiet=quiet,
        )
    return words, len(dropped)


def _print_step(step: Step) -> None:
    """One line on standard error: log-probabilities, what was replaced, and the sentence."""
    scores = " ".join(f"{score:9.2f}" for score in step.log_probs)
    start = f" (start {step.round + 1})" if step.round else ""
    remark(f"{scores}  {step.old} → {step.new}: {step.sentence.text}{start}")


def _print_search(search: SearchSummary) -> None:
    """One line on standard error between a search and the next one."""
    outcome = f"Search {search.number + 1} (seed {search.seed}): loss {search.loss:.2f} nats"
    if search.number:
        outcome += f", {search.gain:.2f} better than before" if search.gain else ", no gain"
    remark(f"{outcome}. Searching again.")


def _print_result(result: Synthesis | SymmetricPair) -> None:
    """A table of sentences and log-probabilities, why the search ended, and what it cost."""
    from contstim.optimization.search.symmetric import SymmetricPair

    if isinstance(result, SymmetricPair):
        names = names_for_tables(result.models)
        columns = list(names.values())
        climbs = result.climbs
        # Log-probabilities are models × sentences; a row of the table is a sentence. The first
        # climb scores model_2, which is to accept, before model_1.
        of_1, of_2 = zip(*result.log_probs, strict=True)
        of_natural = climbs[0].start_log_probs.tolist()
        rows = [
            ("natural", result.natural, (of_natural[1], of_natural[0], *of_natural[2:])),
            (f"{columns[0]} rejects", result.sentence_1, of_1),
            (f"{columns[1]} rejects", result.sentence_2, of_2),
        ]
        summary = f"Disagreement {result.disagreement:.2f} nats. "
    else:
        names = names_for_tables(result.models)
        columns = [
            f"{r}: {names[name]}" for r, name in zip(result.roles, result.models, strict=True)
        ]
        climbs = (result.climb,)
        rows = [
            ("natural", result.natural, result.natural_log_probs),
            ("synthetic", result.synthetic, result.log_probs),
        ]
        summary = ""
    table = results_table("", "sentence", *columns, texts=2)
    for kind, sentence, scores in rows:
        words = changed_words(sentence, result.natural)
        table.add_row(kind, words, *(f"{score:.2f}" for score in scores))
    print_table(table, names)
    console = terminal()
    steps = [step for climb in climbs for step in climb.steps]
    # A later start counts if a word was replaced from there; the first one counts always.
    starts = sum(len({0, *(step.round for step in climb.steps)}) for climb in climbs)
    visits = sum(climb.visits for climb in climbs)
    console.print(
        f"{summary}Log-probabilities in nats. {counted(len(steps), 'word')} replaced in "
        f"{counted(visits, 'visit')} from {counted(starts, 'start')}; ended because "
        f"{climbs[-1].end.value}."
    )
    history = result.history
    if len(history.searches) > 1:
        console.print(f"This is the {history.text}; {history.end.value}.")
    for name, cost in result.costs.items():
        if cost.rows:
            text = (
                f"{name} read {counted(cost.rows, 'sequence')} of {counted(cost.tokens, 'token')}."
            )
            console.print(text)
