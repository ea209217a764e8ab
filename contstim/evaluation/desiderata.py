"""Desiderata of scoring rules: properties of any valid measure of a sentence's likelihood.

Longer sentences should be less likely, and frequent words more likely. The scores of masked models
should correlate with the scores of causal models. Splitting a word into several tokens should not
raise the word's score. A word is scored in a neutral sentence, the carrier. The word's score is the
sum of the log-probabilities of the word's tokens. Other tokens of the carrier do not count.

Source: Kauf & Ivanova (2023), *A Better Way to Do Masked Language Model Scoring*, ACL.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.evaluation.folder import Findings, page_table, table_of
from contstim.evaluation.scores import score_readable
from contstim.files.tables import ShownAsTable, frame_of
from contstim.items.correlation import pearson_with_interval
from contstim.models.base import require_language_model
from contstim.reporting.canvas import BLACK, BLUE, ORANGE, panels, widest
from contstim.reporting.report import Bullets, Heading, Paragraph, code, emphasis, short_names
from contstim.wording import quantity
from contstim.words.sentence import Sentence, split_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from contstim.evaluation.folder import Columns, Row
    from contstim.evaluation.scores import LeftOut, Progress
    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.items.scores import ScoreTable
    from contstim.models.base import Scorer
    from contstim.reporting.report import Part, Table
    from contstim.store import Store
    from contstim.words.frequencies import WordFrequencies


_MIN_OBSERVATIONS = 4
_BLOCK_SIZE = 64

ORIGINAL, ADAPTED = "@pll-original", "@pll-word-l2r"
_SAMPLES, _SEED = 1000, 0
CLAIM = ("model", "finding", "original", "adapted", "low", "high", "verdict")
"""Fields of the rows of `check_claims`."""
GAP = "_"
CARRIERS = ("My word is _", "The next word is _", "She wrote down the word _", GAP)
"""Default carriers: sentences with a gap for a word."""


@dataclass(frozen=True, eq=False)
class Desiderata(ShownAsTable):
    """Results of the evaluation, and the data from which they were computed.

    Attributes:
        rows: rows of desiderata.csv, one for each model. `length_…`: correlation of negative scores
            with numbers of tokens, over sentences. `reference_…`: correlation of scores with the
            reference's scores, over sentences. `frequency_…`: correlation of a word's mean score in
            the carriers with the word's frequency, over words. A split word has several tokens.
            `split_words`: share of split words among `words`. `split_in_text`: share of split words
            among all words of the sentences. The function `split_effect` describes the columns
            `score_of_…` and `advantage_…`.
        by_carrier: rows of carriers.csv, one for each model and carrier. They contain the
            correlation of scores of words with frequencies of words.
        reference: name of the causal model; None without a causal model.
        scores: scores of sentences under the models and the reference, nats.
        tokens: numbers of tokens of the sentences, (n_sentences, n_models).
        words: words that every model can score.
        zipfs: frequencies of the words on the Zipf scale, (n_words,).
        word_scores: scores of the words, (n_models, n_words, n_carriers), nats.
        word_tokens: number of tokens of each word in the first carrier, (n_words, n_models).
        left_out: sentences that a model cannot score.
        words_left_out: word → reason why a model does not know or cannot score the word.
    """

    rows: tuple[Row, ...]
    by_carrier: tuple[Row, ...]
    models: tuple[str, ...]
    reference: str | None
    carriers: tuple[str, ...]
    scores: ScoreTable
    tokens: FloatArray
    words: tuple[str, ...]
    zipfs: FloatArray
    word_scores: FloatArray
    word_tokens: IntArray
    left_out: tuple[LeftOut, ...]
    words_left_out: dict[str, str]

    def to_frame(self) -> DataFrame:
        """Return the table of desiderata.csv as a data frame."""
        return frame_of(table_of(self.rows))


def with_reference(models: Sequence[str], reference: str | None) -> tuple[list[str], int | None]:
    """Return the models to load, including the reference once, and the index of the reference."""
    from contstim.models.specifications import parse_model

    if reference is None:
        return [*models], None
    for index, model in enumerate(map(parse_model, models)):
        if reference in (model.name, model.specification, model.text):
            return [*models], index
    return [*models, reference], len(models)


def evaluate_desiderata(
    models: Sequence[Scorer],
    sentences: Sequence[Sentence],
    words: Sequence[str],
    frequencies: WordFrequencies,
    *,
    carriers: Sequence[str] = CARRIERS,
    reference: Scorer | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> Desiderata:
    """Correlate scores with length, word frequency and a causal model's scores.

    A sentence that one model cannot score is left out for all models. A word that one model cannot
    score, or does not know, is also left out for all models. The method is from Kauf & Ivanova
    (2023).

    Args:
        models: models to evaluate.
        sentences: sentences for the correlations with length and with the reference.
        words: words for the correlation with frequency and for the effect of splitting.
        frequencies: frequencies of the words.
        carriers: sentences with a gap for a word.
        reference: causal model whose scores are correlated with the scores of each model; optional.
        store: cache of scores.
        progress: callback with the model and the number of newly scored sentences.

    Raises:
        InputError: if carriers are invalid (see `check_carriers`), or fewer than four sentences or
            words are left.
        ModelError, ScoreError, StoreError: see `score_readable` and `score_words`.
    """
    check_carriers(carriers)
    others = [reference] if reference and reference.name not in {m.name for m in models} else []
    table, left_out = score_readable([*models, *others], sentences, store=store, progress=progress)
    reasons = unreadable(models, words, carriers)
    usable = [word for word in dict.fromkeys(words) if word not in reasons]
    for kind, n_usable, n_left_out in (
        ("sentences", len(table.log_probs), len(left_out)),
        ("words", len(usable), len(reasons)),
    ):
        if n_usable < _MIN_OBSERVATIONS:
            raise InputError(
                f"A correlation needs at least {_MIN_OBSERVATIONS} {kind}, got {n_usable} "
                f"({n_left_out} were excluded because a model cannot score them)."
            )
    readable = list(table.sentences or ())
    zipfs = np.array([frequencies.zipf(word) for word in usable])
    scored = [score_words(m, usable, carriers, store=store, progress=progress) for m in models]
    tokens = np.stack([m.token_counts(readable) for m in models], axis=1).astype(np.float64)
    rows, by_carrier = [], []
    for column, (model, (word_scores, word_tokens)) in enumerate(zip(models, scored, strict=True)):
        # (n_sentences,), (n_words,)
        scores, means = table.column(model.name), word_scores.mean(axis=1)
        row: Row = {"model": model.name, **_cells("length", -scores, tokens[:, column])}
        if reference:
            against = _cells("reference", scores, table.column(reference.name))
            row |= {"reference": reference.name, **against}
        row |= _cells("frequency", means, zipfs) | {
            "split_words": float((word_tokens > 1).mean()),
            "split_in_text": _split_in_text(model, readable),
            **split_effect(means, zipfs, word_tokens > 1),
        }
        rows.append(row)
        for carrier, carrier_scores in zip(carriers, word_scores.T, strict=True):
            about = {"model": model.name, "carrier": carrier}
            by_carrier.append(about | _cells("frequency", carrier_scores, zipfs))
    return Desiderata(
        tuple(rows),
        tuple(by_carrier),
        models=tuple(model.name for model in models),
        reference=reference.name if reference else None,
        carriers=tuple(carriers),
        scores=table,
        tokens=tokens,
        words=tuple(usable),
        zipfs=zipfs,
        word_scores=np.stack([word_scores for word_scores, _ in scored]),
        word_tokens=np.stack([word_tokens for _, word_tokens in scored], axis=1),
        left_out=tuple(left_out),
        words_left_out=reasons,
    )


def _cells(name: str, x: FloatArray, y: FloatArray) -> Row:
    """Compute Pearson's r (`NAME_r`), its interval (`NAME_low`, `NAME_high`) and n (`NAME_n`)."""
    return {f"{name}_{part}": value for part, value in pearson_with_interval(x, y).items()}


