"""Descriptions of models' scoring and training, in sentences with references."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from contstim.documents import read_json_object
from contstim.models.specifications import parse_specification
from contstim.study.study import NgramSettings
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.study.handing_on.facts import StudyFacts
    from contstim.study.handing_on.references import Citations
    from contstim.study.study import StudyModel

_MASKED = {
    "pll-original": "each given all others, itself masked ({Salazar et al., 2020})",
    "pll-word-l2r": "each given all others, with it and the later tokens of its word masked "
    "({Kauf & Ivanova, 2023})",
    "pll-whole-word": "each given all others, with all tokens of its word masked "
    "({Kauf & Ivanova, 2023})",
    "pll-sentence-l2r": "each given those before it, with it and all later tokens masked "
    "({Kauf & Ivanova, 2023})",
    "chain": "averaged over the orders in which masked words can be uncovered, with probabilities "
    "normalised among tokens that keep the boundaries of words ({Golan et al., 2023})",
    "chain-unrestricted": "averaged over the orders in which masked words can be uncovered "
    "({Golan et al., 2023})",
    "chain-sampled": "averaged over random orders in which masked words are uncovered, with "
    "probabilities normalised among tokens that keep the boundaries of words "
    "({Golan et al., 2023})",
    "chain-mixture": "the logarithm of their mean probability over the orders in which masked "
    "words can be uncovered, with probabilities normalised among tokens that keep the boundaries "
    "of words",
    "pseudo-log-likelihood": "each given the words on both its sides",
}
_NGRAMS = {
    1: "each by itself",
    2: "each given the word before it",
    3: "each given the two words before it",
    4: "each given the three words before it",
    5: "each given the four words before it",
    6: "each given the five words before it",
}
_TRANSFORMS = {
    "mean": "divided by the number of tokens",
    "slor": "less the log-probability of its words under a unigram model, divided by the number of "
    "words (SLOR, {Pauls & Klein, 2012})",
}


def score_text(facts: StudyFacts, model: StudyModel, cite: Citations) -> str:
    """Definition of a model's score of a sentence, as a phrase; empty where no scores were made.

    Args:
        facts: of the study.
        model: of the study.
        cite: notes the works that the phrase cites.
    """
    entry = facts.conventions.get(model.name)
    if entry is None:
        return ""
    parsed = parse_specification(model.specification)
    rule = str(entry["rule"]).partition("+")[0]
    if parsed.family == "classifier":
        return "the signed confidence of a classifier of acceptability, which is not a probability"
    unit = "token" if parsed.family == "hf" else "word"
    context = f"each given the {unit}s before it"
    # Causal models have a rule of the same name, which never samples
    if rule in _MASKED and (rule != "chain" or entry["sampling"]):
        context = _cited(_MASKED[rule], cite)
    elif rule == "chain":
        context += (
            ", with probabilities normalised among tokens that keep the boundaries of words "
            f"({cite('Golan et al., 2023')})"
        )
    elif model.training is not None and isinstance(model.training.network, NgramSettings):
        context = _NGRAMS[model.training.network.order]
    # A mixture averages probabilities, so that its score is not a sum of log-probabilities
    total = "log-probability" if rule == "chain-mixture" else "sum of the log-probabilities"
    text = f"the {total} of all {unit}s, {context}"
    if entry["end_scored"]:
        text += ", and of the end of the sentence"
    if entry["sampling"]:
        text += f" ({entry['sampling']})"
    if parsed.transform in _TRANSFORMS:
        text += f", {_cited(_TRANSFORMS[parsed.transform], cite)}"
    return text


def ngrams_text(facts: StudyFacts, cite: Citations) -> str:
    """Training of the study's n-gram models, in a sentence; empty where there are none.

    Args:
        facts: of the study.
        cite: notes the works that the sentence cites.
    """
    names, sizes = [], []
    for model in facts.study.models:
        if model.training is None or not isinstance(model.training.network, NgramSettings):
            continue
        record = facts.record(model.files[0])
        if record:
            names.append(model.name)
            counts = " + ".join(f"{number:,}" for number in record["ngrams"])
            sizes.append(f"order {record['order']} ({counts} n-grams)")
            smoothing = record["smoothing"]
    if not names:
        return ""
    verb = "is an n-gram model" if len(names) == 1 else "are n-gram models"
    return (
        f"{in_a_row(names)} {verb} with {smoothing} smoothing "
        f"({cite('Chen & Goodman, 1999')}; {cite('Heafield et al., 2013')}), of {in_a_row(sizes)}."
    )


def training_text(model: StudyModel) -> str:
    """Training of a network of the study, in a sentence; empty for any other model.

    The current folder is the study's.
    """
    training = model.training
    if training is None or training.settings is None or isinstance(training.network, NgramSettings):
        return ""
    path = model.files[0] / "training.json"
    if not path.is_file():
        return ""
    record = read_json_object(path)
    sizes = {
        name.replace("_", " "): value
        for name, value in asdict(training.network).items()
        if name != "kind" and value is not None
    }
    listed = ", ".join(f"{name} {value:g}" for name, value in sizes.items())
    settings = training.settings
    return (
        f"{model.name} is a network of the kind {training.network.kind} ({listed}). It was trained "
        f"for {counted(len(record['curve']), 'epoch')} (of {settings.epochs} at most) with AdamW, "
        f"a learning rate of {settings.learning_rate:g}, batches of "
        f"{settings.batch_size:,} sentences and seed {settings.seed}; the weights are those of "
        f"epoch {record['best_epoch']}, with a perplexity of "
        f"{record['validation_perplexity']:,.2f} on {settings.validation:.0%} of the sentences, "
        "which were held out."
    )


def in_a_row(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _cited(text: str, cite: Citations) -> str:
    head, brace, rest = text.partition("{")
    if not brace:
        return text
    work, _, end = rest.partition("}")
    return head + cite(work) + end
