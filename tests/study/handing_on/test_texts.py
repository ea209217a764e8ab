"""Datasheet, methods and preregistration.

Witness: each number is counted from the csv files.
"""

import json
import math
import re
from collections import Counter
from contextlib import chdir
from dataclasses import fields, replace
from pathlib import Path
from statistics import fmean, stdev

import pytest

from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.run import analyze
from contstim.experiments.platforms.jspsych.study import PageSettings
from contstim.experiments.responses import questionnaire
from contstim.experiments.responses.admission import Exclusions
from contstim.experiments.responses.table import UNRATED
from contstim.items.reviews import Decision, undecided_items, write_review
from contstim.items.scale import Scale
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Kind, read_pairs, read_trials
from contstim.optimization.jobs.question import SearchQuestion
from contstim.reporting.templates import works, works_in
from contstim.steps.analysis import analysis_facts
from contstim.steps.platforms import export_step
from contstim.study.handing_on.archive import _psych_ds
from contstim.study.handing_on.facts import StudyFacts
from contstim.study.handing_on.texts import datasheet, methods, preregistration
from contstim.study.study import PAGE, StudyStage
from contstim.study.study_file import read_study
from contstim.testing.platform import read_csv_rows
from tests.study.small import change, run, set_reviews

pytestmark = pytest.mark.slow

Row = dict[str, str]
SCORES = "results/trial-scores.csv"


@pytest.fixture(scope="module")
def results(done_study: Path) -> Path:
    return done_study / "results"


Texts = tuple[str, str, str]


@pytest.fixture(scope="module")
def texts(done_study: Path) -> Texts:
    """The datasheet, the methods and the preregistration of the small study."""
    with chdir(done_study):
        return write_texts(read_facts())


@pytest.fixture
def sheet(texts: Texts) -> str:
    return texts[0]


@pytest.fixture
def section(texts: Texts) -> str:
    return texts[1]


@pytest.fixture
def draft(texts: Texts) -> str:
    return texts[2]