def sample_sentences(sentences: Iterable[Sentence], size: int, seed: int) -> list[Sentence]:
    """Sample `size` distinct sentences in their original order; a size of 0 means all."""
    chosen = list(dict.fromkeys(sentences))
    if 0 < size < len(chosen):
        rows = random.Random(seed).sample(range(len(chosen)), size)
        chosen = [chosen[row] for row in sorted(rows)]
    return chosen


def check_carriers(carriers: Sequence[str]) -> None:
    """Refuse carriers that do not contain exactly one gap.

    Raises:
        InputError: if there is no carrier, or a carrier has no gap or several.
    """
    if not carriers:
        raise InputError("Words need a carrier, such as 'My word is _'.")
    for carrier in carriers:
        # The end mark may follow the gap without a space
        if split_end(carrier.strip())[0].split().count(GAP) != 1:
            raise InputError(
                f"A carrier must contain {GAP!r} once, in place of the word, got {carrier!r}."
            )


def in_carrier(carrier: str, words: Sequence[str]) -> tuple[int, list[Sentence]]:
    """Return the index of the gap among the carrier's words, and the carrier with each word."""
    sentence = Sentence.parse(carrier)
    position = sentence.words.index(GAP)
    return position, [sentence.replace(position, word) for word in words]


def score_words(
    model: Scorer,
    words: Sequence[str],
    carriers: Sequence[str],
    *,
    store: Store | None = None,
    progress: Progress | None = None,
) -> tuple[FloatArray, IntArray]:
    """Score words in carriers, and count their tokens.

    The store caches each block of scores, so that an interrupted run continues with the next block.

    Returns:
        Scores, (n_words, n_carriers), nats; and numbers of tokens of the words in the first
        carrier, (n_words,). For models without subword tokens, these numbers are 1.

    Raises:
        ModelError: if the model only scores whole sentences, or cannot score a sentence.
    """
    language_model = require_language_model(model, "The score of each word")
    report = progress or (lambda _model, _n: None)
    columns = []
    for carrier in carriers:
        index, sentences = in_carrier(carrier, words)
        texts = [sentence.text for sentence in sentences]
        key = f"{model.convention.fingerprint} word {index}"
        scores = store.log_probs(key, texts) if store else np.full(len(texts), np.nan)
        missing = np.flatnonzero(np.isnan(scores))
        report(model, len(texts) - len(missing))
        for start in range(0, len(missing), _BLOCK_SIZE):
            rows = missing[start : start + _BLOCK_SIZE]
            terms = language_model.token_log_probs([sentences[row] for row in rows])
            scores[rows] = [sum(t.log_prob for t in tokens if t.word == index) for tokens in terms]
            if store:
                store.save(key, model.convention.json, [texts[row] for row in rows], scores[rows])
            report(model, len(rows))
        columns.append(scores)
    # A tokenizer may split a word differently at the beginning of a sentence
    first, _ = in_carrier(carriers[0], ())
    counts = model.tokens_per_word(words, initial=not first)
    return np.stack(columns, axis=1), np.ones(len(words), np.int64) if counts is None else counts


