"""The page of a study, from texts to stimuli: models, words, sentences, pairs and triplets.

Everything is read from the files and records that stages wrote; nothing is computed anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.documents import read_json_object
from contstim.optimization.selection.question import NaturalCertificate, TripletCertificate
from contstim.records import record_path
from contstim.reporting.report import Bullets, Details, Heading, Paragraph, Span, Table, code
from contstim.stimuli import read_pairs, read_triplets
from contstim.study.places import (
    NATURAL,
    NATURAL_TEXT,
    PAIRS,
    REVIEW,
    SCORES,
    SELECTED,
    TRAINING,
    TRIAL_SCORES,
    TRIPLETS,
    VOCABULARY,
)
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized

    from contstim.optimization.selection.question import SelectionCertificate
    from contstim.reporting.report import Part, Text, Value
    from contstim.stimuli import Pair
    from contstim.study.places import StudyFiles
    from contstim.study.study import StudyModel

_SHOWN = 4  # pairs of models whose items are seen without unfolding anything
_SHORT = 10  # rows of a table that is seen without unfolding anything


def facts_of(path: Path) -> dict[str, Any]:
    """Content of a file's record; empty where there is no record.

    Raises:
        InputError: the record is not readable.
    """
    record = record_path(path)
    return read_json_object(record) if record.is_file() else {}


def link(path: Path, text: str = "") -> Span:
    """A link to a file of the study, by its name unless a text is given."""
    return Span(text or path.name, "a", path.as_posix())


def models_part(files: StudyFiles) -> Iterator[Part]:
    """Each model with its specification, rule and convention, and what it was trained on."""
    recorded: dict[str, Any] = {}
    for path in (VOCABULARY, TRIPLETS, SCORES, TRIAL_SCORES):
        recorded |= facts_of(path).get("models", {})
    rows: list[tuple[Value, ...]] = []
    for model in files.study.models:
        facts = recorded.get(model.name)
        scored = (_convention(facts), code(facts.get("fingerprint", ""))) if facts else ("", "")
        rows.append((model.name, code(model.specification), _origin(files, model), *scored))
    header = ("model", "specification", "where from", "how it scores", "fingerprint")
    yield Table(header, rows, texts=len(header), is_wide=True)
    seen = {
        name: of_model
        for name, of_model in facts_of(SCORES).get("training_text", {}).items()
        if of_model and of_model["found"]
    }
    if seen:
        yield Paragraph("Scored sentences that stand in a model's training text:")
        yield Bullets([f"{name}: {s['found']:,} of {s['sentences']:,}" for name, s in seen.items()])


def _origin(files: StudyFiles, model: StudyModel) -> Text:
    if model.training is None:
        return "given"
    text = files.text_of(model.training)
    path = model.files[0]
    details = []
    facts = facts_of(path)
    if "ngrams" in facts:
        details = [f", {counted(sum(facts['ngrams']), 'n-gram')}"]
    training = path / "training.json"
    if training.is_file():
        details = [", ", link(training, "how it was trained")]  # type: ignore[list-item]
    return ("trained on ", _link_if_there(text), *details)


def _convention(facts: Mapping[str, Any]) -> str:
    """Rule and convention of a model, as its record has them, in one line."""
    convention = [
        facts.get("rule", ""),
        f"begins after {facts['context']!r}" if facts.get("context") else "",
        "end scored" if facts.get("end_scored") else "end not scored",
        facts.get("unit", ""),
        facts.get("sampling", ""),
        facts.get("precision", ""),
    ]
    return ", ".join(filter(None, convention))


def materials_part(files: StudyFiles) -> Iterator[Part]:
    """Texts, words and natural sentences: how many, and how many were left out and why."""
    rows: list[tuple[Value, ...]] = []
    texts = (
        ("training text", files.training_text, TRAINING),
        ("text for natural sentences", files.natural_text, NATURAL_TEXT),
    )
    for what, path, embedded in texts:
        if path is not None:
            facts = facts_of(path) if path == embedded else {}
            many = f"{facts['sentences']:,} sentences" if "sentences" in facts else ""
            rows.append((what, _link_if_there(path), many))
    dropped: list[tuple[str, Mapping[str, int]]] = []
    if files.vocabulary is not None:
        facts = facts_of(files.vocabulary) if files.vocabulary == VOCABULARY else {}
        words = facts.get("words", {})
        many = f"{words['initial']:,} sentence-initial, {words['inner']:,} other" if words else ""
        rows.append(("words", _link_if_there(files.vocabulary), many))
        dropped.append(("words", facts.get("left_out", {})))
    if files.natural is not None:
        facts = facts_of(files.natural) if files.natural == NATURAL else {}
        many = f"{facts['kept']:,}" if "kept" in facts else ""
        rows.append(("natural sentences", _link_if_there(files.natural), many))
        dropped.append(("sentences", facts.get("left_out", {})))
    if rows:
        yield Table(("", "file", "how many"), rows, texts=3, is_wide=True)
    reasons = [
        (what, reason, number)
        for what, of_what in dropped
        for reason, number in of_what.items()
        if number
    ]
    if reasons:
        yield Paragraph("Left out:")
        yield Table(("", "because", "number"), reasons, texts=2)


def _link_if_there(path: Path) -> Span | str:
    return link(path) if path.exists() else path.name


def numbers_part(files: StudyFiles) -> Iterator[Part]:
    """Numbers of pairs and triplets, how good they are, and the proof that they are the best."""
    sections = files.study.sections
    proofs: list[tuple[Value, ...]] = []
    kinds: tuple[tuple[str, Path, Callable[[Path], Sized], type[SelectionCertificate]], ...] = (
        ("natural pairs", PAIRS, read_pairs, NaturalCertificate),
        ("selected triplets", SELECTED, read_triplets, TripletCertificate),
    )
    for what, path, read, kind in kinds:
        certificate = Path(f"{path}.certificate.json")
        if certificate.is_file():
            proof = kind.load(certificate)
            proofs.append(
                (
                    what,
                    link(path),
                    f"{len(read(path)):,}",
                    f"{proof.objective:,.4f}",
                    f"{proof.bound:,.4f}",
                    f"{proof.candidates:,}",
                    (f"{proof.status} (", link(certificate, "certificate"), ")"),
                )
            )
    if proofs:
        header = ("", "file", "number", "objective", "proven bound", "candidates", "status")
        yield Table(header, proofs, texts=2, notes=1, is_wide=True)
        yield Paragraph(
            "A selection is optimal where the objective equals its proven bound: no other one that "
            "fulfils the same conditions is better. Of pairs the objective is a sum of ranks "
            "(Eq. 5 of Golan et al. 2023; lower is better); of triplets it is what the study file "
            "names, by default the sum of controversialities in nats (higher is better).",
            note=True,
        )
    if "triplets" in sections and TRIPLETS.is_file():
        yield from _searches(files)


def _searches(files: StudyFiles) -> Iterator[Part]:
    """The searches for triplets, by pair of models."""
    facts = facts_of(TRIPLETS)
    chosen = _by_models(read_triplets(SELECTED)) if SELECTED.is_file() else None
    every = facts.get("pairs", ())
    rows: list[tuple[Value, ...]] = []
    for of_pair in every:
        models = (of_pair["model_1"], of_pair["model_2"])
        selected = () if chosen is None else (f"{len(chosen.get(frozenset(models), ())):,}",)
        rows.append(
            (
                *models,
                f"{of_pair['triplets']:,}",
                *selected,
                *(_decimals(of_pair[name]) for name in ("controversiality", "drop_1", "drop_2")),
                f"{of_pair['unchanged']:,}",
            )
        )
    header = (
        *("model 1", "model 2", "triplets"),
        *(() if chosen is None else ("selected",)),
        *("controversiality", "drop 1", "drop 2", "unchanged"),
    )
    table = Table(header, rows, texts=2, is_wide=True)
    wanted = files.study.sections["triplets"].per_pair
    missing = wanted * len(every) - sum(of_pair["triplets"] for of_pair in every)
    pairs = counted(len(every), "pair of models", "pairs of models")
    yield Paragraph(
        (
            link(TRIPLETS, "All triplets"),
            f": {wanted:,} were wanted for each of {pairs}",
            f"; {counted(missing, 'triplet')} could not be found." if missing > 0 else ".",
            f" Floor of plausibility: {facts.get('plausible') or 'none'}.",
        )
    )
    yield table if len(rows) <= _SHORT else Details(f"Triplets of {pairs}", [table])
    yield Paragraph(
        "Controversiality and drops are means over all triplets, in nats: how much less likely a "
        "model finds the sentence that it rejects than the natural one (drop 1, drop 2), and their "
        "sum. Unchanged: searches that found nothing better than the natural sentence.",
        note=True,
    )


def _decimals(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def items_part(files: StudyFiles) -> Iterator[Part]:
    """The most controversial triplet and pair of every two models, with log-probabilities."""
    from contstim.reporting.stimuli_page import stimuli_table
    from contstim.scores import ScoreTable

    triplets = files.triplets
    groups: list[tuple[str, list[Part]]] = []
    if triplets is not None and triplets.is_file():
        for of_models in _by_models(read_triplets(triplets)).values():
            best = max(of_models, key=lambda triplet: triplet.controversiality)
            groups.append((f"{best.model_1} against {best.model_2}", [stimuli_table([best])]))
        if groups:
            yield Heading("Triplets", 3)
            yield Paragraph(
                "The most controversial triplet of every two models. Numbers are natural "
                "log-probabilities (nats): higher is likelier. Bold: the sentence that a model "
                "prefers to the one it rejects. Words that differ from the natural sentence are "
                "marked.",
                note=True,
            )
            yield from _folded(groups)
    if "pairs" in files.study.sections and PAIRS.is_file() and SCORES.is_file():
        scores = ScoreTable.read(SCORES)
        groups = []
        for pairs in _by_models(read_pairs(PAIRS)).values():
            best_pair = max(pairs, key=_rank_difference)
            if not best_pair.controversial:
                continue
            title = f"{best_pair.model_1} against {best_pair.model_2}"
            groups.append((title, [stimuli_table([best_pair], scores)]))
        if groups:
            yield Heading("Natural pairs", 3)
            yield Paragraph(
                "The pair of every two models on whose order they disagree most, by ranks.",
                note=True,
            )
            yield from _folded(groups)


def _folded(groups: Sequence[tuple[str, list[Part]]]) -> Iterator[Part]:
    """The first few pairs of models open, all others below one line."""
    for title, parts in groups[:_SHOWN]:
        yield Details(title, parts, is_open=True)
    rest: list[Part] = [Details(title, parts, is_open=True) for title, parts in groups[_SHOWN:]]
    if rest:
        yield Details(counted(len(rest), "more pair of models", "more pairs of models"), rest)


def _rank_difference(pair: Pair) -> float:
    """Smaller of both models' rank differences of the two sentences, where each rejects another."""
    return min(pair.rank_2_model_1 - pair.rank_1_model_1, pair.rank_1_model_2 - pair.rank_2_model_2)


