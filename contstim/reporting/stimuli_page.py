"""A page of stimuli to look at: both models' log-probabilities, changed words highlighted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.reporting.canvas import png, styled
from contstim.reporting.heat_map import agreement_map
from contstim.reporting.report import (
    Details,
    Heading,
    Paragraph,
    Picture,
    Report,
    Table,
    changed,
    strong,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.reporting.report import Span, Text
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.stimuli import Pair, Triplet


def stimuli_report(
    title: str, *, triplets: Iterable[Triplet], pairs: Iterable[Pair], scores: ScoreTable
) -> Report:
    """The stimuli as a page.

    Args:
        title: its heading.
        triplets: synthetic stimuli, in the order to show.
        pairs: natural stimuli; their rows are rows of `scores`.
        scores: log-probabilities of the natural sentences, nats; how often its models agree on
            them is drawn as a map.
    """
    by_models: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        by_models.setdefault((pair.model_1, pair.model_2), []).append(pair)
    with styled():
        image = png(agreement_map(scores))
    return Report(
        title,
        (
            Paragraph(
                "Numbers are natural log-probabilities (nats): higher is likelier. Bold: the "
                "sentence that a model prefers to the one it rejects. Words that differ from the "
                "natural sentence are marked.",
                note=True,
            ),
            Heading("Synthetic sentences"),
            *map(_triplet_table, triplets),
            Heading("Natural pairs"),
            *(
                Details(
                    f"{model_1} against {model_2}",
                    [_pairs_table((model_1, model_2), members, scores)],
                    is_open=number == 0,
                )
                for number, ((model_1, model_2), members) in enumerate(by_models.items())
            ),
            Heading("How often the models agree"),
            Paragraph(
                "Of two natural sentences drawn at random, how often two models find the same one "
                "likelier, in percent; 50 is chance. Only where they disagree can people decide "
                "between them.",
                note=True,
            ),
            Picture("agreement", image, "how often two models prefer the same sentence"),
        ),
    )


def mark_changes(sentence: Sentence, natural: Sentence) -> Text:
    """A sentence with the words marked that differ from those of the natural sentence."""
    runs: list[str | Span] = []
    for word, before in zip(sentence.words, natural.words, strict=True):
        runs += [word if word == before else changed(word), " "]
    return (*runs[:-1], sentence.end)


def _triplet_table(t: Triplet) -> Table:
    # each model's log-probability of the sentence that it rejects
    rejected = (t.log_prob_synthetic_1_model_1, t.log_prob_synthetic_2_model_2)
    natural = (t.log_prob_natural_model_1, t.log_prob_natural_model_2)
    synthetic_1 = (t.log_prob_synthetic_1_model_1, t.log_prob_synthetic_1_model_2)
    synthetic_2 = (t.log_prob_synthetic_2_model_1, t.log_prob_synthetic_2_model_2)
    rows = [
        (kind, mark_changes(sentence, t.natural), *_numbers(log_probs, rejected))
        for kind, sentence, log_probs in (
            ("natural", t.natural, natural),
            (f"{t.model_1} rejects", t.synthetic_1, synthetic_1),
            (f"{t.model_2} rejects", t.synthetic_2, synthetic_2),
        )
    ]
    return Table(("", "sentence", t.model_1, t.model_2), rows, texts=2, is_wide=True)


def _pairs_table(models: tuple[str, str], pairs: Iterable[Pair], scores: ScoreTable) -> Table:
    columns = [scores.column(model) for model in models]
    rows: list[tuple[str | Span, ...]] = []
    for pair in pairs:
        first, second = ([float(c[row]) for c in columns] for row in (pair.row_1, pair.row_2))
        rows.append(("pair", str(pair.sentence_1 or ""), *_numbers(first, second)))
        rows.append(("", str(pair.sentence_2 or ""), *_numbers(second, first)))
    return Table(("", "sentence", *models), rows, texts=2, is_wide=True)


def _numbers(log_probs: Sequence[float], others: Sequence[float]) -> list[str | Span]:
    """Both models' log-probabilities, those in bold that are above the other sentence's."""
    return [
        strong(f"{log_prob:.2f}") if log_prob > other else f"{log_prob:.2f}"
        for log_prob, other in zip(log_probs, others, strict=True)
    ]
