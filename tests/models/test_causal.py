"""Causal transformers against the networks' own losses and brute force.

The corrected surprisal of a word includes the end of the word. The sum over the sentence does not
change.
"""

import copy
from dataclasses import replace
from functools import wraps
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy
from tokenizers import Tokenizer, models, pre_tokenizers

from contstim.errors import ModelError
from contstim.models.base import Continuation, LanguageModel
from contstim.models.boundaries import BOUNDARY, WITHIN, token_classes, word_completing
from contstim.models.causal.adapter import CausalModel
from contstim.models.causal.network import CausalNetwork, shared_paths
from contstim.models.checkpoints import Checkpoint
from contstim.models.scoring import term_table
from contstim.models.words import words_are_independent
from contstim.testing.contract import SENTENCES, LanguageModelContract, tolerance
from contstim.testing.models import ToyModel
from contstim.words.sentence import Sentence
from tests.models.tiny import CONTEXT, TEXTS, Folder, Load, small_gpt2

NAMES = ("gpt2", "pythia", "llama")
PARSED = [Sentence.parse(text) for text in TEXTS]
ALL_WORDS = sorted({word for sentence in PARSED for word in sentence.words})
ODD_WORDS = ("U.S.", "well-known", "don't", "naïve", "3rd", "'s", "wait...", "WALKING", "猫")
STIMULI = [Sentence.parse(text) for text in (*TEXTS[:6], TEXTS[9], "Yes.")]
ROWS = [(3, 4, 5, 6, 7), (3, 4, 5, 6, 8, 9), (3, 4, 10, 11, 12), (3, 4, 10, 11), (13, 4, 5)]
hf: Any = transformers


class TestContract(LanguageModelContract):
    @pytest.fixture(
        scope="module",
        params=[
            *((name, "log-likelihood", None) for name in NAMES),
            ("gpt2", "chain", ". "),
            pytest.param(("llama", "chain", "Once upon a time,"), marks=pytest.mark.slow),
        ],
        ids=lambda param: "-".join(map(str, param)),
    )
    @classmethod
    def model(cls, load: Load, request: pytest.FixtureRequest) -> CausalModel:
        name, rule, context = request.param
        return CausalModel(load(name), rule=rule, context=context)

    def continues(self, model: LanguageModel) -> bool:
        del model
        return True

    def expected_continuation(self, model: LanguageModel, continuation: Continuation) -> float:
        """Witness: the network's own softmax over all tokens, under every rule."""
        assert isinstance(model, CausalModel)
        tokenizer, network = model._tokenizer, model.checkpoint.model
        words, space = continuation.sentence.words, " " if model._space else ""
        ids, prefix_ids = (
            tokenizer(space + " ".join(part), add_special_tokens=False)["input_ids"] if part else []
            for part in (words, words[: continuation.start])
        )
        with torch.no_grad():
            logits = network(torch.tensor([[*model._context, *ids]])).logits[0].double()
        terms = logits.log_softmax(dim=1)[-len(ids) - 1 : -1]
        return float(sum(terms[i, ids[i]] for i in range(len(prefix_ids), len(ids))))


@pytest.mark.parametrize("name", NAMES)
def test_log_likelihood_equals_the_networks_own_loss(load: Load, name: str) -> None:
    checkpoint = load(name)
    scores = CausalModel(checkpoint).log_probs(PARSED)
    for sentence, score in zip(PARSED, scores, strict=True):
        ids = _ids_with_beginning(checkpoint, sentence.text)
        with torch.no_grad():
            loss = checkpoint.model(ids, labels=ids).loss
        assert score == pytest.approx(-float(loss) * (ids.shape[1] - 1), abs=1e-3)


def _ids_with_beginning(checkpoint: Checkpoint, text: str) -> torch.Tensor:
    beginning = checkpoint.tokenizer.bos_token_id
    ids = checkpoint.tokenizer(text)["input_ids"]
    return torch.tensor([[beginning, *(token for token in ids if token != beginning)]])


