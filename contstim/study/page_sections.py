"""Sections of a study's page: tables and figures of the results of its stages.

The notes below the tables and figures are in `page.md.jinja`.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.experiments.platforms.texts import BUTTONS
from contstim.files.tables import cells_by_name, read_table
from contstim.items.reviews import changed_positions
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, ControversialMinimalPair
from contstim.models.specifications import without_context
from contstim.reporting.report import (
    Bullets,
    Details,
    Paragraph,
    Picture,
    Span,
    Table,
    button,
    code,
    short_names,
    strong,
)
from contstim.reporting.templates import fill_template
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.design import MakeDesign
from contstim.steps.platforms import ExportTrials
from contstim.steps.review import WriteReviewPage
from contstim.steps.selection import SelectMinimalPairs, SelectPairs, SelectTriplets
from contstim.steps.simulation import SimulatePower
from contstim.steps.triplets import SearchTriplets
from contstim.wording import grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from contstim.items.stimuli import Triplet
    from contstim.reporting.report import Part, Value
    from contstim.study.handing_on.facts import StudyFacts

# Number of pairs of models whose items are visible. Items of further pairs appear after a click
_SHOWN = 4


def link(path: Path, text: str = "") -> Span:
    """Return a link to a file of the study; by default, the text is the file's name."""
    return Span(text or path.name, "a", path.as_posix())


def at_a_glance(facts: StudyFacts) -> Iterator[Part]:
    """Yield the verdict, the main figure, a figure of triplets, and up to three items.

    The verdict is a sentence that names the model that agrees with participants most. The main
    figure shows the analysis. Without an analysis, it shows the power or the design of the
    experiment. A triplet is a natural sentence and two synthetic sentences. Parts whose results do
    not exist yet are omitted.
    """
    from contstim.reporting.stimuli_page import arrows

    figures: list[Path] = []
    if verdict := facts.analysis.get("verdict"):
        folder = facts.out(AnalyzeResponses) or Path()
        report = link(folder / "report.html", "The whole report")
        yield Paragraph((strong("Result: "), f"{verdict} ", report, "."))
        for pattern in ("*overall*.png", "accuracy-*.png"):
            figures += sorted((folder / "figures").glob(pattern))
    elif verdict := facts.waves.get("verdict"):
        yield Paragraph((strong("Result of the waves: "), verdict))
    if facts.wave_step and verdict:
        figures.append(Path(f"{facts.wave_step.out}.verdict.csv.png"))
    if facts.trials:
        power = facts.study.step(SimulatePower)
        figures += [power.writes()[-1]] if power else []
        figures.append(Path(f"{facts.out(MakeDesign)}.summary.png"))
    main_figure = next((path for path in figures if path.is_file()), Path())
    alternative = "models and participants" if verdict else "the experiment"
    scatter = arrows(facts.selected or facts.found_triplets, facts.scores)
    parts = [*_picture(main_figure, alternative)], scatter
    yield from chain(*(parts if verdict else parts[::-1]))
    items: list[Any] = [
        *(facts.selected or facts.found_triplets or facts.pairs or facts.minimal_pairs)
    ]
    scores = None if facts.selected or facts.found_triplets else facts.scores
    for item in [*dict.fromkeys([*_best(items, lambda _: 0.0), *items])][:3]:
        yield _item_table(item, scores)


def _models(facts: StudyFacts) -> Iterator[Part]:
    rows: list[tuple[Value, ...]] = []
    for model, row in zip(facts.study.models, facts.models, strict=True):
        text = model.training and model.training.text
        how = (row["rule"], row["unit"], row["precision"], code(row["fingerprint"]))
        context = code(" ".join(row["context_tokens"]))
        plain = code(without_context(model.specification)[0])
        rows.append((model.name, plain, text.name if text else "", context, *how))
    scoring = ("context", "rule", "unit", "precision", "fingerprint")
    header = ("model", "specification", "trained on", *scoring)
    yield Table(header, rows, texts=len(header), is_wide=True)
    lines = []
    for name, overlap in facts.training_overlap.items():
        if overlap is None or overlap["found"]:
            number = f"{overlap['found']:,} of {overlap['sentences']:,}" if overlap else "unknown"
            lines.append(f"{name}: {number}")
    if lines:
        yield Paragraph("Natural sentences in the models' training texts:")
        yield Bullets(lines)


def _materials(facts: StudyFacts) -> Iterator[Part]:
    texts, vocabulary = facts.study.texts, facts.path("vocabulary")
    words = facts.vocabulary.get("words", {})
    rows: list[tuple[Value, ...]] = []
    training, natural = texts.training_text, texts.natural_text
    for label, path, number in (
        ("training text", training, facts.record(training).get("sentences")),
        ("text for natural sentences", natural, facts.record(natural).get("sentences")),
        ("words that begin a sentence", vocabulary, words.get("initial")),
        ("other words", vocabulary, words.get("inner")),
        ("natural sentences", facts.path("sentences"), len(facts.natural) or None),
    ):
        if path is not None:
            where = link(path) if path.exists() else path.name
            rows.append((label, where, "" if number is None else f"{number:,}"))
    if rows:
        yield Table(("", "file", "number"), rows, texts=2)


