"""Trivial rivals of models: what word frequency and numbers of words predict of people's choices.

    word frequency   prefers the sentence whose words are more frequent (mean Zipf)
    words changed    that of which more words are still the natural sentence's
    tag misfits      that with fewer new words of another part of speech (`contstim.items.matching`)
    grammar          the acceptable sentence of a minimal pair

They are no models, and enter no test between models. Each model is tested against every one of
them, and all these tests are one family: to test against the best one alone, chosen by the same
answers, would call a model worse than an equally good rival too often.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.effects import compare
from contstim.experiments.analysis.families import ModelContrast
from contstim.experiments.analysis.measures import ACCURACY
from contstim.experiments.analysis.ratings import TESTING, Ratings, Scope, scope_mask
from contstim.items.matching import match
from contstim.items.reviews import naturals_of
from contstim.items.stimuli import Condition, Kind
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from contstim.experiments.analysis.effects import Result, Sampling, Units
    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import FloatArray
    from contstim.items.stimuli import Trial
    from contstim.words.frequencies import WordFrequencies
    from contstim.words.tags import TagTable

RIVALS = FREQUENCY, CHANGED, MISFITS = "word frequency", "words changed", "tag misfits"
GRAMMAR = "grammar"


@dataclass(frozen=True)
class TrivialRivals:
    """Preferences of the trivial rivals.

    Attributes:
        ratios: rival → `trial_id` → how much more it is for sentence_2 than for sentence_1: Zipf,
            or words; 0 for a tie. Trials that it says nothing of are left out.
        left_out: what is left out, and why, in sentences.
    """

    ratios: Mapping[str, Mapping[str, float]]
    left_out: tuple[str, ...] = ()


def trivial_rivals(
    trials: Sequence[Trial], table: TagTable, frequencies: WordFrequencies | None = None
) -> TrivialRivals:
    """Let the trivial rivals choose between the sentences of trials.

    Words changed and misfits say something of two synthetic sentences alone, whose natural one is
    found by `naturals_of`. A table that has less than half of the words says nothing.

    Args:
        trials: of all conditions.
        table: how often words have which tag.
        frequencies: of words; by default of the text in which the tags were counted.
    """
    judged = [trial for trial in trials if trial.condition in TESTING]
    shown = {sentence for trial in judged for sentence in (trial.sentence_1, trial.sentence_2)}
    words = {word for sentence in shown for word in sentence.words}
    known, listed, naturals = table.fits(words), table.share_listed(words), naturals_of(trials)
    synthetic = [t for t in judged if t.condition is Condition.SYNTHETIC_SYNTHETIC]
    matches = {
        t.trial_id: [match(natural, s, table) for s in (t.sentence_1, t.sentence_2)]
        for t in synthetic
        if (natural := naturals[t.trial_id][0]) is not None
    }
    ratios: dict[str, dict[str, float]] = {
        CHANGED: {t: len(a.changed) - len(b.changed) for t, (a, b) in matches.items()},
    }
    if minimal := [t.trial_id for t in judged if t.kind_1 is Kind.ACCEPTABLE]:
        ratios[GRAMMAR] = dict.fromkeys(minimal, -1.0)  # sentence_1 is the acceptable one
    if known:
        ratios[MISFITS] = {t: len(a.misfits) - len(b.misfits) for t, (a, b) in matches.items()}
    if known or frequencies:
        zipf = (frequencies or table.frequencies).mean_zipf
        ratios[FREQUENCY] = {t.trial_id: zipf(t.sentence_2) - zipf(t.sentence_1) for t in judged}
    lost, without = len(synthetic) - len(matches), [FREQUENCY] * (not frequencies) + [MISFITS]
    left_out = {
        f"{CHANGED} and {MISFITS} leave out {counted(lost, 'pair')} of synthetic sentences, whose "
        f"natural sentence is in no trial, and so does {FREQUENCY} beside them.": lost > 0,
        f"{' and '.join(without)} are left out, since {table.name} has {listed:.0%} of the trials' "
        "words. Give a table of tags of their language (`tags`).": not known,
    }
    told = (f"Trivial rivals: {text}" for text, is_so in left_out.items() if is_so)
    return TrivialRivals(ratios, tuple(told))


def judge_rivals(
    ratings: Ratings, result: Result, rivals: TrivialRivals, sampling: Sampling
) -> Result | None:
    """The trivial rivals where models were compared, and each model against every one of them.

    Args:
        ratings: who rated what.
        result: of the models, in one scope by one measure.
        rivals: what they prefer.
        sampling: as for the models.

    Returns:
        In `models` a row for each rival, on the trials of the scope that all rivals judge. In
        `comparisons` a row for each model and rival, on the model's own of these trials: the model
        less the rival. These are one family. None if no rival says anything.
    """
    # Of a natural and a synthetic sentence the natural one always has fewer new words, and a model
    # is judged in one role at a time, for or against the synthetic one
    if result.scope in (Scope.ACCEPT, Scope.REJECT):
        return None
    groups, models, about = ratings.groups, ratings.models, (result.scope, result.measure)
    of_scopes = {Scope.SYNTHETIC: RIVALS, Scope.MINIMAL: (FREQUENCY, GRAMMAR)}
    speak, of = of_scopes.get(result.scope, (FREQUENCY,)), rivals.ratios
    masks = [
        scope_mask(g.trials, result.scope, models, catch=sampling.catch_trials) for g in groups
    ]
    # Of each group, (n_judges, n_trials); nan where a rival says nothing
    ratios = [
        np.array([[of.get(r, {}).get(t.trial_id, np.nan) for t in g.trials] for r in speak])
        for g in groups
    ]
    # A rival that ties in all trials says nothing of them
    says = (np.nan_to_num(np.hstack(ratios)) * np.hstack(masks).any(axis=0)).any(axis=1)
    told, ratios = [*compress(speak, says)], [r[says] for r in ratios]
    if not told:
        return None
    # The trials that all of them judge: values on different trials cannot be compared
    spoken = [
        np.tile(m.any(axis=0) & ~np.isnan(r).any(axis=0), (len(told), 1))
        for m, r in zip(masks, ratios, strict=True)
    ]
    alone = compare(_judged(ratings, told, ratios), *about, (), sampling, masks=spoken)
    # Each rival once again for each model, on the model's own trials
    rival_of = {f"{rival}, trials of {model}": rival for rival in told for model in models}
    judges = [
        np.concatenate([g.ratios, np.repeat(r, len(models), axis=0)])
        for g, r in zip(groups, ratios, strict=True)
    ]
    against = compare(
        _judged(ratings, (*models, *rival_of), judges),
        *about,
        [
            ModelContrast(model, judge)
            for judge, model in zip(rival_of, models * len(told), strict=True)
        ],
        sampling,
        masks=[np.tile(m & s[0], (1 + len(told), 1)) for m, s in zip(masks, spoken, strict=True)],
    )
    tests = counted(len(against.comparisons), "contrast")
    family = f"{tests} of {result.measure.name} in {result.scope}: models against trivial rivals"
    rows = [
        {**test, "second": rival_of[test["second"]], "family": family}
        for test in against.comparisons
    ]
    return replace(alone, comparisons=rows, detectability=against.detectability)


def by_paradigm(ratings: Ratings, sampling: Sampling) -> list[Row]:
    """How often people agree with the grammar and with models on minimal pairs.

    A row for each paradigm, and for all together, and each judge, the grammar (of near pairs, the
    natural sentence) or a model on its own trials: the share of them in which the judge prefers the
    acceptable sentence, a tie as one half (`prefers_acceptable`), and the accuracy with which it
    predicts people (`value`), with its interval. No rows without minimal pairs. In brackets stand
    `(grammar)` where a model and `(all)` where a paradigm has the name.

    Args:
        ratings: who rated what.
        sampling: as for the models.
    """
    paradigms = {t.paradigm for t in ratings.trials if t.condition is Condition.MINIMAL_PAIR}
    of_grammar = any(trial.kind_1 is Kind.ACCEPTABLE for trial in ratings.trials)
    first = _apart(GRAMMAR if of_grammar else "natural sentence", ratings.models)
    together, groups = _apart("all", paradigms), ratings.groups
    # The grammar finds sentence_1 likelier, in every trial
    ratios = [np.vstack([-np.ones(len(g.trials)), g.ratios]) for g in groups]
    judged = _judged(ratings, (first, *ratings.models), ratios)
    own = [scope_mask(g.trials, Scope.MINIMAL, ratings.models) for g in groups]
    own = [np.vstack([mask.any(axis=0), mask]) for mask in own]
    rows = []
    for paradigm in (together, *sorted(paradigms - {""})) if paradigms else ():
        of_it = [[paradigm in (together, t.paradigm) for t in g.trials] for g in groups]
        masks = [mask & some for mask, some in zip(own, of_it, strict=True)]
        acceptable = (np.hstack(masks) * (1 - np.sign(np.hstack(ratios))) / 2).sum(axis=1).tolist()
        sums = dict(zip(judged.models, acceptable, strict=True))
        for row in compare(judged, Scope.MINIMAL, ACCURACY, (), sampling, masks=masks).models:
            judge = row.pop("model")
            share = sums[judge] / row["n_trials"]
            rows.append({"paradigm": paradigm, "judge": judge, "prefers_acceptable": share, **row})
    return rows


def _apart(name: str, others: Collection[str]) -> str:
    """The name, in brackets where another has it."""
    return _apart(f"({name})", others) if name in others else name


def _judged(ratings: Ratings, names: Sequence[str], ratios: Sequence[FloatArray]) -> Ratings:
    """The same answers beside other judges; `ratios` of each group, (n_judges, n_trials)."""
    groups = [
        replace(group, log_probs=np.stack([np.zeros(of.shape), of], axis=-1))
        for group, of in zip(ratings.groups, ratios, strict=True)
    ]
    return Ratings((*names,), (*groups,))


def better_than_all_rivals(result: Result, model: str) -> bool:
    """True if a model is significantly better than every trivial rival.

    This is an intersection-union test.

    Args:
        result: of `judge_rivals`.
        model: the name of a model.
    """
    tests = [test for test in result.comparisons if test["first"] == model]
    return bool(tests) and all(test["significant"] and test["difference"] > 0 for test in tests)


def against_rivals(result: Result, units: Units | None) -> str:
    """Statement of which models are not shown to be better than every trivial rival.

    Args:
        result: of `judge_rivals`.
        units: what its tests compare.
    """
    values = ", ".join(f"{row['model']} ({row['value']:.2f})" for row in result.models)
    than = f"than the trivial rival{'s' * (len(result.models) > 1)} {values}"
    if cannot := result.detectability.cannot(str(units)):
        return f"Which models are better {than}, {cannot}."
    models = [*dict.fromkeys(test["first"] for test in result.comparisons)]
    others = [model for model in models if not better_than_all_rivals(result, model)]
    if not others:
        return f"On the same trials, every model is better {than}."
    text = f"On the same trials, not shown to be better {than}: {', '.join(others)}."
    worse = [
        f"{test['first']} than {test['second']}"
        for test in result.comparisons
        if test["significant"] and test["difference"] < 0
    ]
    return f"{text} Worse: {', '.join(worse)}." if worse else text