@pytest.mark.parametrize("name", NAMES)
def test_chain_is_a_softmax_over_the_class_of_each_token(load: Load, name: str) -> None:
    checkpoint = load(name)
    sentence = Sentence.parse("The hungry teacher didn't sleep!")
    text = sentence.text if name == "llama" else " " + sentence.text
    ids = _ids_with_beginning(checkpoint, text)
    classes = token_classes(checkpoint.tokenizer, checkpoint.model.config.vocab_size)
    with torch.no_grad():
        logits = checkpoint.model(ids).logits[0].double().numpy()
    log_probs, entropies = [], []
    for index, token in enumerate(ids[0, 1:].tolist()):
        weights = np.exp(logits[index])
        class_weights = weights[classes == classes[token]]
        log_probs.append(np.log(weights[token] / class_weights.sum()))
        entropies.append(entropy(class_weights))
    model = CausalModel(checkpoint, rule="chain")
    assert model.log_probs([sentence])[0] == pytest.approx(sum(log_probs), abs=1e-4)
    (terms,) = model.token_log_probs([sentence])
    assert [term.entropy for term in terms] == pytest.approx(entropies, abs=1e-4)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_chain_probabilities_of_one_pattern_sum_to_one(load: Load, name: str) -> None:
    checkpoint = load(name)
    classes = token_classes(checkpoint.tokenizer, checkpoint.model.config.vocab_size)
    network = CausalNetwork(checkpoint, by_words=True)
    start = network.begin((checkpoint.tokenizer.bos_token_id,))
    pattern = (BOUNDARY, WITHIN)
    rows = list(product(*(np.flatnonzero(classes == kind).tolist() for kind in pattern)))
    total = np.exp(network.continuations(start, rows).sum(axis=1)).sum()
    assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("rule", ["log-likelihood", "chain"])
