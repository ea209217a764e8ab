"""Every architecture is scored correctly, or refused by name when it is loaded.

The witness is a plain forward pass; see `architectures`.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from contstim.errors import ModelError
from contstim.models.base import Continuation
from contstim.models.catalog import load_model
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading, Precision
from tests.models import architectures

hf: Any = transformers

# One of each way to read: added or rotary positions, windows, both sides, recurrent states
BY_DEFAULT = {"GPT-2", "Gemma 2", "Moshi", "Jamba (hybrid)", "BERT", "DeBERTa"}
SCORED = [
    pytest.param(name, marks=[] if name in BY_DEFAULT else [pytest.mark.slow])
    for name, architecture in architectures.ARCHITECTURES.items()
    if not architecture.refused
]
REFUSED = [
    name for name, architecture in architectures.ARCHITECTURES.items() if architecture.refused
]
# The library warns about such small configurations
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", SCORED)
def test_scores_equal_a_plain_forward_pass(name: str, tmp_path: Path) -> None:
    architecture = architectures.ARCHITECTURES[name]
    folder = architectures.save(name, tmp_path)
    precisions: tuple[Precision, ...] = ("float32", "bfloat16")
    for precision in precisions:
        if precision in architecture.unsupported:
            with pytest.raises(ModelError, match=f"cannot compute in {precision} "):
                architectures.compare(folder, precision)
            continue
        errors = architectures.compare(folder, precision)
        assert errors.largest <= architectures.TOLERANCES[precision] * errors.largest_score
        # Results are scored in float32 in every precision
        assert errors.float32 <= architectures.TOLERANCES["float32"] * errors.largest_score
    model = load_model(f"hf:{folder}", device="cpu")
    if architecture.head.endswith("MaskedLM"):
        with pytest.raises(ModelError, match="only the words before them"):
            model.continuation_log_probs([Continuation(architectures.SENTENCES[0], 1)])
        return
    # Some networks read sentences with equal beginnings as a tree
    similar = [
        sentence.replace(index, word)
        for sentence in architectures.SENTENCES
        for index in range(len(sentence))
        for word in ("dogs", "old")
    ]
    separate_scores = [model.log_probs([sentence])[0] for sentence in similar]
    np.testing.assert_allclose(model.log_probs(similar), separate_scores, rtol=1e-5, atol=1e-4)
    # A later word changes no earlier term; an earlier word can change later ones
    sentence = architectures.SENTENCES[1]
    plain, late, early = model.token_log_probs(
        [sentence, sentence.replace(len(sentence) - 1, "dogs"), sentence.replace(0, "dogs")]
    )
    values = [np.array([term.log_prob for term in terms]) for terms in (plain, late, early)]
    n_before = sum(0 <= term.word < len(sentence) - 1 for term in plain)
    np.testing.assert_allclose(values[0][:n_before], values[1][:n_before], rtol=1e-4, atol=1e-5)
    n_after = sum(term.word != 0 for term in plain)
    assert np.abs(values[0][-n_after:] - values[2][-n_after:]).max() > 1e-3


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_unsuitable_networks_are_refused(name: str, precision: Precision, tmp_path: Path) -> None:
    folder = architectures.save(name, tmp_path)
    architecture = architectures.ARCHITECTURES[name]
    precision_message = f"cannot compute in {precision} "
    reason = precision_message if precision in architecture.unsupported else architecture.refused
    with pytest.raises(ModelError, match=reason):
        load_model(f"hf:{folder}", device="cpu", dtype=precision)


def test_network_that_ignores_earlier_words_is_refused(tmp_path: Path) -> None:
    """Without the output of attention, each token is read separately."""
    n_tokens = len(architectures.save_tokenizer(tmp_path))
    model = hf.LlamaForCausalLM(
        hf.LlamaConfig(vocab_size=n_tokens, **architectures.ARCHITECTURES["Llama"].settings)
    )
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
    model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="does not depend on the words before"):
        load_model(f"hf:{tmp_path}", device="cpu")


@pytest.mark.parametrize("stem", ["Bert", "FNet", "XLNet"])
def test_classifier_that_reads_padding_is_refused(stem: str, tmp_path: Path) -> None:
    """XLNet expects the end of a text where the padding is."""
    tokenizer = architectures.save_tokenizer(tmp_path)
    settings = dict(architectures.ARCHITECTURES["BERT" if stem == "Bert" else stem].settings)
    config = getattr(hf, f"{stem}Config")(
        vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **settings
    )
    torch.manual_seed(0)
    getattr(hf, f"{stem}ForSequenceClassification")(config).save_pretrained(tmp_path)
    if stem == "Bert":
        assert (
            load_checkpoint(str(tmp_path), Loading(device="cpu"), classifier=True).kind
            == "classifier"
        )
        return
    with pytest.raises(ModelError, match="reads the padding tokens"):
        load_checkpoint(str(tmp_path), Loading(device="cpu"), classifier=True)