def _left_out(facts: StudyFacts) -> Iterator[Part]:
    rows = [(label, why, f"{number:,}") for label, why, number in facts.left_out if number]
    if rows:
        yield Table(("", "because", "number"), rows, texts=2)


def _agreement(facts: StudyFacts) -> Iterator[Part]:
    scores = facts.scores
    if scores is not None and len(scores.models) > 1 and len(scores.log_probs) > 1:
        shares, names = scores.agreement(), short_names(scores.models)
        rows = [
            (name, *("–" if i == j else f"{100 * shares[i, j]:.0f}" for j in range(len(names))))
            for i, name in enumerate(names)
        ]
        yield Table(("%", *names), rows)


def _numbers(facts: StudyFacts) -> Iterator[Part]:
    from contstim.reporting.stimuli_page import figures_table

    proofs: list[tuple[Value, ...]] = []
    item_groups: Sequence[Sequence[object]] = (facts.pairs, facts.selected, facts.minimal_pairs)
    steps = (SelectPairs, SelectTriplets, SelectMinimalPairs)
    for step, items in zip(steps, item_groups, strict=True):
        path = facts.out(step)
        if path and (proof := facts.certificate(step)):
            numbers = [f"{proof[name]:,.4f}" for name in ("objective", "bound")]
            numbers += [f"{proof['candidates']:,}"]
            certificate = link(Path(f"{path}.certificate.json"), proof["status"])
            proofs.append((link(path), f"{len(items):,}", *numbers, certificate))
    if proofs:
        header = ("", "number", "objective", "proven bound", "candidates", "status")
        yield Table(header, proofs, notes=1, is_wide=True)
    if facts.verdicts:
        title, room = "Minimal pairs by paradigm", "contstim.study.handing_on"
        parts = fill_template(room, "verdicts.md.jinja", facts=facts, title=title).parts
        yield Details(title, parts, is_open=True)
    if facts.found_triplets:
        means = {frozenset(row[:2]): f"{row[4]:.2f}" for row in facts.controversialities}
        columns = {
            name: [f"{n:,}" for n in numbers] for name, numbers in facts.triplet_columns.items()
        }
        of_these = " of the selected" * bool(facts.selected)
        columns[f"mean controversiality{of_these}"] = [
            means.get(frozenset(p), "–") for p in facts.model_pairs
        ]
        pairs = zip(facts.model_pairs, zip(*columns.values(), strict=True), strict=True)
        table = Table(
            ("model 1", "model 2", *columns), [(*p, *c) for p, c in pairs], 2, is_wide=True
        )
        search = facts.study.step(SearchTriplets)
        assert search is not None, "Without it no triplets are found"
        yield Paragraph((link(search.out, "All triplets"), ", by pair of models:"))
        yield table
        if facts.figures:
            yield Paragraph((f"Figures{of_these or ' of all'} triplets:",))
            yield figures_table(facts.figures)


def _items(facts: StudyFacts) -> Iterator[Part]:
    triplets = facts.selected if facts.study.step(SelectTriplets) else facts.found_triplets
    pairs = [pair for pair in facts.pairs if pair.controversial]
    for item_name, items, value in (
        ("Triplet", triplets, _minus_new_words),
        ("Natural pair", pairs, lambda pair: -pair.rank_1_model_1 - pair.rank_2_model_2),
        ("Minimal pair", facts.minimal_pairs, lambda _: 0.0),
    ):
        tables = []
        for best in _best(items, value):
            title = f"{item_name}: {best.model_1} against {best.model_2}"
            tables.append(Details(title, [_item_table(best, facts.scores)], is_open=True))
        yield from tables[:_SHOWN]
        if further := tables[_SHOWN:]:
            title = quantity(len(further), "more pair of models", "more pairs of models")
            yield Details(title, further)


def _item_table(item: Any, scores: ScoreTable | None) -> Table:
    from contstim.experiments.design.building import pair_trial
    from contstim.reporting.stimuli_page import stimuli_table

    if not isinstance(item, ControversialMinimalPair):
        return stimuli_table([item], scores)
    both, models = (item.good, item.bad), (item.model_1, item.model_2)
    values = [[getattr(item, f"log_prob_{s}_model_{n}") for n in (1, 2)] for s in ("good", "bad")]
    table = ScoreTable(both, models, np.array(values))
    marked = (dict.fromkeys(changed_positions(*versions), "") for versions in (both, both[::-1]))
    return stimuli_table([pair_trial(item)], table, {item.trial_id: tuple(marked)})