@pytest.mark.parametrize("name", NAMES)
def test_replacements_equal_rewritten_sentences(load: Load, name: str, rule: str) -> None:
    model = CausalModel(load(name), rule=rule, context="Once upon a time, ")
    words = [*ALL_WORDS[::4], *ODD_WORDS]
    for sentence in (PARSED[0], Sentence.parse("Stop!")):
        for position in {0, len(sentence) // 2, len(sentence) - 1}:
            exact = model.log_probs([sentence.replace(position, word) for word in words])
            ours = model.replacement_log_probs(sentence, position, words)
            np.testing.assert_allclose(ours, exact, rtol=0, atol=tolerance(exact))
            replacements = model.replacements(sentence, position, words)
            assert (replacements.upper_bound >= exact - tolerance(exact)).all()
            assert (replacements.upper_bound < 0).all()
            assert np.corrcoef(replacements.estimate, exact)[0, 1] > 0.5


@pytest.mark.parametrize("rule", ["log-likelihood", "chain"])
def test_token_terms_add_up(load: Load, rule: str) -> None:
    model = CausalModel(load("gpt2"), rule=rule)
    terms = model.token_log_probs(SENTENCES)
    sums = [sum(term.log_prob for term in sentence) for sentence in terms]
    np.testing.assert_allclose(sums, model.log_probs(SENTENCES), atol=1e-9)
    assert [len(sentence) for sentence in terms] == model.token_counts(SENTENCES).tolist()
    for sentence, sentence_terms in zip(SENTENCES, terms, strict=True):
        spelled = "".join(term.token for term in sentence_terms).replace("Ġ", " ").strip()
        assert spelled == sentence.text
        words = [term.word for term in sentence_terms]
        assert words[-1] == -1
        assert sorted(set(words[:-1])) == list(range(len(sentence)))


def test_context_is_not_counted_but_changes_scores(load: Load) -> None:
    checkpoint = load("gpt2")
    tokenizer = checkpoint.tokenizer
    context, sentence = "What a day. ", PARSED[1]
    model = CausalModel(checkpoint, context=context)
    ids = torch.tensor([tokenizer(context + sentence.text)["input_ids"]])
    n_context = len(tokenizer("What a day.")["input_ids"])
    with torch.no_grad():
        log_probs = checkpoint.model(ids).logits[0].double().log_softmax(-1)
    expected = sum(float(log_probs[i - 1, ids[0, i]]) for i in range(n_context, ids.shape[1]))
    assert model.log_probs([sentence])[0] == pytest.approx(expected, abs=1e-4)
    assert model.convention.context == context
    assert model.convention.fingerprint != CausalModel(checkpoint).convention.fingerprint


def test_window_is_used_completely_and_not_exceeded(load: Load) -> None:
    model = CausalModel(load("gpt2"))
    words = ("a",) * (CONTEXT - 1)  # "a" and the end mark are one token each
    longest = Sentence(words)
    assert model.token_counts([longest])[0] == CONTEXT
    assert np.isfinite(model.log_probs([longest])).all()
    with pytest.raises(ModelError, match=f"needs {CONTEXT + 1} tokens; .* at most {CONTEXT}"):
        model.log_probs([Sentence((*words, "a"))])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gpt2", {"rule": "pll-original"}, "causal model, .* no rule 'pll-original'"),
        ("gpt2", {"context": ""}, "must be a text"),
        ("gpt2", {"context": "long " * CONTEXT}, "must be shorter"),
        ("bert", {}, "masked language model, not a causal one"),
    ],
)
def test_unusable_rules_contexts_and_models_are_refused(
    load: Load, name: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        CausalModel(load(name), **options)


@pytest.mark.parametrize("position", [0, 2, 4])
def test_candidates_have_the_tokens_of_the_full_sentence(load: Load, position: int) -> None:
    checkpoint = load("gpt2")
    tokenizer = checkpoint.tokenizer
    sentence, words = Sentence.parse("The old dog never sleeps"), (*ALL_WORDS, *ODD_WORDS)
    prefix_ids = tuple(tokenizer(" ".join(sentence.words[:position]))["input_ids"])
    spanning = copy.deepcopy(tokenizer)
    spanning.add_tokens("of the")  # a token that spans two words
    assert words_are_independent(tokenizer)
    assert not words_are_independent(spanning)
    fast_tokens, full_tokens = (
        CausalModel(replace(checkpoint, tokenizer=candidate_tokenizer))
        ._candidates(sentence, position, words, prefix_ids)
        .tokens
        for candidate_tokenizer in (tokenizer, spanning)
    )
    assert fast_tokens == full_tokens
    assert all(fast_tokens)


@pytest.mark.parametrize("name", NAMES)
def test_tree_scores_its_rows(load: Load, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with equal beginnings are read once, unless the network gives other scores."""
    network = CausalNetwork(load(name), by_words=False)
    start = network.begin((1, 2))
    tokens_read = []
    forward = network._model.forward

    @wraps(forward)
    def count_tokens(*arguments: Any, **options: Any) -> Any:
        tokens_read.append(options["input_ids"].numel())
        return forward(*arguments, **options)

    expected = [network.continuations(start, [row]).sum() for row in ROWS]
    monkeypatch.setattr(network._model, "forward", count_tokens)
    np.testing.assert_allclose(network.continuations(start, ROWS).sum(axis=1), expected, atol=1e-4)
    # 3 4 5 6 8 | 10 11 | 13 4; the first tree is compared with a separate call for its last row
    assert tokens_read == [9, 2]
    tokens_read.clear()
    network.continuations(start, ROWS)
    assert tokens_read == [9]
    # A network that does not support the mask reads padded rows
    for factor in (2.0, np.nan):
        unsupported = CausalNetwork(load(name), by_words=False)
        monkeypatch.setattr(
            unsupported,
            "_forward_tree",
            lambda *arguments, factor=factor: factor * network._forward_tree(*arguments),
        )
        sums = unsupported.continuations(start, ROWS).sum(axis=1)
        np.testing.assert_allclose(sums, expected, atol=1e-4)


@pytest.mark.parametrize(("window", "n_nodes"), [(7, 9), (6, 0)])
def test_tree_fits_into_a_sliding_window(load: Load, window: int, n_nodes: int) -> None:
    """Two tokens of the prefix and five of the longest row fit into a window of seven."""
    torch.manual_seed(0)
    config = hf.Gemma3TextConfig(
        vocab_size=len(load("llama").tokenizer),
        sliding_window=window,
        layer_types=["sliding_attention", "full_attention"],
        hidden_size=32,
        intermediate_size=48,
        head_dim=8,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    checkpoint = replace(load("llama"), model=hf.Gemma3ForCausalLM(config).eval())
    network = CausalNetwork(checkpoint, by_words=False)
    start = network.begin((1, 2))
    expected = [network.continuations(start, [row]).sum() for row in ROWS]
    np.testing.assert_allclose(network.continuations(start, ROWS).sum(axis=1), expected, atol=1e-4)
    assert network._largest_tree == n_nodes


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4).map(tuple), max_size=12))
def test_shared_paths_are_the_leaves_of_the_trie(rows: list[tuple[int, ...]]) -> None:
    leaves, leaf_of = shared_paths(rows)
    assert len(leaf_of) == len(rows)
    for row, leaf in zip(rows, leaf_of, strict=True):
        assert leaves[leaf][: len(row)] == row
    longest = [
        candidate
        for candidate in set(rows)
        if not any(other != candidate and other[: len(candidate)] == candidate for other in rows)
    ]
    assert sorted(leaves) == sorted(longest)


@pytest.mark.parametrize("name", NAMES)
def test_word_terms_add_up_to_the_sentence(load: Load, name: str) -> None:
    """Property: the correction moves probability only between neighbouring words."""
    model = CausalModel(load(name))
    plain, corrected = (
        model.token_log_probs(STIMULI),
        model.completed_word_log_probs(STIMULI),
    )
    sums = [sum(term.log_prob for term in terms) for terms in corrected]
    np.testing.assert_allclose(sums, model.log_probs(STIMULI), rtol=0, atol=1e-9)
    for plain_row, corrected_row in zip(plain, corrected, strict=True):
        assert [term[:2] for term in plain_row] == [term[:2] for term in corrected_row]
        assert [term.log_prob for term in plain_row] != [term.log_prob for term in corrected_row]


def test_completed_words_follow_the_published_formula(load: Load) -> None:
    """Witness: the formula of Pimentel & Meister (2024), with transformers alone."""
    model, sentence = CausalModel(load("gpt2")), STIMULI[0]
    checkpoint = model.checkpoint
    tokenizer = checkpoint.tokenizer
    ids = tokenizer(sentence.text)["input_ids"]
    with torch.inference_mode():
        logits = checkpoint.model(torch.tensor([[tokenizer.bos_token_id, *ids]])).logits[0]
    p = torch.softmax(logits.double(), dim=-1).numpy()  # p[t] is of token t
    tokens_by_id = tokenizer.convert_ids_to_tokens(list(range(p.shape[1])))
    ends = [
        token is None
        or token.startswith(("Ġ", "Ċ", "ĉ", "č"))
        or token in ".?!"
        or token in tokenizer.all_special_tokens
        for token in tokens_by_id
    ]
    words = sentence.text.removesuffix(".").split()
    starts = [index for index, i in enumerate(ids) if index == 0 or ends[i]]
    assert len(starts) == len(words) + 1
    expected = []
    for start, stop in zip(starts, [*starts[1:], None], strict=True):
        tokens = np.prod([p[index, ids[index]] for index in range(start, stop or len(ids))])
        begins = 1.0 if start == 0 else p[start, ends].sum()
        finishes = 1.0 if stop is None else p[stop, ends].sum()
        expected.append(np.log(tokens * finishes / begins))
    (terms,) = model.completed_word_log_probs([sentence])
    table = term_table({"m": {sentence: terms}}, [sentence])
    assert table["word"] == [*words, "."]
    assert table["position"] == list(range(len(words) + 1))
    assert sum(table["tokens"]) == len(ids)
    np.testing.assert_allclose(table["log_prob"], expected, rtol=0, atol=1e-4)
    assert table["surprisal"] == [-value for value in table["log_prob"]]


@pytest.mark.parametrize("corrected", [False, True])
def test_surprisals_and_entropies_equal_minicons(load: Load, corrected: bool) -> None:
    """Witness: minicons on the same network, with our sets of tokens for the correction."""
    scorer = pytest.importorskip("minicons.scorer")
    checkpoint = load("gpt2")
    tokenizer = copy.deepcopy(checkpoint.tokenizer)
    tokenizer.pad_token = "~"  # minicons does not read a context that is also padding
    theirs = scorer.IncrementalLMScorer(checkpoint.model, "cpu", tokenizer=tokenizer)
    completing = word_completing(checkpoint.tokenizer, checkpoint.model.config.vocab_size)
    theirs.bow_subwords = dict(enumerate(completing.tolist()))
    theirs.bow_subword_idx = np.flatnonzero(completing).tolist()
    model = CausalModel(checkpoint)
    score = model.completed_word_log_probs if corrected else model.token_log_probs
    terms = dict(zip(STIMULI, score(STIMULI), strict=True))
    table = term_table({"m": terms}, STIMULI)
    expected = theirs.token_score(
        [s.text for s in STIMULI], surprisal=True, bos_token=True, bow_correction=corrected
    )
    for sentence, tokens in zip(STIMULI, expected, strict=True):
        rows = [i for i, text in enumerate(table["sentence"]) if text == sentence.text]
        surprisals = np.zeros(len(sentence) + 1)
        words = [term.word for term in terms[sentence]]
        np.add.at(surprisals, words, [surprisal for _, surprisal in tokens[1:]])
        # After the end mark, minicons also includes the probability that a word begins
        scored_rows = rows[:-1] if corrected else rows
        ours = [table["surprisal"][row] for row in scored_rows]
        np.testing.assert_allclose(ours, surprisals[: len(scored_rows)], rtol=0, atol=1e-4)
        bits = [table["surprisal_bits"][row] for row in scored_rows]
        np.testing.assert_allclose(np.multiply(bits, np.log(2)), ours)
        prefixes = [" ".join(sentence.words[:i]) for i in range(len(rows))]
        next_log_probs = theirs.next_word_distribution(prefixes, bos_token=True).double().exp()
        entropies = [table["entropy"][row] for row in rows]
        np.testing.assert_allclose(entropies, entropy(next_log_probs, axis=1), rtol=0, atol=1e-4)


LONGEST = 7  # letters of a word


@pytest.fixture(scope="module")
def letter_model() -> CausalModel:
    """A causal model of seven tokens, which spell all words of the letters a and b."""
    vocabulary = {"<s>": 0, "[UNK]": 1, "a": 2, "b": 3, "##a": 4, "##b": 5, ".": 6}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", bos_token="<s>", eos_token="<s>"
    )
    torch.manual_seed(4)
    network = small_gpt2(len(vocabulary), width=16, layers=1, heads=2, mark=0)
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(3)
    return CausalModel(Checkpoint(network, fast, "letters", "cpu", "causal"))


def test_probabilities_of_all_words_sum_to_one(letter_model: CausalModel) -> None:
    """Witness: enumeration of all words after `b`; without correction the sum differs."""
    words = ["".join(w) for n in range(1, LONGEST + 1) for w in product("ab", repeat=n)]
    sentences = [Sentence.parse(f"b {word} a.") for word in words]
    sums = {}
    for name, score in (
        ("plain", letter_model.token_log_probs),
        ("corrected", letter_model.completed_word_log_probs),
    ):
        word_log_probs = [
            sum(term.log_prob for term in terms if term.word == 1) for terms in score(sentences)
        ]
        sums[name] = np.exp(word_log_probs).sum()
    # Other continuations: an end mark, a special token, and longer words
    with torch.inference_mode():
        next_logits = letter_model.checkpoint.model(torch.tensor([[0, 3]])).logits[0, -1].double()
    p = torch.softmax(next_logits, dim=-1).numpy()
    begins = p[[0, 1, 2, 3, 6]].sum()
    other_share = p[[0, 1, 6]].sum() / begins
    longest = sentences[-(2**LONGEST) :]
    unfinished = sum(
        np.exp(sum(term.log_prob for term in plain if term.word == 1)) / begins
        - np.exp(sum(term.log_prob for term in corrected if term.word == 1))
        for plain, corrected in zip(
            letter_model.token_log_probs(longest),
            letter_model.completed_word_log_probs(longest),
            strict=True,
        )
    )
    assert sums["corrected"] + other_share + unfinished == pytest.approx(1, abs=1e-5)
    assert abs(sums["plain"] - sums["corrected"]) > 0.05


def test_correction_is_refused_where_it_does_not_apply(tiny_checkpoint: Folder, load: Load) -> None:
    checkpoint = load("gpt2")
    with pytest.raises(ModelError, match="already preserves word boundaries"):
        CausalModel(checkpoint, rule="chain").completed_word_log_probs(STIMULI)
    toy = ToyModel()
    with pytest.raises(ModelError, match="has no boundary correction"):
        toy.completed_word_log_probs(STIMULI[:1])
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_checkpoint("xlm"))
    with pytest.raises(ModelError, match="need no boundary correction"):
        word_completing(tokenizer, len(tokenizer))
    words = Tokenizer(models.WordLevel({"dog": 0}, unk_token="dog"))
    unmarked: Any = transformers.PreTrainedTokenizerFast(tokenizer_object=words)  # type: ignore[no-untyped-call]
    with pytest.raises(ModelError, match="marks no beginnings of words"):
        word_completing(unmarked, 1)
