"""Weights without a place: layers are refused, heads that do not matter are not.

The names are those that published checkpoints hold, as their files on the hub list them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from contstim.errors import ModelError
from contstim.models.checkpoints import load_checkpoint
from contstim.models.classifier import LABELS
from contstim.models.loading import Loading
from tests.models.checkpoints.conftest import Copy, Scores, edit, edit_weights, score

PUBLISHED = {
    "bert": (  # bert-large-cased
        "bert.pooler.dense.weight",
        "bert.pooler.dense.bias",
        "cls.seq_relationship.weight",
        "cls.seq_relationship.bias",
        "bert.embeddings.position_ids",
    ),
    "roberta": (  # roberta-large
        "roberta.pooler.dense.weight",
        "roberta.pooler.dense.bias",
        "roberta.embeddings.position_ids",
    ),
    "electra": (  # google/electra-large-generator
        "electra.embeddings.position_ids",
        "discriminator_predictions.dense.weight",
    ),
    "albert": (  # albert-base-v2
        "albert.pooler.weight",
        "albert.pooler.bias",
        "sop_classifier.classifier.weight",
        "sop_classifier.classifier.bias",
        "albert.embeddings.position_ids",
    ),
    "xlm": ("transformer.position_ids",),  # xlm-mlm-en-2048
    "gpt2": ("transformer.h.0.attn.bias", "transformer.h.1.attn.masked_bias"),  # gpt2-xl
    "pythia": (  # EleutherAI/pythia-160m
        "gpt_neox.layers.0.attention.bias",
        "gpt_neox.layers.0.attention.masked_bias",
        "gpt_neox.layers.0.attention.rotary_emb.inv_freq",
    ),
    "llama": ("model.layers.0.self_attn.rotary_emb.inv_freq",),  # Llama-2
}


@pytest.mark.parametrize("kind", PUBLISHED)
def test_heads_and_buffers_of_published_checkpoints_do_not_matter(
    copy: Copy, undamaged: Scores, kind: str
) -> None:
    folder = copy(kind)
    names = PUBLISHED[kind]
    edit_weights(folder, lambda weights: weights.update({name: torch.ones(2) for name in names}))
    assert np.array_equal(score(folder), undamaged(kind))


def test_names_of_old_layer_norms_still_load(copy: Copy, undamaged: Scores) -> None:
    """bert-large-cased calls them gamma and beta; the undamaged scores are the witness."""
    folder = copy("bert")

    def rename(weights: dict[str, torch.Tensor]) -> None:
        for name in [name for name in weights if "LayerNorm" in name]:
            old = name.replace(".weight", ".gamma").replace(".bias", ".beta")
            weights[old] = weights.pop(name)

    edit_weights(folder, rename)
    assert np.array_equal(score(folder), undamaged("bert"))


@pytest.mark.parametrize(
    ("kind", "entry"),
    [("bert", "num_hidden_layers"), ("gpt2", "n_layer"), ("classifier", "num_hidden_layers")],
)
def test_a_configuration_with_fewer_layers_than_the_weights_is_refused(
    copy: Copy, kind: str, entry: str
) -> None:
    folder = copy(kind)
    edit(folder / "config.json", **{entry: 1})
    with pytest.raises(ModelError, match=r"do not belong to the .* such as"):
        score(folder)


def test_a_new_classifier_takes_the_whole_network_or_nothing(copy: Copy) -> None:
    folder = copy("bert")
    cpu = Loading(device="cpu")
    load = partial(load_checkpoint, str(folder), cpu, classifier=True, labels=LABELS)
    assert load().kind == "classifier"
    edit(folder / "config.json", num_hidden_layers=1)
    with pytest.raises(ModelError, match=r"do not belong to the .*layer\.1"):
        load()
