"""Trivial rivals of models: simple rules that predict people's choices.

    word frequency   prefers the sentence whose words are more frequent (mean Zipf value, that is,
                     the base-10 logarithm of the frequency in a billion words)
    words changed    prefers the sentence that shares more words with the natural sentence
    tag misfits      prefers the sentence with fewer tag misfits, that is, new words that have
                     another part of speech than the replaced word (`contstim.items.matching`)
    grammar          prefers the acceptable sentence of a minimal pair

Trivial rivals are not part of tests between models. Each model is tested against every rival, and
all these tests are one family, for which p-values are corrected together. A single test against the
best rival would be biased, because the same answers would select this rival and test it. A model
would too often seem worse than an equally good rival.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.experiments.analysis.effects import Result, Sampling, Units, compare
from contstim.experiments.analysis.measures import ACCURACY
from contstim.experiments.analysis.ratings import TESTING, Ratings, Scope, scope_mask
from contstim.items.matching import match
from contstim.items.reviews import naturals_of
from contstim.items.stimuli import Condition, Kind, Trial
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import FloatArray
    from contstim.words.frequencies import WordFrequencies
    from contstim.words.tags import TagTable

RIVALS = FREQUENCY, CHANGED, MISFITS = "word frequency", "words changed", "tag misfits"
GRAMMAR = "grammar"
Preferences: TypeAlias = "Mapping[str, Mapping[str, float]]"
"""Rival → `trial_id` → advantage of sentence_2 over sentence_1, in Zipf or words; 0 for a tie.