@pytest.fixture
def study(study: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the small study, which is the current folder."""
    monkeypatch.chdir(study)
    return study


def read_facts() -> StudyFacts:
    """Read the facts of the study in the current folder."""
    return StudyFacts(read_study("study.toml"))


@pytest.fixture
def facts(done_study: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFacts:
    """Facts of the small study, whose folder is the current one; tests must not change files."""
    monkeypatch.chdir(done_study)
    return read_facts()


def write_texts(facts: StudyFacts) -> Texts:
    """Return the datasheet, the methods and the preregistration."""
    datasheet_text, methods_text, preregistration_text = (
        write(facts).markdown() for write in (datasheet, methods, preregistration)
    )
    return datasheet_text, methods_text, preregistration_text


def join_lines(text: str) -> str:
    return " ".join(text.split())


def read_rows(text: str, *header: str) -> list[list[str]]:
    """Return the rows of the Markdown table with this header."""
    head = f"| {' | '.join(header)} |"
    assert text.count(head) == 1, head
    lines = text.split(head)[1].split("\n\n")[0].strip().split("\n")[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def strip_end_mark(sentence: str) -> str:
    return sentence.rstrip(".?!")


def count_pairs(items: list[Row]) -> int:
    """Count the items that compare the only two models of the study."""
    return sum({item["model_1"], item["model_2"]} == {"bigram", "unigram"} for item in items)


def test_datasheet_counts_items_by_condition_and_models(sheet: str, results: Path) -> None:
    trials = read_csv_rows(results / "trials.csv")
    conditions = dict.fromkeys(trial["condition"] for trial in trials)
    n_trials = Counter(trial["condition"] for trial in trials)
    n_in_group = Counter(trial["condition"] for trial in trials if trial["group"] == "1")
    assert sorted(read_rows(sheet, "condition", "trials", "in each group")) == sorted(
        [c, str(n_trials[c]), str(n_in_group[c])] for c in conditions
    )
    kinds = ("natural-controversial", "natural-synthetic", "synthetic-synthetic")
    pair, total = read_rows(sheet, "model", "model", *kinds)
    assert set(pair[:2]) == {"bigram", "unigram"}
    counts = [str(count_pairs([t for t in trials if t["condition"] == c])) for c in kinds]
    assert pair[2:] == total[2:] == counts
    pairs = read_rows(sheet, "model", "model", "pairs")
    assert pairs[0][2] == str(count_pairs(read_csv_rows(results / "pairs.csv")))


def test_datasheet_counts_triplets_and_controversiality(sheet: str, results: Path) -> None:
    selected = read_csv_rows(results / "selected.csv")
    match = re.search(r"\| model \| model \| triplets \|[^\n]*selected \|\n[^\n]*\n([^\n]*)", sheet)
    assert match is not None
    cells = [cell.strip() for cell in match[1].strip("|").split("|")]
    n_triplets = len(read_csv_rows(results / "triplets.csv"))
    assert (cells[2], cells[-1]) == (str(n_triplets), str(len(selected)))
    # Eq. 4: the drop in log-probability of each model for the sentence that it rejects
    drops = [
        sum(
            float(row[f"log_prob_natural_model_{n}"])
            - float(row[f"log_prob_synthetic_{n}_model_{n}"])
            for n in (1, 2)
        )
        for row in selected
    ]
    (line,) = read_rows(sheet, "model", "model", "triplets", "minimum", "mean", "maximum")
    assert line[3:] == [f"{value:.2f}" for value in (min(drops), fmean(drops), max(drops))]


LENGTHS = ("condition", "sentence", "number", "words", "characters", "frequency")


def test_datasheet_reports_lengths_and_frequencies(sheet: str, results: Path) -> None:
    text = (results.parent / "corpus.txt").read_text(encoding="utf-8").splitlines()
    counts = Counter(word.lower() for sentence in text for word in strip_end_mark(sentence).split())
    millions = (counts.total() + len(counts)) / 1e6

    def zipf(sentence: str) -> float:  # van Heuven et al. (2014), Laplace's rule
        words = strip_end_mark(sentence).lower().split()
        return fmean(math.log10((counts[word] + 1) / millions) + 3 for word in words)

    sentences: dict[tuple[str, str], set[str]] = {}
    for trial in read_csv_rows(results / "trials.csv"):
        for side in "12":
            key = (trial["condition"], trial[f"kind_{side}"])
            sentences.setdefault(key, set()).add(trial[f"sentence_{side}"])
    lines = read_rows(sheet, *LENGTHS)
    reported = {(line[0], line[1]): line[2:] for line in lines}
    assert reported.keys() == sentences.keys()
    for key, texts in sentences.items():
        measures = (
            [float(len(strip_end_mark(sentence).split())) for sentence in texts],
            [float(len(strip_end_mark(sentence))) for sentence in texts],
            [zipf(sentence) for sentence in texts],
        )
        cells = [f"{fmean(values):.2f} ({stdev(values):.2f})" for values in measures]
        assert reported[key] == [str(len(texts)), *cells], key


def test_texts_count_words_in_the_same_corpus(sheet: str, section: str, results: Path) -> None:
    summary = (results / "trials.csv.summary.md").read_text(encoding="utf-8")
    for page in (sheet, section, summary):
        assert "counted in corpus.txt" in page
    # Sentences of catch trials occur once, so their mean equals the mean over trials
    lines = read_rows(sheet, *LENGTHS)
    (sheet_value,) = (line[-1] for line in lines if line[:2] == ["catch", "natural"])
    lines = read_rows(summary, "condition", "measure", "sentence_1", "sentence_2", "difference")
    (summary_value,) = (line[2] for line in lines if line[0] == "catch" and "Zipf" in line[1])
    assert float(sheet_value.split()[0]) == pytest.approx(float(summary_value), abs=0.006)


def test_datasheet_reports_exclusions_and_reasons(sheet: str, results: Path) -> None:
    lines = read_rows(sheet, "excluded", "reason", "number")
    excluded = {(kind, reason): int(number.replace(",", "")) for kind, reason, number in lines}
    dropped = read_csv_rows(results / "vocabulary.txt.dropped.csv")
    # The table of the vocabulary lists every excluded word with its reason
    word_reasons = {reason for kind, reason in excluded if kind == "words"}
    assert word_reasons <= {row["reason"] for row in dropped}
    texts = [line for line in (results.parent / "more.txt").read_text().splitlines() if line]
    natural_texts = (results / "natural.txt").read_text().splitlines()
    n_excluded = sum(n for (kind, _), n in excluded.items() if kind == "natural sentences")
    assert n_excluded <= len(texts) - len(natural_texts)
    assert f"{len(natural_texts):,} natural sentences" in sheet


def test_methods_report_the_numbers_of_the_tables(section: str, results: Path) -> None:
    trials, pairs = read_csv_rows(results / "trials.csv"), read_csv_rows(results / "pairs.csv")
    groups = {trial["group"] for trial in trials}
    n_seen = sum(trial["group"] == "1" for trial in trials)
    sentences = {trial[f"sentence_{side}"] for trial in trials for side in "12"}
    characters = fmean(len(strip_end_mark(sentence)) for sentence in sentences)
    responses = read_csv_rows(results / "responses.csv")
    participants = {row["participant"] for row in responses}
    vocabulary = (results / "vocabulary.txt").read_text().split("[inner]")
    initial = len(vocabulary[0].split("[initial]")[1].split())
    n_triplets, n_selected = (
        len(read_csv_rows(results / f"{name}.csv")) for name in ("triplets", "selected")
    )
    arpa = (results / "models" / "bigram.arpa").read_text()
    ngrams = " + ".join(f"{int(n):,}" for n in re.findall(r"ngram \d=(\d+)", arpa))
    for sentence in (
        f"{len(trials)} trials were assigned to {len(groups)} groups of participants. "
        f"Each participant completes {n_seen} trials",
        f"The {len(sentences)} distinct sentences have 8.0 words and {characters:.1f} characters",
        f"We selected {len(pairs)} pairs of natural sentences",
        f"all {len(participants)} participants are artificial. They gave {len(responses)} ratings",
        f"vocabulary contains {initial} words for the first position",
        f"The searches yielded {n_triplets} triplets",
        f"From the {n_triplets} triplets, we selected {n_selected} (",
        "the fewest new words whose part of speech differs",
        "at least 1 nats below that of the natural sentence.",
        f"({ngrams} n-grams)",
        "At most 2 words of a sentence are replaced.",
    ):
        assert sentence in section, sentence
    # No sentence occurs in two pairs
    sides = Counter(pair[f"sentence_{side}"] for pair in pairs for side in "12")
    assert max(sides.values()) == 1


def test_unsuccessful_searches_are_counted_by_reason(
    facts: StudyFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reason names the model for which a search failed; the texts count without names."""
    reasons = [f"few new words do not reach 5 nats where kenlm:{n}.arpa rejects" for n in "ab"]
    record = {"unchanged": [{"reason": reason} for reason in reasons]}
    monkeypatch.setattr(facts, "record", lambda _: record)
    assert facts.skipped == {"unsuccessful search, few new words do not reach 5 nats": 2}


def test_texts_report_equal_families(section: str, draft: str, study: Path, results: Path) -> None:
    """Witness: rows of the table of comparisons, counted by measure and kind of trials."""
    tests = read_csv_rows(results / "analysis" / "tables" / "comparisons.csv")
    families = Counter((test["scope"], test["measure"]) for test in tests)
    (size,) = {*families.values()}
    (study / "results" / "analysis" / "report.html.meta.json").unlink()
    facts = read_facts()
    assert facts.contrast_families == {(size, 1): len(families)}
    assert len(facts.contrasts) == size
    plan_methods = methods(facts).markdown()
    for text in (section, draft, plan_methods):
        assert f"{size} contrasts" in text
        assert f"in each of {len(families)} families, {len(tests)} tests in total" in text


def test_texts_report_every_setting_of_the_search(study: Path) -> None:
    path = study / "results" / "triplets.csv.meta.json"
    record = json.loads(path.read_text())
    numbers = {"same_length": 11, "same_frequency": 0.375, "max_changes": 13}
    numbers |= {"judge_drop": 8.125, "judge_error": 1.25, "enough": 4.75}
    words = {name: [f"{name}word"] for name in ("fix", "exclude")}
    record |= numbers | words | {"frame": "words", "tags": "tags.csv"}
    record |= {"capitals": "rules", "judge": {"examiner": {}}, "restarts": "23"}
    path.write_text(json.dumps(record))
    *texts, _ = write_texts(read_facts())
    # A new setting of searches must be listed here and in both texts
    other_settings = {"seed", "recipe", "restarts", "per_pair", "allow_unknown", "max_scored"}
    listed = {*record} | other_settings
    assert {field.name for field in fields(SearchQuestion)} <= listed
    values = (*map(str, numbers.values()), "examiner", "tags.csv", "23")
    for value in (*values, "Capitalised words", "part of speech", *(w for (w,) in words.values())):
        assert all(value in text for text in texts), value


def test_texts_omit_rules_disabled_by_every_line(study: Path, sheet: str) -> None:
    assert "contain at most 1 name." in sheet
    (study / "blocked.txt").write_text("machine\n", encoding="utf-8")
    change(study, ('words = "8"', 'words = "8"\nblocked = "blocked.txt"'))
    assert "blocked.txt" in datasheet(read_facts()).markdown()
    change(study, ('words = "8"', 'words = "8"\nevery_line = true'))
    for text in write_texts(read_facts())[:2]:
        assert "sentences have 8 words.\n" in text or "sentences have 8 words. " in text
        assert "blocked.txt" not in text


def test_draft_says_that_groups_share_instructions(facts: StudyFacts, draft: str) -> None:
    assert "instructions in catch trials" not in draft
    facts.trials = [
        replace(trial, kind_1=Kind.INSTRUCTION) if trial.condition is Condition.CATCH else trial
        for trial in facts.trials
    ]
    assert "instructions in catch trials are the same" in preregistration(facts).markdown()


def test_models_with_unknown_training_text_are_named(study: Path, sheet: str, section: str) -> None:
    for text in (sheet, section):
        assert "unknown" not in text
    (study / "bigram.arpa").write_bytes((study / "results/models/bigram.arpa").read_bytes())
    change(study, ('{ train = "ngram", order = 2 }', '"kenlm:bigram.arpa"'))
    for name in ("scores", "triplets"):
        path = study / "results" / f"{name}.csv.meta.json"
        record = json.loads(path.read_text())
        record["training_text"]["bigram"] = None
        path.write_text(json.dumps(record))
    facts = read_facts()
    *texts, _ = write_texts(facts)
    assert facts.unknown_training_texts == ["bigram"]
    assert all("The training text of bigram is unknown" in text for text in texts)
    header = ("model", "natural sentences", "in its training text")
    assert read_rows(texts[0], *header) == [["bigram", "–", "unknown"], ["unigram", "49", "0"]]


def test_methods_include_those_of_the_analysis(section: str, results: Path) -> None:
    paragraphs = (results / "analysis" / "methods.md").read_text(encoding="utf-8").split("\n\n")
    for paragraph in paragraphs[1:-1]:  # without the references, which the section lists
        # Compare without Markdown signs
        assert re.sub(r"[\\*\n]", "", paragraph) in re.sub(r"[\\*\n]", "", section)


def test_only_works_that_apply_are_cited(section: str) -> None:
    body, references = section.split("## References")
    for author, year, reference in works():
        is_cited = re.search(rf"{author}[^;]{{0,25}}{year}", body) is not None
        assert is_cited == (reference[:30] in references), reference
    # No masked model takes part
    assert "Salazar" not in section
    assert "Kauf" not in section
    assert "Chen & Goodman, 1999" in body


def test_texts_without_participants_contain_questions(study: Path) -> None:
    change(
        study,
        ('[simulate]\nmodel = "bigram"\nparticipants = 12\n', ""),
        ("[analyze]\nworst = 4\n", ""),
        ("[select.natural]\nper_pair = 3\n", ""),
    )
    page, text, draft = write_texts(read_facts())
    # Neither old tables of removed stages, nor statements about participants
    for absent_text in ("simulated", "Natural pairs", "Wilcoxon", "artificial"):
        assert absent_text not in text + page, absent_text
    assert "To fill in: who took part" in text
    assert "Registration prior to creation of data." in draft
    assert "The study file has no section" in draft


def test_exclusion_rules_are_preregistered_in_order(study: Path) -> None:
    rules = """[analyze]
min_median_rt = 800
max_away = 90
participants = "people.csv"
require = ["first_language=English"]
partial = true
"""
    change(study, ("[analyze]\n", rules))
    (study / "people.csv").write_text("participant,first_language\n")
    draft = preregistration(read_facts()).markdown()
    assert (
        "excluded, in this order, and counted: a median reaction time below 800 ms; "
        "absences from the page above 90 s in all; first_language other than English."
    ) in join_lines(draft)
    assert "is anybody else left out" not in draft


@pytest.mark.parametrize("limit", ["", "max_missing = 0.2\n"])
@pytest.mark.parametrize("partial", ["", "partial = true\n"])
def test_unfinished_participants_are_preregistered(study: Path, limit: str, partial: str) -> None:
    change(study, ("[analyze]\n", f"[analyze]\n{limit}{partial}"))
    draft = join_lines(preregistration(read_facts()).markdown())
    assert ("Ratings of incomplete sessions are included in regressions" in draft) == bool(partial)
    assert ("Incomplete sessions are not analysed." in draft) == (not partial)
    assert ("left at most 20 % of them unanswered" in draft) == bool(limit)
    assert ("the participant rated every trial of the group." in draft) == (not limit)
    assert ("did not rate at least 80 % of the trials of their group" in draft) == bool(limit)


def test_figures_belong_to_the_named_triplets(study: Path) -> None:
    """Witness: the records. Figures of all triplets never replace those of selected ones."""
    selected, pool = (study / "results" / f"{n}.csv.meta.json" for n in ("selected", "triplets"))
    assert "Figures of the selected triplets:" in (study / PAGE).read_text(encoding="utf-8")
    record = json.loads(selected.read_text())
    assert read_facts().figures == record.pop("figures")
    selected.write_text(json.dumps(record))
    assert read_facts().figures == {}
    Path("results/selected.csv").unlink()
    assert read_facts().figures == json.loads(pool.read_text())["figures"]


def test_datasheet_of_a_selection_without_threshold(study: Path) -> None:
    path = study / "results" / "selected.csv.certificate.json"
    certificate = json.loads(path.read_text())
    del certificate["question"]["enough"], certificate["question"]["tags"]
    path.write_text(json.dumps(certificate))
    page = datasheet(read_facts()).markdown()
    assert "nats below that of the natural sentence" not in page


def test_reviews_are_counted(study: Path) -> None:
    pairs = read_pairs(study / "results" / "pairs.csv")
    first, *others = undecided_items(pairs, "Ann")
    decisions = [replace(first, decision=Decision.REJECT, reason="odd")]
    decisions += [replace(item, decision=Decision.KEEP) for item in others]
    write_review(study / "review.csv", decisions)
    set_reviews(study, ["review.csv"])
    run(study, last="select natural")
    page, text, _ = write_texts(read_facts())
    assert read_rows(page, "reviewer", "items", "kept", "rejected", "undecided") == [
        ["Ann", "pairs", str(len(pairs) - 1), "1", "0"]
    ]
    assert read_rows(page, "reason for rejection", "times") == [["odd", "1"]]
    assert ["pairs", "rejected by a reviewer", "1"] in read_rows(
        page, "excluded", "reason", "number"
    )
    assert f"1 reviewer inspected the items and rejected 1 of {len(pairs)} pairs" in text


# OSF Preregistration, version 3 of its schema: pages, and questions in their order
FIELDS = """
Study information: Title, Authors, Hypotheses
Design plan: Study type, Blinding, Is there any additional blinding in this study?, Study design,
  Randomization
Sampling plan: Existing data, Explanation of existing data, Data collection procedures, Sample size,
  Sample size rationale, Stopping rule
Variables: Manipulated variables, Measured variables, Indices
Analysis plan: Statistical models, Transformations, Inference criteria, Data exclusion,
  Missing data, Exploratory analysis
Other: Other
"""


def test_draft_fills_all_fields_of_the_template(draft: str) -> None:
    pages = re.split(r"^## ", draft, flags=re.MULTILINE)[1:]
    fields = []
    for page in pages:
        name, *questions = re.split(r"^### ", page, flags=re.MULTILINE)
        answers = dict(question.split("\n", 1) for question in questions)
        assert all(answer.strip() for answer in answers.values())
        fields.append(f"{name.strip()}: {', '.join(answers)}")
    assert join_lines(" ".join(fields)) == join_lines(FIELDS)


def test_draft_reports_sample_size_and_power(draft: str, results: Path) -> None:
    assert "6 participants: 2 in each of 3 groups." in draft
    sizes = read_csv_rows(results / "trials.csv.power-sizes.csv")
    planned = next(row for row in sizes if row["scope"] == "overall")
    assert (planned["groups"], planned["participants_per_group"]) == ("3", "2")
    for rate in (
        *("first_low", "first_high", "significantly_better_low", "significantly_better_high"),
        "shows_equivalence",
    ):
        assert f"{100 * float(planned[rate]):.1f} %" in draft
    assert f"a difference of {float(planned['detectable_difference']):.3f} in accuracy" in draft
    # By default the design determines the units; 3 groups are too few for other tests
    assert "compared by a two-sided t-test" in draft
    assert "Wilcoxon" not in draft
    assert "the variance of two crossed random factors" in draft
    assert "the false discovery rate at 0.05 (Benjamini & Hochberg, 1995)" in draft
    # 1 pair of models, and 2 models against the ceiling
    assert "3 contrasts will be tested" in draft


def test_methods_summarize_answers_of_analysed_participants(study: Path) -> None:
    header = "name,when,kind,question,options\n"
    question_table = header + "age,before,number,Age?,18|99\nremarks,after,text,Anything?,\n"
    question_table += "task,check,choice,What?,a|*b\n"
    (study / "asked.csv").write_text(question_table)
    parsed = read_study("study.toml")
    step = export_step("jspsych")
    assert step is not None
    settings = PageSettings(questions=Path("asked.csv"), deadline=9, break_every=5)
    trials, out = Path("results/trials.csv"), Path("results/export/jspsych")
    export = step(trials=trials, out=out, settings=settings)
    stage = StudyStage("export jspsych", "", export, ("export", "jspsych"))
    facts = StudyFacts(replace(parsed, stages=(*parsed.stages, stage)))
    first, second, third = [*facts.participants][:3]
    facts.participants = {first: False, second: False, third: True}
    facts.analysis = {**facts.analysis, "left_out": {second: "too fast"}}
    ages = zip((first, second, third), ("31", "77", "88"), strict=True)
    answers = [questionnaire.QuestionAnswer(person, "age", age) for person, age in ages]
    remark = questionnaire.QuestionAnswer(first, "remarks", "I am Ann")
    responses = facts.path("responses")
    assert responses is not None
    questionnaire.write_answers(questionnaire.questions_beside(responses), [*answers, remark])
    assert facts.questions == ["age: mean 31.0, 31 to 31"]
    _, methods_text, registration = write_texts(facts)
    files = _psych_ds(facts, study / "psych-ds")
    (answers_path,) = (path for name, path in files.items() if "answers" in name)
    rows = [(row["question"], row["answer"]) for row in read_csv_rows(answers_path)]
    assert rows == [("age", "31"), ("age", "77"), ("age", "88")]
    assert "Participants are asked for: age, remarks." in registration
    for fact in (
        "does not answer within 9 seconds",
        "a break after every 5 trials",
        "Before the instructions, participants are asked for: age. After the last trial, "
        "participants are asked for: remarks. Comprehension questions follow",
        "within 2 attempts cannot take part",
        "Participants reported: age: mean 31.0, 31 to 31.",
    ):
        assert fact in methods_text


def test_texts_of_choices_do_not_mention_confidence(study: Path) -> None:
    change(study, ("groups = 3", 'groups = 3\nscale = "choice"'))
    facts = read_facts()
    draft = preregistration(facts).markdown()
    facts.analysis = {}
    facts.responses = [replace(r, rating=1, scale=Scale.CHOICE) for r in facts.responses]
    section = methods(facts).markdown()
    assert "The choice in each trial" in draft
    assert f"gave {len(facts.responses):,} choices" in section
    assert "do not rate their confidence" in section
    for text in (draft, section):
        assert "onfident" not in text
        assert "osine" not in text


def test_numbers_in_the_methods_are_consistent(facts: StudyFacts) -> None:
    """Two of twelve participants finish early, and a third leaves two trials unrated."""
    first, second, third = [*facts.participants][:3]
    facts.responses = [
        replace(r, rating=UNRATED if (r.participant, r.position) in unrated else r.rating)
        for unrated in [{(third, 2), (third, 5)}]
        for r in facts.responses
        if r.participant not in (first, second) or r.position < 4
    ]
    rules = Exclusions(partial=True, max_missing=0.9, min_catch=0)
    trials, scores = read_trials("results/trials.csv"), ScoreTable.from_file(SCORES)
    analysis = analyze(trials, facts.responses, scores, exclusions=rules, sampling=Sampling())
    facts.analysis = analysis_facts(analysis)
    section = methods(facts).markdown()
    n_responses = len(facts.responses)
    assert f"all 12 participants are artificial. They gave {n_responses - 2} ratings." in section
    reason = "an unfinished session, kept in regressions and mixed models alone: 2"
    expected = f"2 participants were excluded ({reason}). The analysis includes 10 participants."
    assert expected in join_lines(section)


@pytest.mark.parametrize(
    ("scoring", "expected", "citation"),
    [
        ({"family": "classifier"}, "the signed confidence of an acceptability classifier", None),
        ({"rule": "pll-original"}, "itself masked", "Salazar et al., 2020"),
        ({"rule": "pll-word-l2r"}, "the later tokens of its word", "Kauf & Ivanova, 2023"),
        ({"rule": "chain", "sampling": "200 orders"}, "over the orders", "Golan et al., 2023"),
        ({"rule": "chain"}, "each conditioned on the preceding tokens, with", "Golan et al., 2023"),
        ({"rule": "chain-mixture"}, "the log-probability of all tokens, the logarithm of", None),
        ({"order": 5}, "each conditioned on the four preceding words.", None),
        ({"unit": "token"}, "all tokens, each conditioned on the preceding tokens.", None),
        ({"end_scored": True}, "preceding tokens, and of the end of the sentence.", None),
        ({"transform": "mean"}, "preceding tokens, divided by the number of tokens.", None),
        ({"transform": "slor"}, "the number of words (SLOR, P", "Pauls & Klein, 2012"),
    ],
)
def test_methods_describe_scoring_rules_with_sources(
    facts: StudyFacts, scoring: dict[str, object], expected: str, citation: str | None
) -> None:
    defaults: dict[str, object] = {"family": "hf", "rule": "log-likelihood", "unit": "token"}
    defaults |= {"order": None, "transform": "", "end_scored": False, "sampling": ""}
    facts.scorings = [{**defaults, "names": ["a", "*b*"], **scoring}]
    text = methods(facts).markdown().replace("\\", "")
    assert "The score of a sentence under a and *b* is the " in text
    assert expected in text
    assert citation is None or citation in text
    references = text.split("## References")[-1]
    assert citation is None or works_in(citation)[0][:30] in references


@pytest.mark.usefixtures("facts")
def test_names_of_models_are_escaped_in_every_text() -> None:
    """A name, a title and a doubt that would be markup in Markdown and HTML."""
    name = "**x** | `y` <b>z</b>"
    facts = StudyFacts(replace(read_study("study.toml"), title=name))
    facts.names = [name, "unigram"]
    facts.model_pairs = [(name, "unigram")]
    for report in (datasheet(facts, [name]), methods(facts), preregistration(facts)):
        assert report.title.startswith(("Materials of", "Methods of", "Preregistration of"))
        assert name in report.title
        assert "<b>z" not in report.html()
        assert r"\*\*x\*\* | \`y\` \<b>z\</b>" in report.markdown().replace(r"\|", "|")