def _best(items: Iterable[Any], value: Callable[[Any], float]) -> list[Any]:
    groups = grouped((frozenset((item.model_1, item.model_2)), item) for item in items)
    return [max(group, key=value) for group in groups.values()]


def _minus_new_words(triplet: Triplet) -> float:
    """Return minus the number of new words in the two synthetic sentences."""
    return -sum(
        len(changed_positions(synthetic, triplet.natural)) for synthetic in triplet.sentences[1:]
    )


def _reviews(facts: StudyFacts) -> Iterator[Part]:
    rows: list[tuple[Value, ...]] = []
    for page in (step.out for step in facts.study.steps(WriteReviewPage)):
        if record := facts.record(page):
            flagged = f"{record['flagged']} ({record['flagged'] / record['items']:.0%})"
            rows.append((link(page, f"{page.stem} to look at"), record["items"], flagged))
    if rows:
        yield Table(("page", "items", "with flags"), rows)
    if facts.reviewers:
        header = ("reviewer", "items", "kept", "rejected", "undecided")
        yield Table(header, facts.reviewers, texts=2)  # type: ignore[arg-type]


def _design(facts: StudyFacts) -> Iterator[Part]:
    trials, design = facts.trials, facts.study.step(MakeDesign)
    if not trials or not design:
        return
    conditions = Counter(trial.condition for trial in trials)
    longest = max(Counter(trial.group for trial in trials).values())
    minutes = longest * design.seconds_per_trial / 60
    rows = [
        ("groups of participants", f"{facts.groups:,}"),
        ("trials for each participant", f"{longest:,}"),
        ("minutes, without instructions and pauses", f"{minutes:.0f}"),
        ("trials in all", f"{len(trials):,}"),
        *((f"{name} trials", f"{number:,}") for name, number in conditions.items()),
    ]
    yield Table(("", "number"), rows)
    if changed := facts.record(MakeDesign).get("changed"):
        changes = [(item["item_id"], item["rule"], item["key"]) for item in changed]
        title = (
            f"{quantity(len(changed), 'trial')} changed after the review, without being rejected "
            "by a reviewer"
        )
        yield Details(title, [Table(("trial", "rule", "key"), changes, texts=3)])
    yield from _picture(Path(f"{design.out}.summary.png"), "trials by group, sources, and balance")
    summary = link(Path(f"{design.out}.summary.md"), "the summary of the design")
    yield Paragraph((link(design.out, "All trials"), "; ", summary, "."))


def _waves(facts: StudyFacts) -> Iterator[Part]:
    step, record = facts.wave_step, facts.waves
    if not step or not record:
        return
    yield Paragraph((strong(record["status"]),))
    if record["verdict"]:
        table = Path(f"{step.out}.verdict.csv")
        yield from _picture(Path(f"{table}.png"), "evidence by number of participants")
        people = quantity(record["finished"], "participant")
        texts = [f"{people} finished, {record['excluded']} of them excluded."]
        if further := record["further_people"]:
            people = quantity(further, "more participant")
            texts.append(f"About {people} are needed if the evidence grows as it did so far.")
        texts.append("Shares of answers are biased, because waves stop when a difference is large.")
        yield Paragraph((link(table, "All matches"), ". ", " ".join(texts)))
    after = {row["wave"]: row for row in record["history"]}
    rows = []
    dropped: set[str] = set()
    for wave in record["waves"]:
        look = after.get(wave["wave"], {"surviving": [], "beaten": {}})
        new = [f"{rival} beats {m}" for m, rival in look["beaten"].items() if m not in dropped]
        dropped |= look["beaten"].keys()
        numbers = (f"{wave[name]:,}" for name in ("wave", "people", "matches", "items"))
        rows.append((*numbers, "; ".join(new), ", ".join(look["surviving"])))
    header = ("wave", "participants", "pairs of models", "items", "dropped models", "remaining")
    yield Table(header, rows, notes=2, is_wide=True)


def _picture(path: Path, alternative: str) -> Iterator[Part]:
    if path.is_file():
        yield Picture(path.stem, path.read_bytes(), alternative)


