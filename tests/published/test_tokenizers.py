"""The real tokenizers of GPT-2 and RoBERTa on the words of the 2023 study."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from contstim.experiments.reproduce.published import read_vocabulary
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.words import (
    Encoding,
    encode_batch,
    place_of,
    word_and_rest,
    words_are_independent,
    words_in_places,
)
from contstim.words.sentence import Sentence

pytestmark = pytest.mark.published


@pytest.fixture(scope="session")
def tokenizers(published_data: Path) -> Path:
    """The folder of real tokenizers, with tiny networks, beside the published data."""
    folder = published_data.parent / "tokenizers"
    if not folder.is_dir():
        pytest.skip(f"no tokenizers in {folder}")
    return folder


@pytest.mark.parametrize("name", ["gpt2", "roberta"])
def test_neighbours_do_not_change_tokens(published_data: Path, tokenizers: Path, name: str) -> None:
    """Witness: the tokenizer on whole sentences of the study's words."""
    tokenizer = load_checkpoint(str(tokenizers / name), Loading(device="cpu")).tokenizer
    assert words_are_independent(tokenizer)

    def cut(sentences: Sequence[Sentence]) -> list[Encoding]:
        return encode_batch(tokenizer, sentences, special_tokens=False, end_apart=False)

    in_places, words = words_in_places(cut), read_vocabulary(published_data / "contstimlang")
    rng = np.random.default_rng(0)
    for _ in range(300):
        chosen = rng.choice(words.inner, 7).tolist()
        sentence = Sentence((str(rng.choice(words.initial)), *chosen))
        (encoding,) = cut([sentence])
        for position, word in enumerate(sentence.words):
            alone = in_places((word,), place_of(sentence, position))
            assert alone.tokens[0] == word_and_rest(encoding, position)[0]
