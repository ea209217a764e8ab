"""Guarantees of every scorer and every language model, as tests to inherit.

A scorer gives each sentence a score. A language model is a scorer whose scores are
log-probabilities.

To test a new model, inherit a class and define a fixture:

    class TestMine(LanguageModelContract):
        @pytest.fixture
        def model(self) -> LanguageModel:
            return MyModel()
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contstim.errors import ContstimError, ModelError, SentenceError
from contstim.models.base import Continuation, LanguageModel, Scorer, require_language_model
from contstim.models.costs import Tally, counting
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray

# The lengths differ, so that batches are padded. One sentence is a question, and one is repeated
SENTENCES = [
    Sentence.parse(text)
    for text in (
        "The old teacher reads a book in the garden",
        "Do you know the answer?",
        "She sleeps",
        "The dogs that the girl saw were very hungry",
        "The old teacher reads a book in the garden",
    )
]
# No training text contains "zyzzyva". It is unknown to word-level models; other models split it
WORDS = ("dog", "house", "quickly", "the", "zyzzyva", "reads")


def tolerance(scores: FloatArray) -> float:
    """Return the larger of 1e-4 nats and a millionth of the largest absolute score."""
    finite = np.abs(scores[np.isfinite(scores)])
    return max(1e-4, 1e-6 * float(finite.max(initial=0)))


SIGNS = """
<s> </s> <unk> <UNK> <pad> <mask> [MASK] [mask] [CLS] [SEP] [PAD] [UNK] <|endoftext|> </w>
<special1> <0x0A> ▁ dog<s> [SEP]dog a<|endoftext|>b ▁dog
""".split()
"""Special tokens of models, alone and next to letters."""

# Unknown words, other scripts, letters with marks, and 200 words
ODD = ("zyzzyva qwrtp xkcd", "Μῆνιν ἄειδε θεά", "naïve Füße 猫", "a " * 200)


class ScorerContract:
    """Guarantees of every scorer. Inherit it, and define a fixture `model`."""

    @pytest.fixture
    def model(self) -> Scorer:
        raise NotImplementedError

    def test_scores_are_float64_and_never_nan(self, model: Scorer) -> None:
        scores = model.scores(SENTENCES)
        assert scores.dtype == np.float64
        assert scores.shape == (len(SENTENCES),)
        assert not np.isnan(scores).any()

    # Padding, and the other sentences of a batch, may change a score only by a rounding error
    def test_a_batch_equals_one_by_one_in_any_order(self, model: Scorer) -> None:
        together = model.scores(SENTENCES)
        alone = np.array([model.scores([s])[0] for s in SENTENCES])
        backwards = model.scores(SENTENCES[::-1])[::-1]
        np.testing.assert_allclose(alone, together, rtol=0, atol=tolerance(together))
        np.testing.assert_allclose(backwards, together, rtol=0, atol=tolerance(together))

    def test_equal_sentences_have_equal_scores(self, model: Scorer) -> None:
        scores = model.scores(SENTENCES)
        assert scores[0] == pytest.approx(scores[4], abs=1e-5)

    # A constant score would pass nearly all other tests
    def test_the_sentence_matters(self, model: Scorer) -> None:
        scores = model.scores(SENTENCES[:4])
        assert len(set(scores.round(6).tolist())) == 4

    def test_asked_again_it_answers_the_same(self, model: Scorer) -> None:
        assert (model.scores(SENTENCES) == model.scores(SENTENCES)).all()

    def test_no_sentences_give_empty_arrays(self, model: Scorer) -> None:
        for scores in (model.scores([]), model.exact([]), model.standard_errors([])):
            assert scores.shape == (0,)
        assert model.unscorable([]) == []

    @pytest.mark.parametrize("text", ODD)
    # `unscorable` must predict the error that `scores` raises. For the two other sentences, it must
    # predict no error
    def test_odd_sentences_have_an_answer_or_a_clear_error(self, model: Scorer, text: str) -> None:
        sentence = Sentence.parse(text)
        reasons = model.unscorable([SENTENCES[0], sentence, SENTENCES[1]])
        assert reasons[::2] == [None, None]
        if reasons[1] is None:
            assert not np.isnan(model.scores([sentence])).any()
        else:
            with pytest.raises(ContstimError, match=re.escape(reasons[1])):
                model.scores([sentence])

    def reads_as_text(self, model: Scorer, sentence: Sentence, position: int) -> bool:
        """Return True if the model reads the word at `position` as text, or as an unknown word.

        Return False if it reads the word as a special token. Override this method for models that
        neither read words nor have a `checkpoint`.
        """
        checkpoint = getattr(model, "checkpoint", None)
        if checkpoint is None:
            scores = model.scores([sentence, sentence.replace(position, "zyzzyvaq")])
            return bool(abs(scores[0] - scores[1]) <= tolerance(scores))
        tokenizer = checkpoint.tokenizer
        ids = set(tokenizer(sentence.text, add_special_tokens=False)["input_ids"])
        # The unknown token is allowed, unless it is also the beginning-of-sequence token (GPT-2)
        unknown = {tokenizer.unk_token_id} - {tokenizer.bos_token_id}
        has_unknown_token = str(tokenizer.unk_token) in sentence.words[position]
        return not has_unknown_token and not ids & (set(tokenizer.all_special_ids) - unknown)

    def test_signs_of_models_are_refused_or_read_as_text_never_obeyed(self, model: Scorer) -> None:
        sentence = SENTENCES[0]
        for sign in SIGNS:
            # Tokenizers treat the first word of a sentence differently
            for position in (0, 3, len(sentence) - 1):
                odd = sentence.replace(position, sign)
                (reason,) = model.unscorable([odd])
                if reason is None:
                    assert self.reads_as_text(model, odd, position), (
                        f"{sign!r} at position {position} is neither refused nor read as an "
                        f"unknown word; override reads_as_text if the model reads it as plain text"
                    )
                    continue
                assert not model.knows(["dog", sign])[1]
                with pytest.raises(ModelError):
                    model.scores([sentence, odd])

    def test_the_convention_says_how_scores_come_about(self, model: Scorer) -> None:
        convention = model.convention
        assert convention.unit
        assert convention.rule
        assert len(convention.fingerprint) > 8
        assert model.convention == convention

    def test_known_words_are_told_apart(self, model: Scorer) -> None:
        assert model.knows(WORDS).shape == (len(WORDS),)
        assert model.knows(WORDS).dtype == bool

    def test_what_needs_log_probabilities_takes_a_language_model_alone(self, model: Scorer) -> None:
        if isinstance(model, LanguageModel):
            assert require_language_model(model, "A test") is model
            return
        with pytest.raises(ModelError, match=f"{re.escape(model.name)}.* A test needs"):
            require_language_model(model, "A test")

    # A model class may take shortcuts, such as cached attention keys and values. The scores with
    # shortcuts must equal the scores of the complete sentences. Searches discard words with low
    # upper bounds. If a bound were below the score, a search could discard the best word. Long
    # sentences are tested at every fourth position
    def test_candidates_are_judged_as_the_rewritten_sentences(self, model: Scorer) -> None:
        for sentence in SENTENCES[:3]:
            for position in range(0, len(sentence), 4 if len(sentence) > 5 else 1):
                fresh = model.scores([sentence.replace(position, w) for w in WORDS])
                limit = tolerance(fresh)
                ours = model.replacement_scores(sentence, position, WORDS)
                np.testing.assert_allclose(ours, fresh, rtol=0, atol=limit)
                results = model.replacements(sentence, position, WORDS)
                for values in (results.exact, results.estimate, results.upper_bound):
                    assert values.shape == (len(WORDS),)
                exact = ~np.isnan(results.exact)
                np.testing.assert_allclose(results.exact[exact], fresh[exact], rtol=0, atol=limit)
                assert (results.upper_bound >= fresh - limit).all()
                assert not np.isnan(results.estimate).any()

    # The costs of a search are only reproducible if the search uses no cache of an earlier search
    def test_what_has_been_forgotten_costs_as_much_again(self, model: Scorer) -> None:
        costs = []
        for _ in range(2):
            model.forget_prefixes()
            with counting(Tally()) as tally:
                model.replacements(SENTENCES[0], 3, WORDS)
                model.replacement_scores(SENTENCES[0], 3, WORDS)
            costs.append(tally.total)
        assert costs[0] == costs[1]

    def test_no_words_give_empty_arrays(self, model: Scorer) -> None:
        assert model.replacement_scores(SENTENCES[0], 0, ()).shape == (0,)
        assert model.replacements(SENTENCES[0], 0, ()).exact.shape == (0,)

    # If the model reads a special token as text, a sentence with this token must have the same
    # score in `replacement_scores` (as a candidate) and in `scores`
    def test_a_sign_is_a_candidate_like_any_unknown_word(self, model: Scorer) -> None:
        sentence = SENTENCES[0]
        signs = [s for s in SIGNS if model.unscorable([sentence.replace(3, s)]) == [None]][:3]
        scores = model.replacement_scores(sentence, 3, signs)
        fresh = model.scores([sentence.replace(3, sign) for sign in signs])
        np.testing.assert_allclose(scores, fresh, rtol=0, atol=tolerance(fresh))

    @pytest.mark.parametrize("position", [-1, 8])
    def test_a_position_outside_the_sentence_is_refused(self, model: Scorer, position: int) -> None:
        sentence = Sentence.parse("one two three four five six seven eight")
        with pytest.raises(SentenceError, match="positions go from 0 to 7"):
            model.replacements(sentence, position, WORDS)
        with pytest.raises(SentenceError, match="positions go from 0 to 7"):
            model.replacement_scores(sentence, position, WORDS)


class LanguageModelContract(ScorerContract):
    """Further guarantees of every language model. Inherit it, and define a fixture `model`."""

    @pytest.fixture
    def model(self) -> LanguageModel:
        raise NotImplementedError

    def test_scores_are_log_probabilities(self, model: LanguageModel) -> None:
        sentences = [*SENTENCES, *map(Sentence.parse, ODD)]
        reasons = model.unscorable(sentences)
        scorable = [s for s, reason in zip(sentences, reasons, strict=True) if reason is None]
        log_probs = model.log_probs(scorable)
        assert (log_probs <= 0).all()
        assert (model.scores(scorable) == log_probs).all()
        assert model.convention.unit == "nats"

    def test_refused_signs_are_refused_as_words_too(self, model: LanguageModel) -> None:
        sentence = SENTENCES[0]
        for sign in SIGNS:
            for position in (0, 3, len(sentence) - 1):
                odd = sentence.replace(position, sign)
                if model.unscorable([odd]) == [None]:
                    continue
                with pytest.raises(ModelError):
                    model.replacement_log_probs(sentence, position, ("dog", sign))
                if self.continues(model):
                    with pytest.raises(ModelError):
                        model.continuation_log_probs([Continuation(odd, 1)])

    def continues(self, model: LanguageModel) -> bool:
        """Return True if the model reads from left to right and scores continuations."""
        overrides = type(model).continuation_log_probs is not LanguageModel.continuation_log_probs
        return overrides and model.convention.rule.partition("@")[0] == "log-likelihood"

    def expected_continuation(self, model: LanguageModel, continuation: Continuation) -> float:
        """Return the sum of the log-probabilities of the continuation's tokens, nats.

        The tokens are scored as parts of the whole sentence.
        """
        (terms,) = model.token_log_probs([continuation.sentence])
        return sum(term.log_prob for term in terms if term.word >= continuation.start)

    # A continuation is the words of a sentence from a start position on. Its log-probability, given
    # the preceding words, is the sum of the log-probabilities of its tokens
    def test_continuations_are_sums_over_their_words_or_refused(self, model: LanguageModel) -> None:
        continuations = [Continuation(s, start) for s in SENTENCES[:3] for start in range(len(s))]
        if not self.continues(model):
            for batch in ([], continuations):
                with pytest.raises(ModelError, match=f"^{re.escape(model.name)}.* whole sentences"):
                    model.continuation_log_probs(batch)
            return
        assert model.continuation_log_probs([]).shape == (0,)
        log_probs = model.continuation_log_probs(continuations)
        expected = np.array([self.expected_continuation(model, item) for item in continuations])
        np.testing.assert_allclose(log_probs, expected, rtol=0, atol=tolerance(expected))
        backwards = model.continuation_log_probs(continuations[::-1])[::-1]
        np.testing.assert_allclose(backwards, log_probs, rtol=0, atol=tolerance(log_probs))