Trials that the rival does not judge are missing."""


def trivial_rivals(
    trials: Sequence[Trial], table: TagTable, frequencies: WordFrequencies | None = None
) -> tuple[Preferences, tuple[str, ...]]:
    """Compute which sentence of each trial the trivial rivals prefer.

    The rivals `words changed` and `tag misfits` judge only pairs of synthetic sentences. They
    compare each synthetic sentence with its natural sentence (`naturals_of`). Without
    `frequencies`, the rival `word frequency` uses the frequencies of `table`. If `table` contains
    too few of the trials' words (`TagTable.fits`), its tags and frequencies are not used.

    Returns:
        The preferences, and messages that explain why rivals or trials are left out.
    """
    judged = [trial for trial in trials if trial.condition in TESTING]
    sentences = {sentence for trial in judged for sentence in (trial.sentence_1, trial.sentence_2)}
    words = {word for sentence in sentences for word in sentence.words}
    is_usable, listed, naturals = table.fits(words), table.share_listed(words), naturals_of(trials)
    synthetic = [t for t in judged if t.condition is Condition.SYNTHETIC_SYNTHETIC]
    matches = {
        t.trial_id: [match(natural, s, table) for s in (t.sentence_1, t.sentence_2)]
        for t in synthetic
        if (natural := naturals[t.trial_id][0]) is not None
    }
    ratios: dict[str, dict[str, float]] = {
        CHANGED: {t: len(a.changed) - len(b.changed) for t, (a, b) in matches.items()}
    }
    if minimal := [t.trial_id for t in judged if t.kind_1 is Kind.ACCEPTABLE]:
        ratios[GRAMMAR] = dict.fromkeys(minimal, -1.0)  # sentence_1 is acceptable, not sentence_2
    if is_usable:
        ratios[MISFITS] = {t: len(a.misfits) - len(b.misfits) for t, (a, b) in matches.items()}
    if is_usable or frequencies:
        zipf = (frequencies or table.frequencies).mean_zipf
        ratios[FREQUENCY] = {t.trial_id: zipf(t.sentence_2) - zipf(t.sentence_1) for t in judged}
    n_unmatched = len(synthetic) - len(matches)
    omitted_rivals = [FREQUENCY] * (not frequencies) + [MISFITS]
    left_out = {
        f"{CHANGED} and {MISFITS} cannot judge {quantity(n_unmatched, 'pair')} of synthetic "
        "sentences whose natural sentence is not in the table of trials. These pairs are left out "
        f"for {FREQUENCY} too, so that all rivals have the same trials.": n_unmatched > 0,
        f"{' and '.join(omitted_rivals)} are not evaluated, because {table.name} contains only "
        f"{listed:.0%} of the words of the trials. Give a table of tags for the language of the "
        "trials (`tags`).": not is_usable,
    }
    return ratios, tuple(f"Trivial rivals: {text}" for text, is_so in left_out.items() if is_so)


def judge_rivals(
    ratings: Ratings, result: Result, rivals: Preferences, sampling: Sampling
) -> Result | None:
    """Evaluate the trivial rivals like models, and test each model against each rival.

    Returns:
        A result for the trials of the scope (a set of trials) that all rivals judge. `models` has a
        row for each rival. `comparisons` has a row for each model and rival (model minus rival); a
        row uses only trials that evaluate the model. These tests are one family. The result is None
        if no rival prefers a sentence in any trial, or if the scope is `ACCEPT` or `REJECT`.
    """
    # Trivial rivals are not informative in natural-synthetic trials. A rule that counts new words
    # would always prefer the natural sentence, which has fewer of them than the synthetic sentence.
    # All models prefer the synthetic sentence in the scope `ACCEPT`, and the natural sentence in
    # the scope `REJECT`.
    if result.scope in (Scope.ACCEPT, Scope.REJECT):
        return None
    groups, models, about = ratings.groups, ratings.models, (result.scope, result.measure)
    rivals_by_scope = {Scope.SYNTHETIC: RIVALS, Scope.MINIMAL: (FREQUENCY, GRAMMAR)}
    candidates = rivals_by_scope.get(result.scope, (FREQUENCY,))
    masks = [
        scope_mask(g.trials, result.scope, models, catch=sampling.catch_trials) for g in groups
    ]
    # For each group, (n_rivals, n_trials); nan if a rival does not judge the trial
    ratio_by_id = [rivals.get(rival, {}) for rival in candidates]
    ratios = [
        np.array([[by_id.get(t.trial_id, np.nan) for t in g.trials] for by_id in ratio_by_id])
        for g in groups
    ]
    is_informative = (np.nan_to_num(np.hstack(ratios)) * np.hstack(masks).any(axis=0)).any(axis=1)
    names, ratios = [*compress(candidates, is_informative)], [r[is_informative] for r in ratios]
    if not names:
        return None
    # All rivals are evaluated on the same trials, so that their values are comparable
    common = [
        np.tile(m.any(axis=0) & ~np.isnan(r).any(axis=0), (len(names), 1))
        for m, r in zip(masks, ratios, strict=True)
    ]
    rival_result = compare(_with_judges(ratings, names, ratios), *about, (), sampling, masks=common)
    # Each rival is copied for each model. A copy is evaluated on the trials that evaluate its model
    rival_of = {f"{rival}, trials of {model}": rival for rival in names for model in models}
    judges = [
        np.concatenate([g.ratios, np.repeat(r, len(models), axis=0)])
        for g, r in zip(groups, ratios, strict=True)
    ]
    against = compare(
        _with_judges(ratings, (*models, *rival_of), judges),
        *about,
        [*zip(models * len(names), rival_of, strict=True)],
        sampling,
        masks=[np.tile(m & s[0], (1 + len(names), 1)) for m, s in zip(masks, common, strict=True)],
    )
    tests = quantity(len(against.comparisons), "contrast")
    family = f"{tests} of {result.measure.name} in {result.scope}: models against trivial rivals"
    rows = [
        replace(test, second=rival_of[test.second], family=family) for test in against.comparisons
    ]
    return replace(rival_result, comparisons=rows, detectability=against.detectability)


def by_paradigm(ratings: Ratings, sampling: Sampling) -> list[Row]:
    """Measure agreement of people with the grammar and with models on minimal pairs.

    A paradigm is a set of minimal pairs with the same grammatical contrast. A judge is a model, or
    the rule `grammar`, which prefers the acceptable sentence. Models judge only trials that target
    them, as `model_1` or `model_2`. The list has a row for each paradigm and judge. It also has,
    for each judge, a row for all paradigms together (`all`). If minimal pairs consist of a natural
    and a changed sentence, the judge `natural sentence` replaces `grammar`, and prefers the natural
    sentence. `prefers_acceptable` is the share of trials in which the judge prefers the acceptable
    (or natural) sentence; a tie counts one half. `value` is the accuracy with which the judge
    predicts people; further columns contain the interval of `value`. Without minimal pairs, the
    list is empty.

    If a paradigm has the name `all`, the rows of all paradigms together are named `(all)`. If a
    model has the name `grammar`, the judge is named `(grammar)`.
    """
    paradigms = {t.paradigm for t in ratings.trials if t.condition is Condition.MINIMAL_PAIR}
    has_grammar = any(trial.kind_1 is Kind.ACCEPTABLE for trial in ratings.trials)
    first = _distinct_name(GRAMMAR if has_grammar else "natural sentence", ratings.models)
    all_paradigms, groups = _distinct_name("all", paradigms), ratings.groups
    # The grammar prefers sentence_1 in every trial
    ratios = [np.vstack([-np.ones(len(g.trials)), g.ratios]) for g in groups]
    judged = _with_judges(ratings, (first, *ratings.models), ratios)
    model_masks = [scope_mask(g.trials, Scope.MINIMAL, ratings.models) for g in groups]
    model_masks = [np.vstack([mask.any(axis=0), mask]) for mask in model_masks]
    rows = []
    for paradigm in (all_paradigms, *sorted(paradigms - {""})) if paradigms else ():
        masks = [
            mask & [paradigm in (all_paradigms, t.paradigm) for t in g.trials]
            for mask, g in zip(model_masks, groups, strict=True)
        ]
        acceptable = (np.hstack(masks) * (1 - np.sign(np.hstack(ratios))) / 2).sum(axis=1).tolist()
        sums = dict(zip(judged.models, acceptable, strict=True))
        for row in compare(judged, Scope.MINIMAL, ACCURACY, (), sampling, masks=masks).models:
            share = sums[row.model] / row.n_trials
            cells = {"paradigm": paradigm, "judge": row.model, "prefers_acceptable": share}
            rows.append(cells | {name: x for name, x in vars(row).items() if name != "model"})
    return rows


def _distinct_name(name: str, names: Collection[str]) -> str:
    """Return `name`, in brackets if it is one of `names`."""
    return _distinct_name(f"({name})", names) if name in names else name


def _with_judges(ratings: Ratings, names: Sequence[str], ratios: Sequence[FloatArray]) -> Ratings:
    """Return the ratings, with judges (models or trivial rivals) in place of models.

    `ratios` has an (n_judges, n_trials) array for each group.
    """
    groups = [
        replace(group, log_probs=np.stack([np.zeros(group_ratios.shape), group_ratios], axis=-1))
        for group, group_ratios in zip(ratings.groups, ratios, strict=True)
    ]
    return Ratings((*names,), (*groups,))


def better_than_all_rivals(result: Result, model: str) -> bool:
    """Return whether a model is significantly better than every trivial rival.

    This is an intersection-union test.
    """
    tests = [test for test in result.comparisons if test.first == model]
    return bool(tests) and all(test.significant and test.difference > 0 for test in tests)


def against_rivals(result: Result, units: Units | None) -> str:
    """Describe which models are not shown to be better than every trivial rival."""
    values = ", ".join(f"{row.model} ({row.value:.2f})" for row in result.models)
    than = f"than the trivial rival{'s' * (len(result.models) > 1)} {values}"
    if cannot := result.detectability.cannot(str(units)):
        return f"Which models are better {than}, {cannot}."
    models = [*dict.fromkeys(test.first for test in result.comparisons)]
    not_better = [model for model in models if not better_than_all_rivals(result, model)]
    if not not_better:
        return f"On the same trials, every model is better {than}."
    names = ", ".join(not_better)
    text = f"On the same trials, these models are not shown to be better {than}: {names}."
    worse = [
        f"{test.first} than {test.second}"
        for test in result.comparisons
        if test.significant and test.difference < 0
    ]
    return f"{text} Worse: {', '.join(worse)}." if worse else text
