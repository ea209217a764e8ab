"""Tiny checkpoints in the real formats, with random weights and newly trained tokenizers.

Each builder saves a folder that `from_pretrained` loads like a folder from the hub. Weights are
scaled up, so that word order and context change scores by nats, not by rounding errors.
"""

import json
import string
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors, trainers
from tokenizers import models as tokenizer_models

from contstim.models.checkpoints import Checkpoint
from contstim.models.ngram.training import DiscountWarning, train_ngram
from contstim.models.training.transformers import train_tokenizer
from contstim.words.sentence import Sentence

hf: Any = transformers
Folder = Callable[[str], Path]
"""Returns the folder of a tiny checkpoint by name; see the fixture `tiny_checkpoint`."""
Load = Callable[[str], Checkpoint]
"""Loads a tiny checkpoint by name on the CPU."""
Tokenizers = Callable[[str], Any]
"""Returns the tokenizer of a tiny checkpoint by name."""

CONTEXT = 64
"""Maximum number of tokens that each model reads, including special tokens."""

TEXTS = (
    "The old teacher reads a book in the garden.",
    "She sleeps in the small house near the river.",
    "Do you know the answer to this difficult question?",
    "The dogs that the girl saw were very hungry.",
    "Nobody remembered the children's names after the long winter.",
    "What a wonderful day it was for everybody!",
    "A tired doctor walked quickly to the empty station.",
    "My brother never believed the strange stories of the sailors.",
    "They were painting the kitchen when the telephone rang.",
    "The well-known writer didn't answer any of the letters.",
    "Some people like to sing while others prefer to listen.",
    "If it rains tomorrow we will stay at home and read.",
    "The farmer sold his horses because he needed the money.",
    "Her neighbours often complained about the noisy parties.",
    "Every morning the baker opens his shop before sunrise.",
    "The young lawyers explained the new rules to the workers.",
    "Has anyone seen the keys that I left on the table?",
    "An unknown visitor brought flowers to the hospital.",
    "The train from the north arrived two hours later than planned.",
    "Students who study languages travel more than their teachers.",
    "He carefully repaired the broken window with a piece of wood.",
    "The manager quietly thanked the cooks for their hard work.",
    "Birds were singing in the trees behind the old church.",
    "Why did the prisoner refuse to speak to the judge?",
)
_LETTERS = " ".join(letter * 2 for letter in string.ascii_letters)  # initial, and inside a word
_TRAINING = (*TEXTS * 2, _LETTERS)
_RUNS_OF_SPACES = ("." + " \u00a0" * 8 + " .", "." + "\u3000" * 8 + ".", ".    .") * 20
_WIDTH = 32


def build(name: str, folder: Path) -> Path:
    """Save the tiny checkpoint with this name in `BUILDERS` to a new subfolder."""
    checkpoint_folder = folder / name
    torch.manual_seed(0)
    model, tokenizer = BUILDERS[name]()
    _sharpen(model)
    model.save_pretrained(checkpoint_folder)
    tokenizer.save_pretrained(checkpoint_folder)
    return checkpoint_folder


def specification(folder_of: Callable[[str], Path], name: str) -> str:
    """Return the specification of a tiny checkpoint; `bert@chain` adds the rule `chain`."""
    checkpoint, _, rule = name.partition("@")
    return f"hf:{folder_of(checkpoint)}" + (f"@{rule}" if rule else "")


def train_ngrams(order: int, path: Path) -> Path:
    """Save an n-gram model of the texts, which are too few to estimate discounts."""
    sentences = [Sentence.parse(text) for text in TEXTS * 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscountWarning)
        train_ngram(sentences, order, path)
    return path


def small_bert(
    n_tokens: int, width: int = 16, layers: int = 1, heads: int = 2, **settings: Any
) -> Any:
    """Return a BERT with its initial weights."""
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    sizes |= {"intermediate_size": width, "max_position_embeddings": CONTEXT}
    return hf.BertForMaskedLM(hf.BertConfig(vocab_size=n_tokens, **sizes | settings))


