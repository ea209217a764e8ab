"""Acceptability scores from fine-tuned classifiers; these scores are not log-probabilities."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from contstim.errors import ModelError
from contstim.models.base import Convention, Scorer, short_hash, weights_of
from contstim.models.batching import Budget, forward_in_batches
from contstim.models.checkpoints import Checkpoint, load_checkpoint
from contstim.models.families import CLASSIFIER_RULES
from contstim.models.training_text import training_text_beside
from contstim.models.words import are_readable, tokens_of_texts, too_long_error, unscorable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.batching import Write
    from contstim.models.loading import Loading
    from contstim.words.sentence import Sentence

UNIT = "signed confidence, -1 to 1"
LABELS = ("unacceptable", "acceptable")
"""Names of the labels 0 and 1, as in the corpus CoLA."""

_YES = frozenset({"acceptable", "grammatical", "correct", "1"})
_NO = frozenset({"unacceptable", "ungrammatical", "incorrect", "0"})


def load_classifier(location: str, *, name: str, loading: Loading) -> ClassifierModel:
    """Load a sequence classifier from a folder or the hub.

    Raises:
        ModelError: see `load_checkpoint` and `ClassifierModel`.
    """
    return ClassifierModel(load_checkpoint(location, loading, classifier=True), name=name)


class ClassifierModel(Scorer):
    """Classifier whose score is the signed probability of the predicted label.

    The probability is the maximum of the softmax over both labels. The sign is negative if the
    predicted label is `unacceptable`. Scores are in [-1, -0.5] and [0.5, 1]. The definition is in
    Eqs. 3-5 of Vázquez Martínez (2021).

    Args:
        checkpoint: classifier with two labels.
        name: name of the model, by default the checkpoint's location.

    Raises:
        ModelError: if the checkpoint is not a classifier; if its labels do not name acceptability;
            or if its padding token is not in the vocabulary.
    """

    def __init__(self, checkpoint: Checkpoint, *, name: str | None = None) -> None:
        if checkpoint.kind != "classifier":
            raise ModelError(f"{checkpoint.location} is a language model, not a classifier.")
        self.name = name or checkpoint.location
        self.checkpoint = checkpoint
        self.training_text = training_text_beside(checkpoint.location)
        _check_padding(checkpoint)
        self._acceptable = acceptable_label(checkpoint.location, checkpoint.model.config)
        self._budget = Budget.for_device(checkpoint.device)

    @cached_property
    def convention(self) -> Convention:
        """See `Scorer.convention`."""
        digest = short_hash(f"{self.checkpoint.fingerprint} {self._acceptable}")
        rule, fingerprint = CLASSIFIER_RULES[0], f"classifier-{digest}"
        return Convention(rule, context="", end_scored=True, fingerprint=fingerprint, unit=UNIT)

    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return signed confidences, (n_sentences,); see `Scorer.scores`."""
        acceptable = self.probabilities(sentences)
        return np.where(acceptable > 0.5, acceptable, acceptable - 1)

    def probabilities(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return the probability of the label `acceptable`, (n_sentences,).

        Raises:
            ModelError: if a sentence is too long or contains a special token.
        """
        rows = self._encode(sentences)
        probabilities = np.empty(len(rows))

        def run(ids: Tensor, attention: Tensor, indices: IntArray) -> Write:
            logits = self.checkpoint.model(input_ids=ids, attention_mask=attention).logits
            # float64, since float32 cannot represent probabilities very close to 1
            label_probs = torch.softmax(logits.double(), dim=-1)[:, self._acceptable]  # (b,)
            return lambda: probabilities.__setitem__(indices, label_probs.cpu().numpy())

        pad = self.checkpoint.model.config.pad_token_id
        # Without a padding token, as in the published GPT-2, the network cannot find the end of a
        # padded text. In this case, classify texts one by one
        budget = Budget(1, self.checkpoint.device) if pad is None else self._budget
        forward_in_batches(rows, run, pad=pad or 0, budget=budget)
        return probabilities

    def n_parameters(self) -> int:
        """See `Scorer.n_parameters`."""
        return weights_of(self.checkpoint.model)

    def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """See `Scorer.unscorable`."""
        return unscorable(self._encode, sentences)

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `Scorer.knows`; a word is known if it has tokens, but no special or unknown token."""
        return are_readable(self.checkpoint.tokenizer, words)

    def _encode(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        rows, window = tokens_of_texts(self.checkpoint.tokenizer, sentences), self.checkpoint.window
        for sentence, row in zip(sentences, rows, strict=True):
            if window is not None and len(row) > window:
                raise too_long_error(sentence, len(row), self.name, window)
        return rows


def _check_padding(checkpoint: Checkpoint) -> None:
    pad = checkpoint.model.config.pad_token_id
    n_tokens = checkpoint.model.get_input_embeddings().weight.shape[0]
    if pad is not None and not 0 <= pad < n_tokens:
        raise ModelError(
            f"pad_token_id in config.json of {checkpoint.location} must be from 0 to "
            f"{n_tokens - 1:,}, got {pad}. Correct it, or use another checkpoint."
        )


def acceptable_label(location: str, config: Any) -> int:
    """Return the index of the label that means `acceptable`.

    If the labels have no names, the index is 1, as in CoLA.

    Raises:
        ModelError: if there are not two labels, or if their names are unknown.
    """
    names: Mapping[int, str] = config.id2label
    # `transformers` calls labels without a name LABEL_0 and LABEL_1
    plain_names = {n: re.sub("label_([01])", r"\1", str(name).lower()) for n, name in names.items()}
    yes = [number for number, name in plain_names.items() if name in _YES]
    no = [number for number, name in plain_names.items() if name in _NO]
    if len(plain_names) != 2 or len(yes) != 1 or len(no) != 1:
        raise ModelError(
            "The labels of an acceptability classifier must be unacceptable and acceptable, got "
            f"{', '.join(map(str, names.values()))} in {location}. Train one with "
            "'contstim train acceptability'."
        )
    return int(yes[0])
