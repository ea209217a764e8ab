"""What a network can read: how much, and what stands before the first word."""

from __future__ import annotations

import shutil
from collections.abc import Callable
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
from tests.models.checkpoints.conftest import SENTENCES, Copy

hf: Any = transformers


def test_the_window_of_mpt_is_read(tiny_checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    """MPT says `max_seq_len`; the library itself fails on more, the witness."""
    folder = tmp_path / "mpt"
    shutil.copytree(
        tiny_checkpoint("gpt2"), folder, ignore=shutil.ignore_patterns("*.safetensors", "config*")
    )
    torch.manual_seed(0)
    network = hf.MptForCausalLM(
        hf.MptConfig(vocab_size=400, d_model=32, n_heads=4, n_layers=2, max_seq_len=16)
    )
    network.save_pretrained(folder)
    with pytest.raises(RuntimeError):
        network(torch.zeros((1, 17), dtype=torch.long))
    model = load_model(f"hf:{folder}", device="cpu")
    assert load_checkpoint(str(folder), Loading(device="cpu")).window == 16
    assert model.log_probs([Sentence.parse("a a a.")])[0] < 0
    with pytest.raises(ModelError, match="reads at most 16"):
        model.log_probs([Sentence.parse("a " * 30 + "a.")])


def test_what_the_tokenizer_puts_before_a_text_is_the_context(copy: Copy) -> None:
    """GLM begins every text with `[gMASK]<sop>` and names no beginning of a sequence.

    Witness: the network's own loss on the tokens that the tokenizer makes of the whole text.
    """
    folder = copy("gpt2")
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    first, second = "#", "%"  # the network has no room for new tokens
    tokenizer.add_special_tokens({"additional_special_tokens": [first, second]})
    before = tokenizer.convert_tokens_to_ids([first, second])
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} {second} $A", special_tokens=[*zip((first, second), before, strict=True)]
    )
    tokenizer.save_pretrained(folder)
    model = load_model(f"hf:{folder}", device="cpu")
    assert model.convention.context == f"{first} {second}"
    network = load_checkpoint(str(folder), Loading(device="cpu"))
    for sentence, score in zip(SENTENCES, model.log_probs(SENTENCES), strict=True):
        ids = torch.tensor([network.tokenizer(sentence.text)["input_ids"]])
        assert ids[0, :2].tolist() == before
        labels = ids.clone()
        labels[0, :2] = -100
        with torch.no_grad():
            loss = network.model(ids, labels=labels).loss
        assert score == pytest.approx(-float(loss) * (ids.shape[1] - 2), rel=1e-5)