def small_gpt2(
    n_tokens: int, width: int = _WIDTH, layers: int = 2, heads: int = 4, mark: int | None = None
) -> Any:
    """Return a GPT-2 with its initial weights; `mark` begins and ends texts."""
    sizes = {"n_positions": CONTEXT, "n_embd": width, "n_layer": layers, "n_head": heads}
    marks = {"bos_token_id": mark, "eos_token_id": mark}
    return hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=n_tokens, **sizes, **marks))


def _bert() -> tuple[Any, Any]:
    tokenizer = _word_piece(220, lower_case=False)
    return hf.BertForMaskedLM(hf.BertConfig(**_encoder_settings(tokenizer))), tokenizer


def _roberta() -> tuple[Any, Any]:
    tokenizer = hf.RobertaTokenizer().train_new_from_iterator(_TRAINING, 400)
    sizes = _encoder_settings(tokenizer)
    sizes["max_position_embeddings"] += tokenizer.pad_token_id + 1  # numbers begin after padding
    return hf.RobertaForMaskedLM(hf.RobertaConfig(**sizes, type_vocab_size=1)), tokenizer


def _electra() -> tuple[Any, Any]:
    tokenizer = _word_piece(200, lower_case=True)
    config = hf.ElectraConfig(**_encoder_settings(tokenizer), embedding_size=24)
    return hf.ElectraForMaskedLM(config), tokenizer


def _albert() -> tuple[Any, Any]:
    tokenizer = hf.AlbertTokenizer(do_lower_case=False).train_new_from_iterator(_TRAINING, 200)
    config = hf.AlbertConfig(**_encoder_settings(tokenizer), embedding_size=16)
    return hf.AlbertForMaskedLM(config), tokenizer


def _modernbert() -> tuple[Any, Any]:
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    backend = _train_byte_level(400, list(special.values()))
    _add_frame(backend, "[CLS]", "[SEP]")
    tokenizer = _wrap_tokenizer(backend, special)
    config = hf.ModernBertConfig(
        **_encoder_settings(tokenizer),
        **{f"{role}_token_id": getattr(tokenizer, f"{role}_token_id") for role in ("cls", "sep")},
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        global_attn_every_n_layers=2,
        local_attention=8,
        attn_implementation="eager",
    )
    return hf.ModernBertForMaskedLM(config), tokenizer


