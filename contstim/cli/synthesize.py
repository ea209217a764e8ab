"""`contstim synthesize`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from contstim.cli.constraints import Fluency, WordLimits, read_fluency
from contstim.cli.options import AllowUnknown, Loading, Quiet, Seed, Words
from contstim.cli.output import INCOMPLETE, remark
from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import LanguageModel
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
        Literal["default", "golan2023"],
        typer.Option(help="How to search: our way, or the published procedure."),
    ] = "default",
    objective: Annotated[
        Literal["accept-reject", "symmetric"],
        typer.Option(
            help="One sentence; or a pair of them on which two models disagree as much as can be."
        ),
    ] = "accept-reject",
    limits: WordLimits,
    fluency: Fluency = None,
    loading: Loading,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Change a sentence word by word until one model rejects what another accepts.

    Shows each step, the models' log-probabilities (nats), why the search ended, and what it cost.
    Of several accept models all must accept; of several reject models all are made to reject. Where
    nothing is found, this is said and the exit status is 3.

    Example: `contstim synthesize --accept kenlm:trigram.arpa --reject kenlm:bigram.arpa
    --sentence "Luke has a ton of experience with winning" --vocabulary vocab.txt`
    """
    from contstim.cli.synthesized import as_json as jsonable
    from contstim.cli.synthesized import print_result, print_step
    from contstim.models.base import conventions
    from contstim.optimization.search.recipes import RECIPES
    from contstim.sentence import Sentence

    natural = Sentence.parse(sentence)
    constraints = limits.constraints(natural)
    # a fluency model is the last of the models, where there is one
    judges, floor = ([], 0.0) if fluency is None else read_fluency(fluency)
    models = loading.language_models([*accept, *reject, *judges])
    words, n_dropped = _vocabulary(vocabulary, models, allow_unknown=allow_unknown, quiet=quiet)
    options: dict[str, Any] = {
        "recipe": RECIPES[recipe],
        "constraints": constraints,
        "seed": seed,
        "on_step": None if as_json or quiet else print_step,
    }
    accepting, rejecting = models[: len(accept)], models[len(accept) :][: len(reject)]
    if objective == "symmetric":
        if len(models) != 2:
            raise InputError(
                "--objective symmetric takes one --accept, one --reject, no --fluency."
            )
        from contstim.optimization.search.symmetric import synthesize_pair

        pair = synthesize_pair(rejecting[0], accepting[0], natural, words, **options)
        found: Any = pair
    else:
        from contstim.optimization.search.synthesize import synthesize as run

        options["fluency"] = (models[-1], floor) if judges else None
        found = run(accepting, rejecting, natural, words, **options)
    if as_json:
        facts = {"models": conventions(models), "words_dropped": n_dropped, "seed": seed}
        print(json.dumps(jsonable(found) | facts, indent=2, ensure_ascii=False))
    else:
        print_result(found)
        rules = ", ".join(f"{model.name}: {model.convention.rule}" for model in models)
        print(f"Scoring rules: {rules}.")
    if not found.changed:
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