def unreadable(
    models: Sequence[Scorer], words: Sequence[str], carriers: Sequence[str]
) -> dict[str, str]:
    """Return word → reason why a model does not know or cannot score the word."""
    reasons: dict[str, str] = {}
    for model in models:
        for word, is_known in zip(words, model.knows(words), strict=True):
            if not is_known:
                reasons.setdefault(word, f"unknown to {model.name}")
        for carrier in carriers:
            _, sentences = in_carrier(carrier, words)
            for word, reason in zip(words, model.unscorable(sentences), strict=True):
                if reason:
                    reasons.setdefault(word, f"{model.name}: {reason}")
    return reasons


def split_effect(scores: FloatArray, zipfs: FloatArray, split: BoolArray) -> dict[str, float]:
    """Estimate how a word's score changes if a tokenizer splits the word into several tokens.

    Scores, frequencies on the Zipf scale, and the mask of split words have shape (n_words,).

    Returns:
        `score_of_single`: mean score of words of one token, nats. `score_of_several`: mean score of
        split words, nats. `advantage_of_several`: b in the regression score = a + b·split +
        c·frequency, where split is 1 for a split word and 0 for others. So b is the score of a
        split word minus the score of an equally frequent word of one token. `advantage_error`:
        standard error of b. Undefined values are nan.
    """
    from statsmodels.api import OLS, add_constant

    effect = {
        f"score_of_{name}": float(scores[mask].mean()) if mask.any() else math.nan
        for name, mask in (("single", ~split), ("several", split))
    }
    # (n_words, 3): constant, frequency, 1 for a split word
    design = add_constant(np.stack([zipfs, split], axis=1), has_constant="add")
    # b is undefined if all words or no words are split, or if splitting is collinear with
    # frequency. With three words, the standard error of b is undefined
    advantage = error = math.nan
    if np.linalg.matrix_rank(design) == 3 and len(scores) > 3:
        fit = OLS(scores, design).fit()
        advantage, error = float(fit.params[2]), float(fit.bse[2])
    return effect | {"advantage_of_several": advantage, "advantage_error": error}


