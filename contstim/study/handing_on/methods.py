"""A methods section to paste, every number of which is counted, recorded or certified."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.documents import read_text
from contstim.experiments.responses.admission import DEFAULT_RULE, CatchRule
from contstim.models.specifications import parse_specification
from contstim.reporting.report import Bullets, Heading, Paragraph, Report
from contstim.reviews import ItemKind
from contstim.scale import Scale
from contstim.steps.analysis import AnalysisSettings
from contstim.stimuli import CONTROVERSIAL, Condition
from contstim.study.handing_on.datasheet import to_fill_in
from contstim.study.handing_on.facts import mean
from contstim.study.handing_on.model_texts import in_a_row, ngrams_text, score_text, training_text
from contstim.study.handing_on.references import Citations
from contstim.study.places import ANALYSIS, NATURAL, PAIRS, SELECTED, TRIALS, TRIPLETS
from contstim.study.study import embedded_text
from contstim.version import __version__
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.reporting.report import Part
    from contstim.stimuli import Pair, Triplet
    from contstim.study.handing_on.facts import StudyFacts

_PAGES = {"jspsych", "jatos"}
"""Platforms on which our own page shows the trials."""
_COMPARED = {
    Condition.NATURAL_CONTROVERSIAL: "two natural sentences about which two models disagree",
    Condition.NATURAL_SYNTHETIC: "a natural sentence and a synthetic one made of it",
    Condition.SYNTHETIC_SYNTHETIC: "the two synthetic sentences of a triplet",
    Condition.RANDOM_NATURAL: "two natural sentences drawn at random",
    Condition.CATCH: "a natural sentence and its own words shuffled",
}


def methods(facts: StudyFacts) -> Report:
    """The methods section; the current folder is the study's.

    Args:
        facts: of the study.
    """
    cite = Citations()
    exports = facts.study.exports
    parts: list[Part] = []
    for heading, sentences in (
        ("Models and materials", [*filter(None, _models(facts, cite)), *_words(facts)]),
        ("Natural pairs", [*_pairs(facts, cite)]),
        ("Synthetic sentences", [*_triplets(facts, cite)]),
        ("Reviews", [*_reviews(facts)]),
        ("Design and procedure", [*_design(facts, cite)]),
        ("Participants", [*_participants(facts)]),
        ("Analysis", [*_analysis(facts, cite)]),
    ):
        if sentences:
            parts += [Heading(heading), Paragraph(" ".join(filter(None, sentences)))]
        if heading == "Participants" and not any(facts.participants.values()):
            parts += [] if sentences else [Heading(heading)]
            parts.append(
                to_fill_in("who took part, how were they recruited and paid, who approved it?")
            )
        if heading == "Models and materials" and _has_texts_or_models(facts):
            parts.append(
                to_fill_in("which texts and models are these, from where, under which licences?")
            )
        if heading == "Design and procedure" and facts.trials and not _PAGES & exports.keys():
            parts.append(to_fill_in("how were trials shown, and what were participants asked?"))
        statistics = ANALYSIS / "methods.md"
        if heading == "Analysis" and facts.analysis and statistics.is_file():
            # What the analysis itself says of its statistics, with references of its own
            paragraphs = read_text(statistics).strip().split("\n\n")
            parts += [Paragraph(text) for text in paragraphs if not text.startswith("#")]
    solver = facts.certificate(PAIRS) or facts.certificate(TRIALS)
    or_tools = str(solver["version"]) if str(solver.get("solver")).startswith("OR-tools") else ""
    return Report(
        f"Methods of {facts.study.title}",
        (*parts, Heading("References"), Bullets(cite.works(or_tools=or_tools))),
    )


def _has_texts_or_models(facts: StudyFacts) -> bool:
    """True if a study uses texts or models that were there before."""
    texts = filter(None, (facts.study.texts.training, facts.study.texts.natural))
    return any(model.training is None for model in facts.study.models) or not all(
        map(embedded_text, texts)
    )


def _models(facts: StudyFacts, cite: Citations) -> Iterator[str]:
    models, texts = facts.study.models, facts.study.texts
    if not models:
        return
    names = in_a_row([model.name for model in models])
    yield (
        f"With contstim {__version__}, sentences were made and chosen about which "
        f"{counted(len(models), 'language model')} ({names}) disagree, after "
        f"{cite.named('Golan et al., 2023')}."
    )
    for text, use in ((texts.training, "train models"), (texts.natural, "find sentences")):
        embedded = embedded_text(text) if text else None
        if embedded:
            yield (
                f"To {use}, {embedded.sentences:,} sentences were drawn from the grammar of "
                "English that is part of contstim."
            )
        elif text:
            yield f"To {use}, the text {Path(text).name} was used."
    for model in models:
        if model.training is not None and model.training.place.text is not None:
            yield f"{model.name} was trained on a text of its own, {model.training.place.text}."
    yield ngrams_text(facts, cite)
    for model in models:
        yield training_text(model)
        if model.training is None and not model.files:
            location = parse_specification(model.specification).location
            yield f"{model.name} is {location} of the Hugging Face hub."
    phrases: dict[str, list[str]] = {}
    for model in models:
        phrases.setdefault(score_text(facts, model, cite), []).append(model.name)
    scores = [f"under {in_a_row(which)} {phrase}" for phrase, which in phrases.items() if phrase]
    if scores:
        yield f"The score of a sentence is {'; '.join(scores)}."


def _words(facts: StudyFacts) -> Iterator[str]:
    record = facts.vocabulary_record()
    if record:
        words = record["words"]
        yield (
            f"Words that occur {record['min_count']:,} times or more in the training text made a "
            f"vocabulary of {words['initial']:,} words for the beginning of sentences and "
            f"{words['inner']:,} for other places."
        )
    if facts.natural:
        lengths = sorted({len(sentence) for sentence in facts.natural})
        span = f"{lengths[0]}" if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
        left_out = facts.record(NATURAL).get("left_out", {})
        why = ""
        if left_out:
            reasons = "; ".join(f"{reason}: {n:,}" for reason, n in left_out.items())
            why = f" after {sum(left_out.values()):,} were left out ({reasons})"
        yield f"There were {len(facts.natural):,} natural sentences of {span} words{why}."


def _pairs(facts: StudyFacts, cite: Citations) -> Iterator[str]:
    if not facts.pairs:
        return
    certificate = facts.certificate(PAIRS)
    below = "a low rank" if certificate.get("agreeing", True) else "a low rank, below the median,"
    yield (
        f"{counted(len(facts.pairs), 'pair')} of natural sentences, {_each_pair(facts.pairs)}, "
        f"were selected on which two models disagree most: the sentence that a model rejects has "
        f"{below} under it and one from the median on under the other (Eq. 5 of "
        f"{cite('Golan et al., 2023')}). No sentence stands in two pairs."
    )
    agreed = len(facts.record(PAIRS).get("not_controversial", []))
    if agreed:
        yield (
            f"In {agreed:,} of them both models prefer the same sentence: the least controversial "
            "of the best."
        )
    if certificate:
        yield (
            f"By this criterion no other selection is better ({_proof(certificate, cite)})."
            if certificate["status"] == "optimal"
            else f"How far it may be from the best is known ({_proof(certificate, cite)})."
        )


def _each_pair(items: Sequence[Pair | Triplet]) -> str:
    """`6 for each of 3 pairs of models`, where the numbers are equal; else least and most."""
    counts = Counter(frozenset((item.model_1, item.model_2)) for item in items)
    least, most = min(counts.values()), max(counts.values())
    number = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f"{number} for each of {counted(len(counts), 'pair')} of models"


def _proof(certificate: dict[str, object], cite: Citations) -> str:
    solver = str(certificate["solver"])
    work = "Perron & Furnon" if solver.startswith("OR-tools") else "Huangfu & Hall, 2018"
    name = solver.split(maxsplit=1)[0] if solver.startswith("OR-tools") else "HiGHS"
    return (
        f"objective {certificate['objective']:.6g}, proven bound {certificate['bound']:.6g}; "
        f"{name}, {cite(work)}"
    )


def _triplets(facts: StudyFacts, cite: Citations) -> Iterator[str]:
    record = facts.record(TRIPLETS)
    if not facts.found or not record:
        return
    yield (
        "Synthetic sentences were made of natural ones by replacing words one at a time, to make "
        "the sentence as unlikely under one model as the search could, while it was to be no less "
        f"likely than the natural one under another ({cite('Golan et al., 2023')}; recipe "
        f"{record['recipe']} of contstim, seed {record['seed']})."
    )
    if record.get("plausible") is not None:
        judge = "a further model" if "judge" in record else "the model that accepts it"
        yield (
            f"No sentence was to be rarer than the quantile {record['plausible']:g} of natural "
            f"sentences with as many words, under {judge}."
        )
    if record.get("word_cap"):
        yield f"No word was to stand in more than {record['word_cap']:,} sentences."
    if record.get("max_changes"):
        yield f"At most {counted(record['max_changes'], 'word')} of a sentence were replaced."
    searched = record.get("pairs", [])
    yield (
        f"This gave {counted(len(facts.found), 'triplet')} of a natural and two synthetic "
        f"sentences, {_each_pair(facts.found)}."
    )
    passed = sum(pair.get("inadmissible", 0) for pair in searched)
    unchanged = sum(pair.get("unchanged", 0) for pair in searched)
    if passed:
        reasons: Counter[str] = Counter()
        for pair in searched:
            reasons.update(pair.get("reasons", {}))
        why = "; ".join(f"{reason}: {number:,}" for reason, number in reasons.items())
        yield (
            f"A natural sentence was passed over {counted(passed, 'time')} because it could not be "
            f"used ({why})."
        )
    if unchanged:
        was = "was" if unchanged == 1 else "were"
        yield (
            f"{counted(unchanged, 'triplet')} {was} left out because the search made no new "
            "sentence, or the same one twice."
        )
    certificate = facts.certificate(SELECTED)
    if facts.selected and certificate:
        drop = mean([triplet.controversiality for triplet in facts.selected])
        wish = (
            "the greatest sum of both drops in log-probability"
            if certificate["question"]["objective"] == "controversiality"
            else "the least sum of worst ranks of both drops in log-probability"
        )
        quantiles = certificate["question"]["quantiles"]
        spread = (
            f", equally many from each of {quantiles} quantiles of the natural "
            "sentence's probability under either model"
            if quantiles
            else ""
        )
        yield (
            f"Of these, {len(facts.selected):,} were selected ({_each_pair(facts.selected)}) with "
            f"{wish}{spread} ({_proof(certificate, cite)}). The drops of a triplet sum to "
            f"{drop:.1f} nats on average."
        )


def _reviews(facts: StudyFacts) -> Iterator[str]:
    review = facts.review
    if review is None:
        return
    reviewers = len({item.reviewer for item in review.decisions})
    parts = []
    for kind in ItemKind:
        items = review.of_kind(kind)
        if items:
            rejected = sum(item_id in review.rejected for item_id in items)
            parts.append(f"{rejected:,} of {counted(len(items), kind)}")
    yield (
        f"{counted(reviewers, 'reviewer')} looked at the items and rejected {in_a_row(parts)}; "
        "others took their places."
    )


def _design(facts: StudyFacts, cite: Citations) -> Iterator[str]:
    if not facts.trials:
        return
    parts = []
    for condition in facts.conditions:
        pairs = len({(t.model_1, t.model_2) for t in facts.trials if t.condition is condition})
        of_models = f" for {counted(pairs, 'pair')} of models" if condition in CONTROVERSIAL else ""
        number = facts.per_group(condition)
        parts.append(f"{_COMPARED[condition]} ({counted(number, 'trial')}{of_models})")
    yield (
        f"{counted(len(facts.trials), 'trial')} were shared out to "
        f"{counted(facts.groups, 'group')} of participants, so that each participant sees "
        f"{counted(facts.per_group(), 'trial')} and no sentence twice. They compare "
        f"{'; '.join(parts)}."
    )
    if _PAGES & facts.study.exports.keys():
        yield (
            "Both sentences are shown together, without full stops, on a web page (jsPsych). The "
            "order of trials is drawn for each participant, and in each condition either sentence "
            "stands first in half of the trials, as far as their number allows. Participants say "
            "which sentence they are more likely to come across, and how sure they are, on a "
            "scale of six points."
        )
    frequencies = facts.frequencies
    if frequencies is not None:
        shown = [s for trial in facts.trials for s in (trial.sentence_1, trial.sentence_2)]
        distinct = list(dict.fromkeys(shown))
        yield (
            f"The {len(distinct):,} distinct sentences have "
            f"{mean([float(len(s)) for s in distinct]):.1f} words and "
            f"{mean([float(len(s.bare)) for s in distinct]):.1f} characters on average, and a mean "
            f"word frequency of {mean([frequencies.mean_zipf(s) for s in distinct]):.2f} on the "
            f"Zipf scale ({cite('van Heuven et al., 2014')}), counted in {frequencies.source}."
        )


def _participants(facts: StudyFacts) -> Iterator[str]:
    people = facts.participants
    if not people:
        return
    simulated = sum(people.values())
    answer = "choice" if facts.scale is Scale.CHOICE else "rating"
    if simulated == len(people):
        yield (
            f"No person took part: all {counted(len(people), 'participant')} were simulated, who "
            f"gave {counted(len(facts.responses), answer)}."
        )
    elif simulated:
        yield (
            f"Of {counted(len(people), 'participant')}, {simulated:,} were simulated and are not "
            "people."
        )
    else:
        yield (
            f"{counted(len(people), 'participant')} gave {counted(len(facts.responses), answer)}."
        )
    if facts.analysis:
        left_out: dict[str, str] = facts.analysis.get("left_out", {})
        reasons = Counter(left_out.values())
        why = "; ".join(f"{reason}: {number:,}" for reason, number in reasons.items())
        yield (
            f"{counted(len(left_out), 'participant')} "
            f"{'was' if len(left_out) == 1 else 'were'} left out ({why}), "
            if left_out
            else "Nobody was left out, "
        ) + f"and {facts.analysis['participants']:,} were analysed."


def _analysis(facts: StudyFacts, cite: Citations) -> Iterator[str]:
    if not facts.analysis:
        yield from planned_analysis(facts, cite)
    # Else the analysis itself says what it did, in a text of its own
    elif catch := catch_sentence(facts):
        yield catch


def planned_analysis(facts: StudyFacts, cite: Citations) -> Iterator[str]:
    """Sentences on the planned comparison of responses with the models, as the study file says.

    Args:
        facts: of the study.
        cite: notes the works that the sentences cite.
    """
    settings = facts.study.sections.get("analysis")
    if not isinstance(settings, AnalysisSettings) or not facts.trials:
        return
    is_choice = facts.scale is Scale.CHOICE
    where = "Methods" if is_choice else "Eqs. 7-11 and Methods"
    measured = (
        "How sure people are is not asked,"
        if is_choice
        else "The signed-rank cosine also compares how sure model and person are of the same "
        "trials,"
    )
    yield (
        "A model predicts a choice if the chosen sentence has the higher log-probability under it; "
        f"a tie counts one half. {measured} and noise ceilings say how well people predict one "
        f"another ({where} of {cite('Golan et al., 2023')})."
    )
    tests = []
    if settings.units != "crossed":
        of = "participants, for these very items" if settings.units == "participants" else "groups"
        tests.append(f"Wilcoxon's two-sided signed-rank test ({cite('Wilcoxon, 1945')}) over {of}")
    if settings.units in ("auto", "crossed"):
        where = "where groups are too few or share items, " if tests else ""
        tests.append(
            f"{where}by a two-sided t-test that takes people and items as crossed random factors "
            f"({cite('Schütt et al., 2023')})"
        )
    yield f"Models will be compared by {' or, '.join(tests).removeprefix('by ')}."
    rate = (
        f"a family-wise error rate of {settings.fdr:g} ({cite('Holm, 1979')})"
        if settings.correction == "holm"
        else f"a false-discovery rate of {settings.fdr:g} ({cite('Benjamini & Hochberg, 1995')})"
    )
    yield (
        f"P-values will be adjusted for {rate} over all contrasts of a "
        "measure on one kind of trials."
    )
    yield (
        f"Differences below {settings.smallest_effect:g} are taken not to matter: two one-sided "
        f"t-tests ({cite('Schuirmann, 1987')}), adjusted likewise, will say which are smaller."
    )
    if settings.intervals == "corrected":
        yield (
            "Intervals at 95 % will be Student's t with the variance of two factors, new people "
            f"and new items ({cite('Schütt et al., 2023')})."
        )
    elif settings.bootstrap:
        yield (
            f"Intervals at 95 % will be percentiles of {settings.bootstrap:,} bootstrap resamples "
            f"of both participants and trials ({cite('Efron, 1979')})."
        )


def catch_sentence(facts: StudyFacts) -> str:
    """Who is left out for catch trials; empty in a study without them."""
    number = facts.per_group(Condition.CATCH)
    settings = facts.study.sections.get("analysis")
    if not number:
        return ""
    least = settings.min_catch if isinstance(settings, AnalysisSettings) else None
    needed = (DEFAULT_RULE if least is None else CatchRule(number=least)).required(number)
    return (
        f"Participants who did not rate all trials of their group, or had fewer than {needed} of "
        f"{counted(number, 'catch trial')} right, were left out."
    )
