"""`contstim synthesize`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from contstim.cli.constraints import (
    Allow,
    Exclude,
    Fix,
    Fluency,
    MaxChanges,
    SameLength,
    fluency_of,
    read_constraints,
    read_fluency,
)
from contstim.cli.output import (
    INCOMPLETE,
    Device,
    Dtype,
    Prompt,
    Quiet,
    Seed,
    TrustRemoteCode,
    remark,
)
from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import LanguageModel
    from contstim.vocabulary import Vocabulary


def synthesize(
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
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="Words to use; by default those frequent in the models' own text."),
    ] = None,
    allow_unknown: Annotated[
        bool,
        typer.Option("--allow-unknown", help="Also use words that a word-level model cannot tell."),
    ] = False,
    recipe: Annotated[
        str, typer.Option(help="How to search: default, or golan2023, the published procedure.")
    ] = "default",
    objective: Annotated[
        Literal["accept-reject", "symmetric"],
        typer.Option(
            help="One sentence; or a pair of them on which two models disagree as much as can be."
        ),
    ] = "accept-reject",
    fix: Fix = None,
    max_changes: MaxChanges = None,
    allow: Allow = None,
    exclude: Exclude = None,
    same_length: SameLength = None,
    fluency: Fluency = None,
    prompt: Prompt = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    trust_remote_code: TrustRemoteCode = False,
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
    from contstim.models.catalog import load_models
    from contstim.optimization.search.recipes import recipe_named
    from contstim.sentence import Sentence

    natural = Sentence.parse(sentence)
    constraints = read_constraints(
        natural,
        fix=fix,
        max_changes=max_changes,
        allow=allow,
        exclude=exclude,
        same_length=same_length,
    )
    judge, floor = ([], None) if fluency is None else _judge(fluency)
    names = [*accept, *reject, *judge]
    way = recipe_named(recipe)  # refused before models are loaded
    models = load_models(
        names, device=device, dtype=dtype, prompt=prompt, trust_remote_code=trust_remote_code
    )
    words, n_dropped = _vocabulary(vocabulary, models, allow_unknown=allow_unknown, quiet=quiet)
    options: dict[str, Any] = {
        "recipe": way,
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

        options["fluency"] = fluency_of(models, floor)
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


def _judge(fluency: str) -> tuple[list[str], float]:
    model, floor = read_fluency(fluency)
    return [model], floor


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