def _split_in_text(model: Scorer, sentences: Sequence[Sentence]) -> float:
    """Return the share of split words among all words; 0 for models without subword tokens."""
    counts: list[int] = []
    for initial in (True, False):  # a tokenizer may split the first word of a sentence differently
        words = [w for s in sentences for w in (s.words[:1] if initial else s.words[1:])]
        if words:
            tokens = model.tokens_per_word(words, initial=initial)
            counts += [1] * len(words) if tokens is None else tokens.tolist()
    return float(np.mean(np.array(counts) > 1))


def check_claims(desiderata: Desiderata) -> Iterator[dict[str, Any]]:
    """Test the findings of Kauf & Ivanova (2023) about the rules `pll-original` and `pll-word-l2r`.

    Only checkpoints that were evaluated under both rules are tested. The paper reports two
    findings. First, scores under `pll-word-l2r` correlate more with length, with word frequency and
    with the scores of a causal model than scores under `pll-original` do. Second, words of several
    tokens have higher scores under `pll-original` than under `pll-word-l2r`.

    Yields:
        A row for each checkpoint and measure. A measure is a correlation, or the mean score of
        split words.
        `original` and `adapted` are the values of the measure under `pll-original` and
        `pll-word-l2r`. `low` and `high` are the ends of the 95 % interval of `original` minus
        `adapted`, from a bootstrap of sentences or words. `verdict` is `undecided` if the interval
        contains zero or is undefined. Otherwise, `verdict` is `holds` if the difference has the
        published sign, and `does not hold` if it has the opposite sign.
    """
    names = desiderata.models
    for original, name in enumerate(names):
        counterpart = name.removesuffix(ORIGINAL) + ADAPTED
        if not name.endswith(ORIGINAL) or counterpart not in names:
            continue
        both = [original, names.index(counterpart)]
        scores = np.stack([desiderata.scores.column(names[row]) for row in both])
        words = desiderata.word_scores[both].mean(axis=2)  # (2, n_words)
        # Scores should fall with length, so the negative scores are correlated with length
        correlated = {
            "correlates less with length": (-scores, desiderata.tokens[:, original]),
            "correlates less with word frequency": (words, desiderata.zipfs),
        }
        if desiderata.reference:
            reference = desiderata.scores.column(desiderata.reference)
            correlated["correlates less with the causal model"] = (scores, reference)
        for finding, (columns, target) in correlated.items():
            rows = np.stack([*columns, target])  # (3, n)
            rows = rows[:, np.isfinite(rows).all(axis=0)]
            defined = rows.shape[1] >= _MIN_OBSERVATIONS and bool(np.ptp(rows, axis=1).all())
            result = _test_difference(rows, _correlations, defined=defined, published=-1)
            yield {"model": name, "finding": finding, **result}
        # Only split words: other words have the same score under both rules
        rows = words[:, desiderata.word_tokens[:, original] > 1]
        result = _test_difference(rows, _means, defined=rows.shape[1] > 0, published=1)
        finding = "scores words of several tokens higher (nats)"
        yield {"model": name, "finding": finding, **result}


