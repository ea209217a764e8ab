"""Reproduction of results with the Acceptability Delta Criterion, ADC (Vázquez Martínez 2021).

The criterion compares models with human judgements of the sentences of the data set LI-Adger. A
minimal pair meets the criterion if the model and people prefer the same sentence, and if their
differences between the two sentences, in z-scores, are less than a threshold δ apart.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.evaluation.acceptability import AcceptabilitySettings, read_judgements
from contstim.evaluation.criteria import AcceptabilityEvaluation, evaluate_acceptability, z_scores
from contstim.evaluation.judged_scores import JudgedScores, published_scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


BEST = "bert-large-cased_mlm"
_MASKED = "bert_mlm_results_li-adger_sentences.csv"
_CLASSIFIERS = "bert_acc_results_li-adger_sentences.csv"
_PUBLISHED = {"blimp": "2,061", "adc-0.5": "890", "adc-1": "1,563", "adc-5": "2,053"}
_TOLERANCE = 1e-9  # z-scores that differ by less are considered equal


def reproduce_adc(data: Path | str) -> tuple[AcceptabilityEvaluation, dict[str, float]]:
    """Evaluate the published scores in a copy of the repository hjvm/acceptability_delta_criterion.

    The file of pseudo-log-likelihoods is required. The file of the classifiers' confidences is
    optional.

    Args:
        data: folder of the repository, or a folder that contains the repository as `li-adger`.

    Returns:
        Two values. The first is the evaluation of all published columns of scores. The second is a
        dictionary: name of a column of pseudo-log-likelihoods → largest difference between the
        published z-scores of this column and ours.

    Raises:
        InputError: if a file is missing, or its content does not have the published form.
    """
    folders = (Path(data), Path(data) / "li-adger")
    folder = next((f for f in folders if (f / "output" / _MASKED).is_file()), None)
    if folder is None:
        raise InputError(
            f"{data} has no output/{_MASKED}. Name a copy of hjvm/acceptability_delta_criterion."
        )
    judgements = read_judgements(folder)
    masked, classifiers = (folder / "output" / name for name in (_MASKED, _CLASSIFIERS))
    tables = (masked, classifiers) if classifiers.is_file() else (masked,)
    parts = [published_scores(judgements, path) for path in tables]
    models = parts[0].models
    # The published z-scores and our z-scores have the shape (n_sentences, n_models). Both use the
    # mean and the population standard deviation of a model's scores of all sentences.
    columns = AcceptabilitySettings(column=tuple(f"{name}_zscores" for name in models))
    published = published_scores(judgements, masked, columns)
    largest = np.abs(z_scores(parts[0].values) - published.values).max(axis=0)
    evaluation = evaluate_acceptability(judgements, JudgedScores.join(parts))
    return evaluation, dict(zip(models, largest.tolist(), strict=True))


def claims(
    evaluation: AcceptabilityEvaluation, differences: Mapping[str, float]
) -> Iterator[tuple[str, str, str]]:
    """Yield (topic, published result, our result) for each claim; see `reproduce_adc`."""
    judgements = evaluation.judgements
    judged = zip(judgements.sentences, judgements.values, strict=True)
    unjudged = {name for name, judgement in judged if np.isnan(judgement)}
    ours = f"{len(judgements.sentences):,}, {len(unjudged)} without a judgement"
    yield "sentences", "4,178, 2 without a judgement", ours
    ours = f"{len(judgements.pairs):,}, {len(evaluation.excluded)} not evaluated"
    yield "minimal pairs", "2,393, 28 not evaluated", ours
    # The paper counts a pair as meeting the ADC if one of its sentences has no judgement. Such
    # pairs are not evaluated here, so they are added to our counts.
    n_unjudged_pairs = sum(
        bool({p.acceptable, p.unacceptable} & unjudged) for p in judgements.pairs
    )
    for name, passed in evaluation.met.items():
        met = int(passed[:, evaluation.models.index(BEST)].sum())
        about = f"{BEST}: pairs that meet {name}"
        if name != "blimp":
            met += n_unjudged_pairs
            about += f", with the {n_unjudged_pairs} pairs that lack a judgement"
        yield about, f"{_PUBLISHED[name]} of 2,365", f"{met:,} of {len(evaluation.pairs):,}"
    for model, difference in differences.items():
        ours = "the same" if difference < _TOLERANCE else f"differ by up to {difference:.2g}"
        yield f"{model}: population z-scores over all sentences", "the same", ours
