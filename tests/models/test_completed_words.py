"""Surprisal of whole words: that a word ends counts to it, and a sentence's sum stays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from contstim.errors import ModelError
from contstim.models.boundaries import word_completing
from contstim.models.causal.adapter import CausalModel
from contstim.models.checkpoints import Checkpoint, load_checkpoint
from contstim.models.loading import Loading
from contstim.models.scoring import term_table
from contstim.testing.models import ToyModel
from contstim.words.sentence import Sentence
from tests.models.tiny import TEXTS

SENTENCES = [Sentence.parse(text) for text in (*TEXTS[:6], TEXTS[9], "Yes.")]
hf: Any = transformers


@pytest.fixture(scope="module")
def model_of(tiny_checkpoint: Callable[[str], Path]) -> Callable[[str], CausalModel]:
    return lambda name: CausalModel(
        load_checkpoint(str(tiny_checkpoint(name)), Loading(device="cpu"))
    )


@pytest.mark.parametrize("name", ["gpt2", "llama", "pythia"])
def test_words_add_up_to_the_sentence(model_of: Callable[[str], CausalModel], name: str) -> None:
    """Property: what one word gives, its neighbour takes."""
    model = model_of(name)
    plain, corrected = model.token_log_probs(SENTENCES), model.completed_word_log_probs(SENTENCES)
    sums = [sum(term.log_prob for term in terms) for terms in corrected]
    np.testing.assert_allclose(sums, model.log_probs(SENTENCES), rtol=0, atol=1e-9)
    for before, after in zip(plain, corrected, strict=True):
        assert [term[:2] for term in before] == [term[:2] for term in after]
        assert [term.log_prob for term in before] != [term.log_prob for term in after]


def test_a_word_is_its_tokens_times_its_end_over_its_beginning(
    model_of: Callable[[str], CausalModel],
) -> None:
    """Witness: the formula of Pimentel & Meister (2024), with transformers alone."""
    model, sentence = model_of("gpt2"), SENTENCES[0]
    checkpoint = model.checkpoint
    tokenizer = checkpoint.tokenizer
    ids = tokenizer(sentence.text)["input_ids"]
    with torch.inference_mode():
        logits = checkpoint.model(torch.tensor([[tokenizer.bos_token_id, *ids]])).logits[0]
    p = torch.softmax(logits.double(), dim=-1).numpy()  # p[t] is of token t
    spelled = tokenizer.convert_ids_to_tokens(list(range(p.shape[1])))
    ends = [
        token is None
        or token.startswith(("Ġ", "Ċ", "ĉ", "č"))
        or token in ".?!"
        or token in tokenizer.all_special_tokens
        for token in spelled
    ]
    words = sentence.text.removesuffix(".").split()
    starts = [place for place, i in enumerate(ids) if place == 0 or ends[i]]
    assert len(starts) == len(words) + 1
    expected = []
    for start, stop in zip(starts, [*starts[1:], None], strict=True):
        tokens = np.prod([p[place, ids[place]] for place in range(start, stop or len(ids))])
        begins = 1.0 if start == 0 else p[start, ends].sum()
        finishes = 1.0 if stop is None else p[stop, ends].sum()
        expected.append(np.log(tokens * finishes / begins))
    (terms,) = model.completed_word_log_probs([sentence])
    table = term_table({"m": {sentence: terms}}, [sentence], by_word=True)
    assert table["word"] == [*words, "."]
    assert table["position"] == list(range(len(words) + 1))
    assert sum(table["tokens"]) == len(ids)
    np.testing.assert_allclose(table["log_prob"], expected, rtol=0, atol=1e-4)
    assert table["surprisal"] == [-value for value in table["log_prob"]]


LONGEST = 7  # letters of a word


@pytest.fixture(scope="module")
def letters() -> CausalModel:
    """A causal model of seven tokens, which spell all words of the letters a and b."""
    vocabulary = {"<s>": 0, "[UNK]": 1, "a": 2, "b": 3, "##a": 4, "##b": 5, ".": 6}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", bos_token="<s>", eos_token="<s>"
    )
    torch.manual_seed(4)
    config = hf.GPT2Config(
        vocab_size=len(vocabulary),
        n_positions=16,
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    network = hf.GPT2LMHeadModel(config)
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(3)
    return CausalModel(Checkpoint(network, fast, "letters", "cpu", "causal"))


def test_words_share_all_probability_between_them(letters: CausalModel) -> None:
    """Witness: enumeration of every word after `b`. Uncorrected the sum is another."""
    words = ["".join(w) for n in range(1, LONGEST + 1) for w in product("ab", repeat=n)]
    sentences = [Sentence.parse(f"b {word} a.") for word in words]
    sums = {}
    for what, score in (
        ("plain", letters.token_log_probs),
        ("corrected", letters.completed_word_log_probs),
    ):
        of_words = [
            sum(term.log_prob for term in terms if term.word == 1) for terms in score(sentences)
        ]
        sums[what] = np.exp(of_words).sum()
    # What is no word: an end mark or a special token, and words of more letters
    with torch.inference_mode():
        after = letters.checkpoint.model(torch.tensor([[0, 3]])).logits[0, -1].double()
    p = torch.softmax(after, dim=-1).numpy()
    begins = p[[0, 1, 2, 3, 6]].sum()
    others = p[[0, 1, 6]].sum() / begins
    longest = sentences[-(2**LONGEST) :]
    unfinished = sum(
        np.exp(sum(term.log_prob for term in plain if term.word == 1)) / begins
        - np.exp(sum(term.log_prob for term in corrected if term.word == 1))
        for plain, corrected in zip(
            letters.token_log_probs(longest), letters.completed_word_log_probs(longest), strict=True
        )
    )
    assert sums["corrected"] + others + unfinished == pytest.approx(1, abs=1e-5)
    assert abs(sums["plain"] - sums["corrected"]) > 0.05


def test_models_of_words_need_no_correction_and_others_are_refused_by_name(
    tiny_checkpoint: Callable[[str], Path],
) -> None:
    checkpoint = load_checkpoint(str(tiny_checkpoint("gpt2")), Loading(device="cpu"))
    with pytest.raises(ModelError, match="already preserves word boundaries"):
        CausalModel(checkpoint, rule="chain").completed_word_log_probs(SENTENCES)
    toy = ToyModel()
    with pytest.raises(ModelError, match="no word boundaries to correct"):
        toy.completed_word_log_probs(SENTENCES[:1])
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_checkpoint("xlm"))
    with pytest.raises(ModelError, match="needs no correction"):
        word_completing(tokenizer, len(tokenizer))
