"""A page of stimuli to look at: both models' log-probabilities, changed words highlighted."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from contstim.files import write_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.stimuli import Pair, Triplet

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1b1b; background: #fff; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: 0 0 2rem; }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid #ddd; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.first td { border-top: 2px solid #888; }
td.preferred { font-weight: 600; }
table.map { width: auto; }
table.map td { text-align: center; min-width: 4rem; font-variant-numeric: tabular-nums; }
summary { cursor: pointer; font-weight: 600; margin: .5rem 0; }
mark { background: #fde7a9; border-radius: .2rem; padding: 0 .15rem; }
p.note { color: #555; }
"""


def write_report(
    path: Path | str,
    *,
    title: str,
    triplets: Sequence[Triplet],
    pairs: Sequence[Pair],
    scores: ScoreTable,
) -> None:
    """Write an HTML page that stands alone: no scripts, nothing fetched.

    Args:
        path: the file to write.
        title: its heading.
        triplets: synthetic stimuli, in the order to show.
        pairs: natural stimuli; their rows are rows of `scores`.
        scores: log-probabilities of the natural sentences, nats; how often its models agree on
            them is drawn as a map.

    Raises:
        InputError: the file cannot be written.
    """
    body = [
        f"<h1>{escape(title)}</h1>",
        '<p class="note">Numbers are natural log-probabilities (nats): higher is likelier. Bold: '
        "the sentence that a model prefers to the one it rejects. Words that differ from the "
        "natural sentence are marked.</p>",
        "<h2>Synthetic sentences</h2>",
        *(_triplet(triplet) for triplet in triplets),
        "<h2>Natural pairs</h2>",
        *_pairs(pairs, scores),
        "<h2>How often the models agree</h2>",
        '<p class="note">Of two natural sentences drawn at random, how often two models find the '
        "same one likelier, in percent; 50 is chance. Only where they disagree can people decide "
        "between them.</p>",
        _agreement(scores),
    ]
    page = (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )
    write_text(path, page)


def _triplet(t: Triplet) -> str:
    natural = (t.log_prob_natural_model_1, t.log_prob_natural_model_2)
    rows = (
        ("natural", t.natural, natural),
        (
            f"{t.model_1} rejects",
            t.synthetic_1,
            (t.log_prob_synthetic_1_model_1, t.log_prob_synthetic_1_model_2),
        ),
        (
            f"{t.model_2} rejects",
            t.synthetic_2,
            (t.log_prob_synthetic_2_model_1, t.log_prob_synthetic_2_model_2),
        ),
    )
    lines = [_header("", "sentence", t.model_1, t.model_2)]
    rejected = (t.log_prob_synthetic_1_model_1, t.log_prob_synthetic_2_model_2)
    for kind, sentence, scores in rows:
        preferred = tuple(own > other for own, other in zip(scores, rejected, strict=True))
        lines.append(_row(kind, mark_changes(sentence, t.natural), scores, preferred))
    return _table(lines)


def _pairs(pairs: Iterable[Pair], scores: ScoreTable) -> Iterable[str]:
    by_models: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        by_models.setdefault((pair.model_1, pair.model_2), []).append(pair)
    for number, ((model_1, model_2), members) in enumerate(by_models.items()):
        columns = (scores.column(model_1), scores.column(model_2))
        lines = [_header("", "sentence", model_1, model_2)]
        for pair in members:
            first, second = ([float(c[row]) for c in columns] for row in (pair.row_1, pair.row_2))
            over = tuple(a > b for a, b in zip(first, second, strict=True))
            under = tuple(a < b for a, b in zip(first, second, strict=True))
            lines.append(_row("pair", escape(str(pair.sentence_1 or "")), first, over, opens=True))
            lines.append(_row("", escape(str(pair.sentence_2 or "")), second, under))
        yield (
            f"<details{' open' * (number == 0)}>"
            f"<summary>{escape(model_1)} against {escape(model_2)}</summary>"
            f"{_table(lines)}</details>"
        )


def _agreement(scores: ScoreTable) -> str:
    """A map of shares: the darker, the more agreement."""
    shares = scores.agreement()
    names = [escape(name) for name in scores.models]
    lines = ["<tr><th></th>" + "".join(f"<th>{name}</th>" for name in names) + "</tr>"]
    for i, name in enumerate(names):
        cells = ("<td></td>" if i == j else _cell(share) for j, share in enumerate(shares[i]))
        lines.append(f"<tr><th>{name}</th>{''.join(cells)}</tr>")
    return '<div class="wide"><table class="map">\n' + "\n".join(lines) + "\n</table></div>"


def _cell(share: float) -> str:
    depth = min(1.0, max(0.0, 2 * share - 1))  # chance is white
    blue = ", ".join(str(round(255 + depth * (end - 255))) for end in (8, 69, 148))
    ink = "#fff" if depth > 0.55 else "#1b1b1b"
    return f'<td style="background: rgb({blue}); color: {ink}">{100 * share:.0f}</td>'


def mark_changes(sentence: Sentence, natural: Sentence) -> str:
    """A sentence as HTML, with the words marked that differ from the natural one's."""
    words = [
        escape(word) if word == before else f"<mark>{escape(word)}</mark>"
        for word, before in zip(sentence.words, natural.words, strict=True)
    ]
    return " ".join(words) + sentence.end


def _header(*names: str) -> str:
    kinds = ("", "") + (' class="number"',) * (len(names) - 2)
    cells = (f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, names, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _row(
    kind: str,
    html: str,
    scores: Sequence[float],
    preferred: Sequence[bool],
    *,
    opens: bool = False,
) -> str:
    numbers = (
        f'<td class="number{" preferred" * yes}">{score:.2f}</td>'
        for score, yes in zip(scores, preferred, strict=True)
    )
    first = ' class="first"' if opens else ""
    return f"<tr{first}><td>{escape(kind)}</td><td>{html}</td>{''.join(numbers)}</tr>"


def _table(lines: Iterable[str]) -> str:
    return '<div class="wide"><table>\n' + "\n".join(lines) + "\n</table></div>"