def _test_difference(
    rows: FloatArray, measures: Callable[[FloatArray], FloatArray], *, defined: bool, published: int
) -> dict[str, Any]:
    """Compute a measure under two rules, the interval of the difference, and the verdict.

    The bootstrap resamples the columns of `rows`, (n_rows, n). For an array (n_rows, ..., n),
    `measures` returns three arrays (...,): the measure under the first rule, the measure under the
    second rule, and the difference. `published` is the sign of the difference in the paper.
    """
    a = b = low = high = math.nan
    if defined:
        a, b, _ = map(float, measures(rows))
        n = rows.shape[1]
        # Columns of each bootstrap sample, (_SAMPLES, n)
        resamples = np.random.default_rng(_SEED).integers(0, n, (_SAMPLES, n))
        low, high = map(float, np.nanpercentile(measures(rows[:, resamples])[2], (2.5, 97.5)))
    verdict = "undecided"
    if low > 0 or high < 0:
        verdict = "holds" if published * (a - b) > 0 else "does not hold"
    return dict(zip(CLAIM[2:], (a, b, low, high, verdict), strict=True))


def _means(rows: FloatArray) -> FloatArray:
    means: FloatArray = np.stack([*rows, rows[0] - rows[1]]).mean(axis=-1)
    return means


def _correlations(rows: FloatArray) -> FloatArray:
    """Compute Pearson's r of the first row, and of the second row, with the third row.

    The third result is the difference of the two correlations. Correlations with a constant row are
    nan.
    """
    *both, target = rows - rows.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        a, b = (
            (x * target).sum(axis=-1)
            / np.sqrt((x * x).sum(axis=-1) * (target * target).sum(axis=-1))
            for x in both
        )
    return np.stack([a, b, a - b])


_MODELS_PER_ROW = 5
_SUMMARY_COLUMNS = {
    "model": "model",
    "length_r": "length",
    "reference_r": "reference",
    "frequency_r": "frequency",
    "split_words": "words split",
    "score_of_single": "single",
    "score_of_several": "several",
    "advantage_of_several": "advantage",
    "advantage_error": "its error",
}
_MEANING = {
    "length": "Pearson correlation of a sentence's negative score with the number of tokens.",
    "reference": "correlation of a sentence's score with the sentence's score under {}.",
    "frequency": "correlation of a word's score, averaged over the carriers, with the word's "
    "frequency (Zipf scale).",
    "single, several": "mean score of words of one token, and of words of several tokens (nats).",
    "advantage": (
        "score of a word of several tokens minus the score of an equally frequent word of one "
        "token (nats, with standard error). The difference is positive if a rule predicts a token "
        "from the other tokens of the same word."
    ),
}


def desiderata_findings(desiderata: Desiderata) -> Findings:
    """Prepare the results as a page, a figure, and tables.

    desiderata  correlations with 95 % intervals and effects of splitting, a row for each model
    claims      tests of the findings of Kauf & Ivanova (2023); see `check_claims`
    carriers    the correlation with word frequency in each carrier
    scores      scores of sentences, nats
    tokens      numbers of tokens of sentences
    words       frequency of each word, numbers of tokens, and scores in each carrier
    left_out    excluded sentences and words, with reasons
    """
    tables = _tables(desiderata)
    columns = tables["desiderata"]
    summary = page_table(
        columns, {n: heading for n, heading in _SUMMARY_COLUMNS.items() if n in columns}
    )
    return Findings(
        "Desiderata of scoring rules",
        summary,
        tuple(_parts(desiderata, summary, tables["claims"])),
        tables,
        lambda: {"desiderata": desiderata_figure(desiderata)},
    )


def _tables(desiderata: Desiderata) -> dict[str, Columns]:
    models, carriers = desiderata.models, desiderata.carriers
    tokens = desiderata.tokens.astype(np.int64).T.tolist()  # (n_models, n_sentences)
    words: Columns = {"word": list(desiderata.words), "zipf": desiderata.zipfs.tolist()}
    for column, model in enumerate(models):
        words[f"tokens {model}"] = desiderata.word_tokens[:, column].tolist()
        for carrier, scores in zip(carriers, desiderata.word_scores[column].T, strict=True):
            words[f"{carrier} {model}"] = scores.tolist()
    reasons = {o.sentence: f"{o.model}: {o.reason}" for o in desiderata.left_out}
    omissions = [*reasons.items(), *desiderata.words_left_out.items()]
    scores = desiderata.scores.columns
    return {
        "desiderata": table_of(desiderata.rows),
        "carriers": table_of(desiderata.by_carrier),
        "scores": scores,
        "tokens": {"sentence": scores["sentence"], **dict(zip(models, tokens, strict=True))},
        "words": words,
        "left_out": {
            "left_out": [text for text, _ in omissions],
            "reason": [reason for _, reason in omissions],
        },
        "claims": table_of(check_claims(desiderata), CLAIM),
    }


