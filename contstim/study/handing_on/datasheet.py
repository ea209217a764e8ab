"""The materials of a study as a datasheet: how items were made, chosen, left out and shared out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.corpus import read_sentences
from contstim.files import checksum
from contstim.models.specifications import parse_specification
from contstim.reporting.report import Bullets, Heading, Paragraph, Report, Table, code, strong
from contstim.reviews import Decision, ItemKind
from contstim.steps.text_settings import VocabularySettings
from contstim.stimuli import CONTROVERSIAL
from contstim.study.handing_on.facts import between, deviation, mean
from contstim.study.handing_on.manifest import ARCHIVED_RESULTS
from contstim.study.handing_on.model_texts import ngrams_text, score_text, training_text
from contstim.study.handing_on.references import Citations
from contstim.study.places import (
    NATURAL,
    NATURAL_TEXT,
    PAIRS,
    SCORES,
    SELECTED,
    TRAINING,
    TRIALS,
    TRIPLETS,
)
from contstim.study.study import embedded_text
from contstim.version import __version__
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.reporting.report import Part, Text, Value
    from contstim.study.handing_on.facts import StudyFacts
    from contstim.study.handing_on.manifest import HubModel

TO_FILL_IN = "To fill in: "
"""What begins every question that only the authors can answer."""


def datasheet(
    facts: StudyFacts, hub: Sequence[HubModel] = (), doubts: Sequence[str] = ()
) -> Report:
    """The datasheet; numbers are counted in tables, or those of records and certificates.

    The current folder is the study's.

    Args:
        facts: of the study.
        hub: its models of the hub.
        doubts: what does not hold of its results, one sentence each.
    """
    cite = Citations()
    body = (
        *_texts(facts),
        *_models(facts, hub, cite),
        *_words(facts),
        *_sentences(facts),
        *_pairs(facts, cite),
        *_triplets(facts, cite),
        *_reviews(facts),
        *_trials(facts, cite),
        *_participants(facts),
        *_exclusions(facts),
        Heading("Use"),
        to_fill_in("under which licence may these items be used, and whom to ask about them?"),
        to_fill_in("may any item hurt or identify somebody, and what was done about it?"),
    )
    simulated = sum(facts.participants.values())
    warning = ""
    if simulated:
        warning = (
            f"{simulated:,} of {counted(len(facts.participants), 'participant')} are artificial."
        )
    works = cite.works(or_tools=_or_tools(facts))
    return Report(
        f"Materials of {facts.study.title}",
        (
            Paragraph(
                f"Written by contstim {__version__} from the study's own tables, records and "
                "certificates. Log-probabilities are natural logarithms (nats)."
            ),
            *(Paragraph((strong(doubt),)) for doubt in doubts),
            *body,
            *((Heading("References"), Bullets(works)) if works else ()),
        ),
        warning,
    )


def to_fill_in(question: str) -> Paragraph:
    """A question that only the authors can answer, marked so that none is overlooked."""
    return Paragraph((strong(f"{TO_FILL_IN}{question}"),))


def _or_tools(facts: StudyFacts) -> str:
    for path in (PAIRS, SELECTED, TRIALS):
        certificate = facts.certificate(path)
        if str(certificate.get("solver", "")).startswith("OR-tools"):
            return str(certificate["version"])
    return ""


def _texts(facts: StudyFacts) -> Iterator[Part]:
    texts = facts.study.texts
    rows: list[tuple[Value, ...]] = []
    for use, text, written in (
        ("models and words", texts.training, TRAINING),
        ("natural sentences", texts.natural, NATURAL_TEXT),
        *(
            (model.name, model.training.place.text, TRAINING)
            for model in facts.study.models
            if model.training is not None
        ),
    ):
        if text is None:
            continue
        path = written if embedded_text(text) else Path(text)
        source = "the embedded English of contstim" if embedded_text(text) else code(path.name)
        number = f"{sum(1 for _ in read_sentences(path)):,}" if path.is_file() else "–"
        sha256 = checksum(path) if path.exists() else "–"
        rows.append((use, source, number, code(sha256.removeprefix("sha256:")[:16])))
    if not rows:
        return
    yield Heading("Texts")
    prose = " Lines of running prose hold several sentences." if texts.prose else ""
    yield Paragraph(
        "Sentences are the lines of each text; the checksum is the beginning of its SHA-256."
        + prose
    )
    yield Table(("use", "text", "lines", "checksum"), rows, texts=2, notes=1)
    if any(embedded_text(text) for text in (texts.training, texts.natural) if text):
        yield Paragraph(
            "The embedded English is drawn from a lexicon and a grammar that are part of contstim, "
            "under its licence (MIT). It is meant for practice."
        )
    if any(not embedded_text(text) for text in (texts.training, texts.natural) if text):
        yield to_fill_in(
            "where are the texts from, who wrote them when, and what is their licence?"
        )


def _models(facts: StudyFacts, hub: Sequence[HubModel], cite: Citations) -> Iterator[Part]:
    models = facts.study.models
    if not models:
        return
    revisions = {model.name: model.revision for model in hub}
    rows: list[tuple[Value, ...]] = []
    for model in models:
        parsed = parse_specification(model.specification)
        entry = facts.conventions.get(model.name, {})
        source: Value = code(Path(parsed.location).name)
        if model.training is not None:
            source = "trained for this study"
        elif model.name in revisions:
            revision = revisions[model.name]
            source = f"{parsed.location}, {f'commit {revision}' if revision else 'on the hub'}"
        cells = [str(entry.get(name, "–")) for name in ("rule", "unit", "precision")]
        rows.append((model.name, source, *cells, code(str(entry.get("fingerprint", "–")))))
    yield Heading("Models")
    yield Paragraph(
        "A fingerprint changes whenever weights, tokenizer, rule or context change; two scores "
        "compare only where it is the same."
    )
    header = ("model", "from", "rule", "unit", "precision", "fingerprint")
    yield Table(header, rows, texts=len(header))
    phrases: dict[str, list[str]] = {}
    for model in models:
        phrases.setdefault(score_text(facts, model, cite), []).append(model.name)
    yield Bullets(
        [f"Score of {', '.join(names)}: {phrase}." for phrase, names in phrases.items() if phrase]
    )
    trained = [ngrams_text(facts, cite), *(training_text(model) for model in models)]
    if any(trained):
        yield Bullets(list(filter(None, trained)))
    if any(model.training is None for model in models):
        yield to_fill_in("what are the licences of the models that were there before?")
    seen = facts.record(SCORES).get("training_text", {})
    counts = [
        (name, f"{entry['sentences']:,}", f"{entry['found']:,}")
        for name, entry in seen.items()
        if isinstance(entry, dict)
    ]
    if counts:
        yield Paragraph(
            "Natural sentences that stand in a model's training text, where it is known:"
        )
        yield Table(("model", "natural sentences", "in its training text"), counts)


def _words(facts: StudyFacts) -> Iterator[Part]:
    record = facts.vocabulary_record()
    if not record:
        return
    words, choice = record["words"], record["choice"]
    settings = VocabularySettings(
        names=choice["names"], language=choice["language"], every_word=choice["every_word"]
    )
    yield Heading("Words")
    rules = [f"occur {record['min_count']:,} times or more in the training text"]
    if not choice["every_word"]:
        rules.append("are words by spelling and case, and stand on no block list")
        rules.append("may be names" if settings.keeps_names else "are not names")
    if choice["zipf"]:
        rules.append(f"have a frequency of {choice['zipf']} on the Zipf scale")
    if record["same_token_count"]:
        rules.append("are cut into equally many tokens by all tokenizers")
    yield Paragraph(
        f"Sentences may be made of {words['initial']:,} words at their beginning and "
        f"{words['inner']:,} inside them, which {'; '.join(rules)}."
    )
    known = record.get("known", {})
    if known:
        listed = ", ".join(f"{name} {number:,}" for name, number in known.items())
        left_out = counted(words["dropped"], "word")
        yield Paragraph(
            f"Of the words that the text offered, each model knows so many: {listed}. "
            f"{left_out} that not all models know were left out."
        )


def _sentences(facts: StudyFacts) -> Iterator[Part]:
    record = facts.record(NATURAL)
    if not facts.natural:
        return
    lengths = Counter(map(len, facts.natural))
    words = ", ".join(f"{n:,} of {length} words" for length, n in sorted(lengths.items()))
    yield Heading("Natural sentences")
    yield Paragraph(f"{counted(len(facts.natural), 'natural sentence')}: {words}.")
    if record and len(facts.natural) != record["kept"]:
        yield Paragraph(
            (strong(f"The command found {record['kept']:,}: the list was changed afterwards."),)
        )


def _pairs(facts: StudyFacts, cite: Citations) -> Iterator[Part]:
    if not facts.pairs:
        return
    certificate, record = facts.certificate(PAIRS), facts.record(PAIRS)
    yield Heading("Natural pairs")
    yield Paragraph(
        "In each pair two models disagree on which of two natural sentences is likelier. "
        "Log-probabilities are taken as ranks within a model, and the pairs are those with the "
        "least sum of the ranks that rejected sentences have (Eq. 5 of "
        f"{cite('Golan et al., 2023')}), of all sets in which no sentence stands twice."
    )
    if certificate:
        yield _certificate_text(certificate, "sum of ranks", "less")
    agreed = len(record.get("not_controversial", []))
    if agreed:
        yield Paragraph(f"In {counted(agreed, 'pair')} both models prefer the same sentence.")
    yield _by_model_pair(facts, {"pairs": [between(facts.pairs, *p) for p in facts.model_pairs]})


def _certificate_text(certificate: dict[str, object], what: str, other: str) -> Paragraph:
    """Paragraph about what a certificate proves of a selection."""
    candidates, status = certificate["candidates"], certificate["status"]
    objective, bound = certificate["objective"], certificate["bound"]
    proof = "proven to be the best" if status == "optimal" else f"of status {status}"
    return Paragraph(
        f"{what.capitalize()}: {objective:.6g}, chosen from {candidates:,} candidates by "
        f"{certificate['solver']} {certificate['version']}; {proof} (no set has {other} than "
        f"{bound:.6g})."
    )


def _by_model_pair(facts: StudyFacts, columns: dict[str, list[int]]) -> Table:
    rows = [
        (first, second, *(f"{numbers[place]:,}" for numbers in columns.values()))
        for place, (first, second) in enumerate(facts.model_pairs)
    ]
    totals = ("all", "", *(f"{sum(numbers):,}" for numbers in columns.values()))
    return Table(("model", "model", *columns), [*rows, totals], texts=2)


def _triplets(facts: StudyFacts, cite: Citations) -> Iterator[Part]:
    record = facts.record(TRIPLETS)
    if not facts.found or not record:
        return
    yield Heading("Triplets of a natural and two synthetic sentences")
    yield Paragraph(
        "Words of a natural sentence are replaced to make it as unlikely under one model as the "
        "search can, and no less likely under the other than before; once for either model "
        f"({cite('Golan et al., 2023')}). Controversiality is the sum of both drops in "
        "log-probability (their Eq. 4)."
    )
    yield Bullets(_search_rules(record))
    searched = {
        frozenset((pair["model_1"], pair["model_2"])): pair for pair in record.get("pairs", [])
    }
    by_pair = [searched.get(frozenset(pair), {}) for pair in facts.model_pairs]
    columns = {
        "triplets": [between(facts.found, *pair) for pair in facts.model_pairs],
        "without a new sentence": [pair.get("unchanged", 0) for pair in by_pair],
        "passed over": [pair.get("inadmissible", 0) for pair in by_pair],
        "failed": [pair.get("failed", 0) for pair in by_pair],
        "not found": [pair.get("missing", 0) for pair in by_pair],
    }
    columns = {
        name: numbers for name, numbers in columns.items() if name == "triplets" or any(numbers)
    }
    if facts.selected:
        columns["selected"] = [between(facts.selected, *pair) for pair in facts.model_pairs]
    yield _by_model_pair(facts, columns)
    certificate = facts.certificate(SELECTED)
    if facts.selected and certificate:
        question = certificate["question"]
        quantiles = question["quantiles"]
        spread = (
            "equally many from each of "
            f"{quantiles} quantiles of the natural sentence's probability under either model"
        )
        rules = [spread] if quantiles else []
        if question["natural_once"]:
            rules.append("no natural sentence for two pairs of models")
        if question["word_cap"] is not None:
            rules.append(f"no word more than {question['word_cap']} times")
        if question["token_balance"] is not None:
            rules.append(
                "rejected and accepted sentences that differ by "
                f"{question['token_balance']:g} tokens at most on average"
            )
        if rules:
            yield Paragraph(f"Selected: {'; '.join(rules)}.")
        if question["objective"] == "controversiality":
            yield _certificate_text(certificate, "sum of controversiality", "more")
        else:
            yield _certificate_text(certificate, "sum of worst ranks", "less")
    chosen = facts.selected or facts.found
    rows = []
    for first, second in facts.model_pairs:
        values = [
            triplet.controversiality
            for triplet in chosen
            if {triplet.model_1, triplet.model_2} == {first, second}
        ]
        if values:
            cells = (min(values), mean(values), max(values))
            rows.append((first, second, f"{len(values):,}", *(f"{x:.2f}" for x in cells)))
    yield Paragraph("Controversiality of the triplets, in nats:")
    yield Table(("model", "model", "triplets", "least", "mean", "greatest"), rows, texts=2)


def _search_rules(record: dict[str, object]) -> list[Text]:
    """Rules that a search had to keep, as its record tells."""
    searches = record.get("restarts")
    rules: list[Text] = [
        f"Recipe {record['recipe']}, seed {record['seed']}; searches of a sentence: {searches}."
    ]
    wishes = {
        "capitals": "Capitalised words that are not names stand only at the beginning.",
        "plausible": "No sentence is rarer than the quantile {} of natural ones with as many "
        "words, under the model that accepts it.",
        "fluency": "A further model gives every sentence {} nats or more.",
        "max_changes": "{} words may differ from the natural sentence's.",
        "same_length": "The number of characters differs by {} at most.",
        "word_cap": "A word stands in {} sentences at most.",
        "fix": "Left as they are: {}.",
        "allow": "Only these words may be put in: {}.",
        "exclude": "These words stand in no sentence: {}.",
    }
    for name, sentence in wishes.items():
        value = record.get(name)
        if value is None or (name == "capitals" and value != "rules"):
            continue
        if name == "plausible" and "judge" in record:
            sentence = sentence.replace("the model that accepts it", "a further model")
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        rules.append(sentence.format(value))
    return rules


def _reviews(facts: StudyFacts) -> Iterator[Part]:
    review = facts.review
    if review is None:
        return
    yield Heading("Reviews")
    rows = []
    for reviewer in dict.fromkeys(item.reviewer for item in review.decisions):
        for kind in ItemKind:
            decided = Counter(
                item.decision
                for item in review.decisions
                if item.reviewer == reviewer and item.kind is kind
            )
            if decided:
                numbers = (
                    decided[each] for each in (Decision.KEEP, Decision.REJECT, Decision.NONE)
                )
                rows.append((reviewer, f"{kind}s", *(f"{n:,}" for n in numbers)))
    yield Table(("reviewer", "items", "kept", "rejected", "not decided"), rows, texts=2)
    reasons = Counter(
        item.reason.strip() or "(no reason given)"
        for item in review.decisions
        if item.decision is Decision.REJECT
    )
    if reasons:
        yield Table(("reason of a rejection", "times"), [(r, f"{n:,}") for r, n in reasons.items()])
    disputed = len(review.disagreements)
    yield Paragraph(
        f"{counted(disputed, 'item')} that one reviewer keeps and another rejects"
        + ("; what anybody rejects is rejected." if disputed else ".")
    )
    for path, what in ((PAIRS, "pair"), (SELECTED, "triplet"), (TRIALS, "trial")):
        certificate = facts.certificate(path)
        if certificate.get("reviewed"):
            reviewed = counted(certificate["reviewed"], f"reviewed {what}")
            yield Paragraph(
                f"Of {reviewed}, {certificate['rejected']:,} rejected and "
                f"{certificate['kept']:,} still there after the review; more than "
                f"{certificate['kept_bound']:,} could not stay (proven)."
            )


def _trials(facts: StudyFacts, cite: Citations) -> Iterator[Part]:
    if not facts.trials:
        return
    yield Heading("Trials")
    yield Paragraph(
        f"{counted(len(facts.trials), 'trial')} in {counted(facts.groups, 'group')}; a participant "
        f"sees the {facts.per_group():,} of one group. No group sees a sentence twice. The items: "
        f"{ARCHIVED_RESULTS}/{TRIALS.name}."
    )
    per_condition = Counter(trial.condition for trial in facts.trials)
    rows = [
        (condition, f"{per_condition[condition]:,}", f"{facts.per_group(condition):,}")
        for condition in facts.conditions
    ]
    yield Table(("condition", "trials", "in each group"), rows)
    columns: dict[str, list[int]] = {
        condition: [facts.trials_of_pair(condition, *pair) for pair in facts.model_pairs]
        for condition in facts.conditions
        if condition in CONTROVERSIAL
    }
    if columns:
        yield Paragraph("Trials by condition and pair of models:")
        yield _by_model_pair(facts, columns)
    frequencies = facts.frequencies
    if frequencies is None:
        return
    yield Heading("Length and word frequency")
    yield Paragraph(
        "Distinct sentences of each condition: means, with standard deviations in parentheses. "
        "Frequency is the mean over a sentence's words on the Zipf scale "
        f"({cite('van Heuven et al., 2014')}), counted in {frequencies.source}."
    )
    table = []
    for condition in facts.conditions:
        for kind, sentences in facts.sentences_of(condition).items():
            measures = (
                [float(len(sentence)) for sentence in sentences],
                [float(len(sentence.bare)) for sentence in sentences],
                [frequencies.mean_zipf(sentence) for sentence in sentences],
            )
            cells = (f"{mean(values):.2f} ({deviation(values):.2f})" for values in measures)
            table.append((condition, kind, f"{len(sentences):,}", *cells))
    header = ("condition", "sentence", "number", "words", "characters", "frequency")
    yield Table(header, table, texts=2)


def _participants(facts: StudyFacts) -> Iterator[Part]:
    if not facts.participants:
        return
    yield Heading("Participants")
    simulated = sum(facts.participants.values())
    text = f"{counted(len(facts.responses), 'response')} of "
    text += counted(len(facts.participants), "participant")
    text += f", {simulated:,} of them artificial." if simulated else "."
    yield Paragraph(text)
    if not simulated:
        yield to_fill_in(
            "who took part, how were they recruited and paid, and which ethics committee approved?"
        )


def _exclusions(facts: StudyFacts) -> Iterator[Part]:
    """Everything that was left out anywhere, with reasons and numbers."""
    rows: list[tuple[str, str, int]] = []
    vocabulary, natural = facts.vocabulary_record(), facts.record(NATURAL)
    rows += [("words", reason, n) for reason, n in vocabulary.get("left_out", {}).items()]
    dropped = vocabulary.get("words", {}).get("dropped", 0)
    if dropped:
        unequal = vocabulary.get("same_token_count")
        reason = "not every model knows them" + (
            ", or tokenizers cut them into unequal numbers of tokens" if unequal else ""
        )
        rows.append(("words", reason, dropped))
    rows += [("natural sentences", why, n) for why, n in natural.get("left_out", {}).items()]
    searched: Counter[str] = Counter()
    for pair in facts.record(TRIPLETS).get("pairs", []) if facts.found else []:
        searched.update(pair.get("reasons", {}))
    rows += [("searches of a natural sentence", reason, n) for reason, n in searched.items()]
    alike = Counter(each["reason"] for each in facts.record(TRIPLETS).get("unchanged", []))
    if facts.found:
        rows += [("triplets", reason, n) for reason, n in alike.items()]
    if facts.review is not None:
        rejected = Counter(
            item.kind
            for kind in ItemKind
            for item_id, item in facts.review.of_kind(kind).items()
            if item_id in facts.review.rejected
        )
        rows += [(f"{kind}s", "rejected by a reviewer", n) for kind, n in rejected.items()]
    left_out = facts.analysis.get("left_out", {})
    rows += [("participants", why, n) for why, n in Counter(left_out.values()).items()]
    if rows:
        yield Heading("What was left out")
        table = [(what, reason, f"{number:,}") for what, reason, number in rows]
        yield Table(("what", "because", "number"), table, texts=2)
