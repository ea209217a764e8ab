"""Causal networks read earlier tokens only; masked networks read both sides.

Witness: mathematics, as the probability of the next token cannot depend on later tokens. Also tests
the window of networks and the context before the first word.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import processors

from contstim.errors import ModelError
from contstim.models.catalog import load_model
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.words.sentence import Sentence
from tests.models import tiny
from tests.models.architectures import save
from tests.models.checkpoints.conftest import SENTENCES, Copy, edit
from tests.models.tiny import Folder

hf: Any = transformers


@pytest.mark.parametrize(
    "name",
    ["Mamba", "Mamba 2", "RWKV", "Mixtral (experts)", "MPT", "BLOOM", "OPT", "BERT as a decoder"],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_left_to_right_networks_are_loaded(tmp_path: Path, name: str, dtype: Any) -> None:
    """Networks have initial weights, with which earlier words have the smallest effects."""
    folder = save(name, tmp_path, sharpen=False)
    assert load_checkpoint(str(folder), Loading(device="cpu", dtype=dtype)).kind == "causal"


@pytest.mark.parametrize("kind", sorted(tiny.BUILDERS))
def test_probe_accepts_half_precision(tiny_checkpoint: Folder, kind: str) -> None:
    load_checkpoint(str(tiny_checkpoint(kind)), Loading(device="cpu", dtype="bfloat16"))


@pytest.mark.parametrize("name", ["XLNet", "BERT with a causal head"])
def test_networks_that_read_later_words_are_refused(tmp_path: Path, name: str) -> None:
    """Networks have initial weights; `test_architectures` has larger weights."""
    folder = save(name, tmp_path, sharpen=False)
    with pytest.raises(ModelError, match=r"its predictions of a word depend .*without is_decoder"):
        load_checkpoint(str(folder), Loading(device="cpu"))


def test_masked_network_that_reads_one_side_is_refused(copy: Copy) -> None:
    folder = copy("bert")
    edit(folder / "config.json", is_decoder=True)
    with pytest.raises(ModelError, match="does not depend on the words that follow"):
        load_checkpoint(str(folder), Loading(device="cpu"))


def test_window_of_mpt_is_read(tmp_path: Path) -> None:
    """MPT calls the window `max_seq_len`. Witness: the library itself fails on longer input."""
    folder = save("MPT", tmp_path)
    network = load_checkpoint(str(folder), Loading(device="cpu"))
    with pytest.raises(RuntimeError):
        network.model(torch.zeros((1, 65), dtype=torch.long))
    assert network.window == 64
    model = load_model(f"hf:{folder}", device="cpu")
    assert model.log_probs([Sentence.parse("a a a.")])[0] < 0
    with pytest.raises(ModelError, match="reads at most 64"):
        model.log_probs([Sentence.parse("a " * 90 + "a.")])


def test_tokens_added_before_a_text_are_the_context(copy: Copy) -> None:
    """GLM begins every text with `[gMASK]<sop>` and names no beginning of a sequence.

    Witness: the network's own loss on the tokenizer's tokens of the whole text.
    """
    folder = copy("gpt2")
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    first, second = "#", "%"  # the network has no room for new tokens
    tokenizer.add_special_tokens({"additional_special_tokens": [first, second]})
    prefix_ids = tokenizer.convert_tokens_to_ids([first, second])
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} {second} $A",
        special_tokens=[*zip((first, second), prefix_ids, strict=True)],
    )
    tokenizer.save_pretrained(folder)
    model = load_model(f"hf:{folder}", device="cpu")
    assert model.convention.context == f"{first} {second}"
    network = load_checkpoint(str(folder), Loading(device="cpu"))
    for sentence, score in zip(SENTENCES, model.log_probs(SENTENCES), strict=True):
        ids = torch.tensor([network.tokenizer(sentence.text)["input_ids"]])
        assert ids[0, :2].tolist() == prefix_ids
        labels = ids.clone()
        labels[0, :2] = -100
        with torch.no_grad():
            loss = network.model(ids, labels=labels).loss
        assert score == pytest.approx(-float(loss) * (ids.shape[1] - 2), rel=1e-5)