def _xlm() -> tuple[Any, Any]:
    special = {"bos": "<s>", "cls": "</s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>"}
    special["mask"] = "<special1>"
    backend = Tokenizer(tokenizer_models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.BPEDecoder(suffix="</w>")
    # The trainer numbers word-final characters in the order of a hash table and breaks ties by
    # number. As sorted special tokens, they have the same numbers in every process.
    finals = [f"{word[-1]}</w>" for text in _TRAINING for word in _split_words(backend, text)]
    trainer = trainers.BpeTrainer(
        vocab_size=220,
        special_tokens=[*dict.fromkeys(special.values()), *sorted(set(finals))],
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    backend.train_from_iterator(_TRAINING, trainer)
    state = json.loads(backend.to_str())
    state["added_tokens"] = []
    backend = Tokenizer.from_str(json.dumps(state))
    _add_frame(backend, "<s>", "</s>")
    tokenizer = _wrap_tokenizer(backend, special)
    config = hf.XLMConfig(
        vocab_size=len(tokenizer),
        emb_dim=_WIDTH,
        n_layers=2,
        n_heads=4,
        n_langs=1,
        max_position_embeddings=CONTEXT,
        bos_index=tokenizer.bos_token_id,
        eos_index=tokenizer.sep_token_id,
        pad_index=tokenizer.pad_token_id,
        unk_index=tokenizer.unk_token_id,
        mask_index=tokenizer.mask_token_id,
        pad_token_id=tokenizer.pad_token_id,
        mask_token_id=tokenizer.mask_token_id,
    )
    return hf.XLMWithLMHeadModel(config), tokenizer


def _gpt2() -> tuple[Any, Any]:
    tokenizer = hf.GPT2Tokenizer().train_new_from_iterator(_TRAINING, 400)
    return small_gpt2(len(tokenizer), mark=tokenizer.bos_token_id), tokenizer


def _spaced() -> tuple[Any, Any]:
    """GPT-2 with tokens of several no-break and ideographic spaces, like the published GPT-2."""
    tokenizer = hf.GPT2Tokenizer().train_new_from_iterator((*_TRAINING, *_RUNS_OF_SPACES), 400)
    return small_gpt2(len(tokenizer), layers=1, mark=tokenizer.bos_token_id), tokenizer


def _pythia() -> tuple[Any, Any]:
    tokenizer = hf.GPTNeoXTokenizer().train_new_from_iterator(_TRAINING, 400)
    config = hf.GPTNeoXConfig(**_decoder_settings(tokenizer))
    return hf.GPTNeoXForCausalLM(config), tokenizer


def _llama() -> tuple[Any, Any]:
    """SentencePiece-style BPE with byte fallback; its tokenizer adds `<s>` itself."""
    special = ["<unk>", "<s>", "</s>"]
    backend = Tokenizer(tokenizer_models.BPE(unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()  # Llama's own does not split words
    trainer = trainers.BpeTrainer(
        vocab_size=460,
        special_tokens=[*special, *(f"<0x{byte:02X}>" for byte in range(256))],
        show_progress=False,
    )
    backend.train_from_iterator(_TRAINING, trainer)
    model = json.loads(backend.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    tokenizer = hf.LlamaTokenizer(vocab=model["vocab"], merges=merges, add_bos_token=True)
    config = hf.LlamaConfig(**_decoder_settings(tokenizer), num_key_value_heads=2)
    return hf.LlamaForCausalLM(config), tokenizer


BUILDERS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "bert": _bert,
    "roberta": _roberta,
    "electra": _electra,
    "albert": _albert,
    "modernbert": _modernbert,
    "xlm": _xlm,
    "gpt2": _gpt2,
    "spaced": _spaced,
    "pythia": _pythia,
    "llama": _llama,
}


def _split_words(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the words into which a tokenizer splits a text before it looks for tokens."""
    normalized = tokenizer.normalizer.normalize_str(text)
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normalized)]


def _word_piece(size: int, *, lower_case: bool) -> Any:
    """Return the same tokenizer in every process, unlike `train_new_from_iterator`."""
    texts = [text.lower() if lower_case else text for text in _TRAINING]
    backend = train_tokenizer([Sentence.parse(text) for text in texts], "bert", size, CONTEXT)
    return hf.BertTokenizer(vocab=backend.get_vocab(), do_lower_case=lower_case)


def _encoder_settings(tokenizer: Any) -> dict[str, Any]:
    return {**_network_sizes(tokenizer), "pad_token_id": tokenizer.pad_token_id}


def _decoder_settings(tokenizer: Any) -> dict[str, Any]:
    ends = {f"{end}_token_id": getattr(tokenizer, f"{end}_token_id") for end in ("bos", "eos")}
    return {**_network_sizes(tokenizer), **ends}


def _network_sizes(tokenizer: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": _WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 2 * _WIDTH,
        "max_position_embeddings": CONTEXT,
    }


def _train_byte_level(size: int, special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(tokenizer_models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_TRAINING, trainer)
    return tokenizer


def _add_frame(tokenizer: Tokenizer, first: str, last: str) -> None:
    """Make the tokenizer add a token before and after every text."""
    ids = [(token, tokenizer.token_to_id(token)) for token in (first, last)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=ids
    )


def _wrap_tokenizer(tokenizer: Tokenizer, special: dict[str, str]) -> Any:
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=["input_ids", "attention_mask"],
        **{f"{role}_token": token for role, token in special.items()},
    )


@torch.no_grad()
def _sharpen(model: torch.nn.Module) -> None:
    """Draw weights at a scale that gives uneven attention and spread-out log-probabilities."""
    for name, weight in model.named_parameters():
        if weight.ndim < 2:
            continue
        scale = 0.5 if "embed" in name or "wte" in name or "wpe" in name else 2.0 * _WIDTH**-0.5
        weight.normal_(std=scale)