def _by_models(stimuli: Iterable[Any]) -> dict[frozenset[str], list[Any]]:
    """Pairs or triplets by their two models, whatever their order."""
    groups: dict[frozenset[str], list[Any]] = {}
    for stimulus in stimuli:
        groups.setdefault(frozenset((stimulus.model_1, stimulus.model_2)), []).append(stimulus)
    return groups


def review_part(files: StudyFiles) -> Iterator[Part]:
    """Pages to look at, and how many items reviewers decided and rejected."""
    from contstim.reviews import Decision, read_reviews

    rows: list[tuple[Value, ...]] = []
    for what in ("pairs", "triplets", "trials"):
        page = REVIEW / f"{what}.html"
        if page.is_file():
            facts = facts_of(page)
            numbers = (f"{facts[name]:,}" if name in facts else "" for name in ("items", "flagged"))
            rows.append((link(page, f"{what} to look at"), *numbers))
    if rows:
        yield Table(("page", "items", "with flags"), rows)
        yield Paragraph(
            "Each page opens in a browser without a server. What a reviewer decides there is saved "
            "as a file; name it under decisions in the section review of the study file.",
            note=True,
        )
    if files.decisions and all(path.is_file() for path in files.decisions):
        items = read_reviews(files.decisions, may_be_undecided=True).decisions
        decided: dict[str, list[Decision]] = {}
        for item in items:
            decided.setdefault(f"{item.reviewer or '(no name)'}: {item.kind}s", []).append(
                item.decision
            )
        yield Table(
            ("reviewer", "items", "kept", "rejected", "undecided"),
            [
                (
                    who,
                    f"{len(of_who):,}",
                    *(f"{of_who.count(each):,}" for each in (Decision.KEEP, Decision.REJECT)),
                    f"{of_who.count(Decision.NONE):,}",
                )
                for who, of_who in decided.items()
            ],
        )
        yield Paragraph(("Decisions: ", *_listed(files.decisions), "."))


def _listed(paths: Iterable[Path]) -> list[Span | str]:
    """Links with commas between them."""
    runs: list[Span | str] = []
    for path in paths:
        runs += [", ", link(path)] if runs else [link(path)]
    return runs


def agreement_part(files: StudyFiles) -> Iterator[Part]:
    """Agreement of every two models on the order of two natural sentences."""
    from contstim.reporting.names import short_names
    from contstim.scores import ScoreTable

    if files.natural is None or not SCORES.is_file():
        return
    scores = ScoreTable.read(SCORES)
    if len(scores.models) < 2 or len(scores.log_probs) < 2:
        return
    shares, names = scores.agreement(), short_names(scores.models)
    rows: list[tuple[Value, ...]] = [
        (name, *("–" if i == j else f"{100 * shares[i, j]:.0f}" for j in range(len(names))))
        for i, name in enumerate(names)
    ]
    yield Table(("%", *names), rows)
    yield Paragraph(
        "Of two natural sentences drawn at random, how often two models find the same one "
        "likelier, in percent; 50 is chance. Only where they disagree can people decide between "
        "them.",
        note=True,
    )