def _parts(desiderata: Desiderata, summary: Table, claims: Columns) -> Iterator[Part]:
    carriers = [part for carrier in desiderata.carriers for part in ("; ", code(carrier))]
    sentences = quantity(len(desiderata.scores.log_probs), "sentence")
    words = quantity(len(desiderata.words), "word")
    n_carriers = quantity(len(desiderata.carriers), "carrier")
    yield Paragraph((f"{sentences}, {words} in {n_carriers}: ", *carriers[1:], "."))
    yield Bullets(
        [
            (emphasis(name), f": {meaning.format(desiderata.reference)}")
            for name, meaning in _MEANING.items()
            if name != "reference" or desiderata.reference
        ]
    )
    yield summary
    if claims["model"]:
        yield Heading("Published findings")
        yield Paragraph(
            "Kauf & Ivanova (2023) compared pll-original with pll-word-l2r, and report the "
            "properties in this table. A finding is undecided if the 95 % bootstrap interval of "
            "the difference contains zero."
        )
        yield page_table(claims)
    n_sentences = len({omission.sentence for omission in desiderata.left_out})
    n_words = len(desiderata.words_left_out)
    if n_sentences or n_words:
        left_out = f"{quantity(n_sentences, 'sentence')} and {quantity(n_words, 'word')}"
        yield Paragraph(f"Excluded: {left_out} (reasons in left_out.csv).")


def desiderata_figure(desiderata: Desiderata) -> Figure:
    """Draw the scores of each model against length, word frequency and the reference."""
    titles = short_names(desiderata.models)
    reference = short_names([desiderata.reference])[0] if desiderata.reference else ""
    width = max(1.9, 0.5 + widest([*titles, reference]))
    rows = 3 if desiderata.reference else 2
    figure, grid = panels(len(titles), _MODELS_PER_ROW, width, 1.8, rows=rows)
    for column, row in enumerate(desiderata.rows):
        words = desiderata.word_scores[column]
        scores = desiderata.scores.column(row["model"])
        lengths, by_frequency = grid[0, column], grid[1, column]
        _scatter(lengths, desiderata.tokens[:, column], -scores, row["length_r"])
        lengths.set(xlabel="tokens", ylabel="negative score (nats)")
        lengths.set_title(titles[column], fontsize="medium")
        means, split = words.mean(axis=1), desiderata.word_tokens[:, column] > 1
        for mask, colour, label in ((~split, BLUE, "one token"), (split, ORANGE, "several")):
            x, y = desiderata.zipfs[mask], means[mask]
            by_frequency.plot(x, y, "o", ms=2, color=colour, alpha=0.5, mew=0, label=label)
        by_frequency.legend(loc="lower right", frameon=False, fontsize="x-small", handletextpad=0.1)
        _write_r(by_frequency, row["frequency_r"])
        by_frequency.set(xlabel="word frequency (Zipf)", ylabel="word score (nats)")
        if desiderata.reference:
            x = desiderata.scores.column(desiderata.reference)
            _scatter(grid[2, column], x, scores, row["reference_r"])
            grid[2, column].set(xlabel=f"{reference}\n(nats)", ylabel="score (nats)")
    return figure


def _scatter(axes: Axes, x: FloatArray, y: FloatArray, r: float) -> None:
    axes.plot(x, y, "o", ms=2, color=BLUE, alpha=0.5, mew=0)
    use = np.isfinite(x) & np.isfinite(y)
    if np.isfinite(r):
        slope, intercept = np.polyfit(x[use], y[use], 1)
        ends = np.array([x[use].min(), x[use].max()])
        axes.plot(ends, slope * ends + intercept, color=BLACK, lw=0.8)
    _write_r(axes, r)


def _write_r(axes: Axes, r: float) -> None:
    axes.text(0.03, 0.97, f"r = {r:.2f}", transform=axes.transAxes, va="top")