def _participant(facts: StudyFacts) -> Iterator[Part]:
    exports = [step.out for step in facts.study.steps(ExportTrials) if step.out.is_dir()]
    # An export for JATOS has the page of the experiment in a subfolder `page`
    folders = {path: path / "page" if (path / "page").is_dir() else path for path in exports}
    page = next((folder for folder in folders.values() if (folder / "labels.csv").is_file()), None)
    if page is not None and facts.trials:
        table = read_table(page / "labels.csv")
        labels = dict(zip(table["name"], table["text"], strict=True))
        # Prefer a trial with a synthetic sentence, because such a trial shows the task best
        of_group = [trial for trial in facts.trials if trial.group == 1]
        shows_best = (Condition.NATURAL_SYNTHETIC, Condition.SYNTHETIC_SYNTHETIC)
        trial = next((t for t in of_group if t.condition in shows_best), of_group[0])
        words = [labels[name] for name in BUTTONS.get(trial.scale, ())]
        buttons = [button(f"{n} {w}") for n, w in enumerate((*words, *reversed(words)), start=1)]
        yield Paragraph(("A trial of group 1. ", strong(labels["question"])))
        answers = (tuple(buttons[: len(words)]), tuple(buttons[len(words) :]))
        yield Table(trial.displayed_texts, [answers] if words else [], texts=2, is_wide=True)
    for export, folder in folders.items():
        runs: list[Any] = [f"{export.name}: "]
        for name in ("index.html", "consent.md", "instructions.md", "debrief.md", "README.md"):
            if (folder / name).is_file():
                runs += [link(folder / name), ", "]
        yield Paragraph((*runs, link(export, "all files")))


def _power(facts: StudyFacts) -> Iterator[Part]:
    from contstim.experiments.design.power_report import ALTERNATIVE

    step = facts.study.step(SimulatePower)
    if not step or not facts.simulation:
        return
    comparisons, sizes, text, figure = step.writes()
    rates = ("first", "significantly_better")
    # The first row of each scope (kind of trials) is about the planned numbers of participants and
    # items
    planned: dict[str, tuple[Value, ...]] = {}
    for row in cells_by_name(read_table(sizes)):
        ends = [[f"{float(row[f'{rate}_{end}']):.0%}" for end in ("low", "high")] for rate in rates]
        shares = [" to ".join(dict.fromkeys(both)) for both in ends]
        least = row["detectable_difference"]
        cells = (row["scope"], *shares, f"{float(least):.2f}" if least != "" else "–")
        planned.setdefault(row["scope"], cells)
    header = ("trials", "highest accuracy", "significantly better", "detectable difference")
    yield Table(header, list(planned.values()))
    yield from _picture(figure, ALTERNATIVE)
    report = link(text, "Assumptions, and the effect of more participants or items")
    yield Paragraph(
        (report, "; ", link(comparisons, "all comparisons"), ", ", link(sizes, "all sizes"), ".")
    )


def _people(facts: StudyFacts) -> Iterator[Part]:
    folder = facts.out(AnalyzeResponses) or Path()
    report, models = folder / "report.html", folder / "tables" / "models.csv"
    if not facts.analysis:
        return
    people, left_out = facts.analysis.get("participants"), facts.analysis.get("left_out", {})
    numbers = (
        f"{quantity(people, 'participant')}, {len(left_out) or 'none'} left out." if people else ""
    )
    yield Paragraph((link(report, "The whole report"), f" has all figures and tests. {numbers}"))
    if models.is_file():
        yield accuracies(models)


def accuracies(path: Path) -> Table:
    """Return a table of each model's accuracy by kind of trial; the highest values are bold."""
    values = {
        (row["model"], row["scope"]): float(row["value"])
        for row in cells_by_name(read_table(path))
        if row["measure"] == "accuracy"
    }
    models, scopes = (dict.fromkeys(key[axis] for key in values) for axis in (0, 1))
    best = {s: max(v for (_, scope), v in values.items() if scope == s) for s in scopes}

    def cell(model: str, scope: str) -> Value:
        number = values.get((model, scope), float("nan"))
        return strong(f"{number:.2f}") if number == best[scope] else f"{number:.2f}"

    return Table(("model", *scopes), [(m, *(cell(m, scope) for scope in scopes)) for m in models])


_ITEM_STAGES = frozenset({"triplets", "select", "near-pairs", "evaluate"})
# Heading of a section → function that makes the section, and the commands whose results it shows
SECTIONS: dict[str, tuple[Callable[[StudyFacts], Iterator[Part]], frozenset[str]]] = {
    "Models": (_models, frozenset({"model", "score"})),
    "Texts, words and sentences": (_materials, frozenset({"text", "vocabulary", "sentences"})),
    "How often the models agree": (_agreement, frozenset({"score"})),
    "Pairs and triplets": (_numbers, _ITEM_STAGES),
    "Some items": (_items, _ITEM_STAGES),
    "Reviews": (_reviews, frozenset({"review"})),
    "The experiment": (_design, frozenset({"design"})),
    "What a participant will see": (_participant, frozenset({"design", "export"})),
    "Waves": (_waves, frozenset({"waves"})),
    "What the experiment can show": (_power, frozenset({"power"})),
    "Agreement with participants": (_people, frozenset({"simulate", "import", "analyze"})),
    "What was left out": (_left_out, frozenset({"vocabulary", "sentences", "triplets"})),
}
