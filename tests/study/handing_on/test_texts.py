"""Datasheet, methods and preregistration: each number is counted again here, by plain csv code."""

import csv
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
from contstim.items.scale import Scale
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Kind, read_trials
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
from tests.study.small import change, review_with, run

pytestmark = pytest.mark.slow

Row = dict[str, str]


@pytest.fixture(scope="module")
def results(done_study: Path) -> Path:
    return done_study / "results"


@pytest.fixture(scope="module")
def sheet(done_study: Path) -> str:
    with chdir(done_study):
        return datasheet(StudyFacts(read_study("study.toml"))).markdown()


@pytest.fixture(scope="module")
def section(done_study: Path) -> str:
    with chdir(done_study):
        return methods(StudyFacts(read_study("study.toml"))).markdown()


@pytest.fixture(scope="module")
def draft(done_study: Path) -> str:
    with chdir(done_study):
        return preregistration(StudyFacts(read_study("study.toml"))).markdown()


def table(text: str, *header: str) -> list[list[str]]:
    """The rows of the Markdown table that has this header."""
    head = f"| {' | '.join(header)} |"
    assert text.count(head) == 1, head
    lines = text.split(head)[1].split("\n\n")[0].strip().split("\n")[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def bare(sentence: str) -> str:
    return sentence.rstrip(".?!")


def of_pair(items: list[Row]) -> int:
    """How many set the only two models of the study against each other."""
    return sum({item["model_1"], item["model_2"]} == {"bigram", "unigram"} for item in items)


def test_datasheet_counts_items_by_condition_and_models(sheet: str, results: Path) -> None:
    trials = read_csv_rows(results / "trials.csv")
    conditions = dict.fromkeys(trial["condition"] for trial in trials)
    of_condition = Counter(trial["condition"] for trial in trials)
    in_group = Counter(trial["condition"] for trial in trials if trial["group"] == "1")
    assert sorted(table(sheet, "condition", "trials", "in each group")) == sorted(
        [c, str(of_condition[c]), str(in_group[c])] for c in conditions
    )
    rival = ("natural-controversial", "natural-synthetic", "synthetic-synthetic")
    pair, total = table(sheet, "model", "model", *rival)
    assert set(pair[:2]) == {"bigram", "unigram"}
    counted = [str(of_pair([t for t in trials if t["condition"] == c])) for c in rival]
    assert pair[2:] == total[2:] == counted
    pairs = table(sheet, "model", "model", "pairs")
    assert pairs[0][2] == str(of_pair(read_csv_rows(results / "pairs.csv")))


def test_datasheet_counts_triplets_and_controversiality(sheet: str, results: Path) -> None:
    selected = read_csv_rows(results / "selected.csv")
    found = re.search(r"\| model \| model \| triplets \|[^\n]*selected \|\n[^\n]*\n([^\n]*)", sheet)
    assert found is not None
    cells = [cell.strip() for cell in found[1].strip("|").split("|")]
    assert cells[2] == str(len(read_csv_rows(results / "triplets.csv")))
    assert cells[-1] == str(len(selected))
    # Eq. 4 from the log-probabilities: what each model loses on the sentence that it rejects
    drops = [
        sum(
            float(row[f"log_prob_natural_model_{n}"])
            - float(row[f"log_prob_synthetic_{n}_model_{n}"])
            for n in (1, 2)
        )
        for row in selected
    ]
    (line,) = table(sheet, "model", "model", "triplets", "minimum", "mean", "maximum")
    assert line[3:] == [f"{value:.2f}" for value in (min(drops), fmean(drops), max(drops))]


def test_the_datasheet_measures_lengths_and_frequencies(sheet: str, results: Path) -> None:
    text = (results.parent / "corpus.txt").read_text(encoding="utf-8").splitlines()
    counts = Counter(word.lower() for sentence in text for word in bare(sentence).split())
    millions = (counts.total() + len(counts)) / 1e6

    def zipf(sentence: str) -> float:  # van Heuven et al. (2014), Laplace's rule
        words = bare(sentence).lower().split()
        return fmean(math.log10((counts[word] + 1) / millions) + 3 for word in words)

    sentences: dict[tuple[str, str], set[str]] = {}
    for trial in read_csv_rows(results / "trials.csv"):
        for side in "12":
            key = (trial["condition"], trial[f"kind_{side}"])
            sentences.setdefault(key, set()).add(trial[f"sentence_{side}"])
    stated = {
        (line[0], line[1]): line[2:]
        for line in table(
            sheet, "condition", "sentence", "number", "words", "characters", "frequency"
        )
    }
    assert stated.keys() == sentences.keys()
    for key, some in sentences.items():
        measures = (
            [float(len(bare(sentence).split())) for sentence in some],
            [float(len(bare(sentence))) for sentence in some],
            [zipf(sentence) for sentence in some],
        )
        cells = [f"{fmean(values):.2f} ({stdev(values):.2f})" for values in measures]
        assert stated[key] == [str(len(some)), *cells], key


def test_pages_count_words_in_one_named_text(sheet: str, section: str, results: Path) -> None:
    summary = (results / "trials.csv.summary.md").read_text(encoding="utf-8")
    for page in (sheet, section, summary):
        assert "counted in corpus.txt" in page
    # Sentences of catch trials serve once: their mean is that over trials
    lines = table(sheet, "condition", "sentence", "number", "words", "characters", "frequency")
    (of_sheet,) = (line[-1] for line in lines if line[:2] == ["catch", "natural"])
    lines = table(summary, "condition", "measure", "sentence_1", "sentence_2", "difference")
    (of_summary,) = (line[2] for line in lines if line[0] == "catch" and "Zipf" in line[1])
    assert float(of_sheet.split()[0]) == pytest.approx(float(of_summary), abs=0.006)


def test_the_datasheet_says_what_was_left_out_and_why(sheet: str, results: Path) -> None:
    lines = table(sheet, "excluded", "reason", "number")
    left_out = {(what, why): int(number.replace(",", "")) for what, why, number in lines}
    dropped = Counter(
        row["reason"] for row in read_csv_rows(results / "vocabulary.txt.dropped.csv")
    )
    words = {why: n for (what, why), n in left_out.items() if what == "words"}
    # The table of the vocabulary lists every word that was left out, with its reason
    assert set(words) <= set(dropped)
    text = [line for line in (results.parent / "more.txt").read_text().splitlines() if line]
    kept = (results / "natural.txt").read_text().splitlines()
    of_sentences = sum(n for (what, _), n in left_out.items() if what == "natural sentences")
    assert of_sentences <= len(text) - len(kept)
    assert f"{len(kept):,} natural sentences" in sheet


def test_the_methods_state_the_numbers_of_the_tables(section: str, results: Path) -> None:
    trials, pairs = read_csv_rows(results / "trials.csv"), read_csv_rows(results / "pairs.csv")
    groups = {trial["group"] for trial in trials}
    seen = sum(trial["group"] == "1" for trial in trials)
    shown = {trial[f"sentence_{side}"] for trial in trials for side in "12"}
    characters = fmean(len(bare(sentence)) for sentence in shown)
    responses = read_csv_rows(results / "responses.csv")
    people = {row["participant"] for row in responses}
    vocabulary = (results / "vocabulary.txt").read_text().split("[inner]")
    initial = len(vocabulary[0].split("[initial]")[1].split())
    arpa = (results / "models" / "bigram.arpa").read_text()
    ngrams = " + ".join(f"{int(n):,}" for n in re.findall(r"ngram \d=(\d+)", arpa))
    for sentence in (
        f"{len(trials)} trials were assigned to {len(groups)} groups of participants. "
        f"Each participant completes {seen} trials",
        f"The {len(shown)} distinct sentences have 8.0 words and {characters:.1f} characters",
        f"We selected {len(pairs)} pairs of natural sentences",
        f"all {len(people)} participants are artificial. They gave {len(responses)} ratings",
        f"vocabulary contains {initial} words for the first position",
        f"The searches yielded {len(read_csv_rows(results / 'triplets.csv'))} triplets",
        f"From the {len(read_csv_rows(results / 'triplets.csv'))} triplets, we selected "
        f"{len(read_csv_rows(results / 'selected.csv'))} (",
        "the fewest new words whose part of speech differs",
        "at least 1 nats below that of the natural sentence.",
        f"({ngrams} n-grams)",
        "At most 2 words of a sentence are replaced.",
    ):
        assert sentence in section, sentence
    # "No sentence stands in two pairs."
    sides = Counter(pair[f"sentence_{side}"] for pair in pairs for side in "12")
    assert max(sides.values()) == 1


def test_unsuccessful_searches_are_counted_by_reason(
    done_study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reason names the model for which a search failed; the texts count without names."""
    reasons = [f"few new words do not reach 5 nats where kenlm:{n}.arpa rejects" for n in "ab"]
    with chdir(done_study):
        facts = StudyFacts(read_study("study.toml"))
        record = {"unchanged": [{"reason": reason} for reason in reasons]}
        monkeypatch.setattr(facts, "record", lambda _: record)
        assert facts.skipped == {"unsuccessful search, few new words do not reach 5 nats": 2}


def test_texts_state_equal_families(section: str, draft: str, study: Path, results: Path) -> None:
    """Witness: the rows of the table of comparisons, counted by measure and kind of trials."""
    tests = read_csv_rows(results / "analysis" / "tables" / "comparisons.csv")
    families = Counter((test["scope"], test["measure"]) for test in tests)
    (size,) = {*families.values()}
    (study / "results" / "analysis" / "report.html.meta.json").unlink()
    with chdir(study):
        facts = StudyFacts(read_study("study.toml"))
        assert facts.contrast_families == {(size, 1): len(families)}
        assert len(facts.contrasts) == size
        planned = methods(facts).markdown()
    for text in (section, draft, planned):
        assert f"{size} contrasts" in text
        assert f"in each of {len(families)} families, {len(tests)} tests in total" in text


def test_every_setting_that_shapes_triplets_is_in_both_texts(study: Path) -> None:
    path = study / "results" / "triplets.csv.meta.json"
    record = json.loads(path.read_text())
    numbers = {"same_length": 11, "same_frequency": 0.375, "max_changes": 13}
    numbers |= {"judge_drop": 8.125, "enough": 4.75}
    words = {name: [f"{name}word"] for name in ("fix", "exclude")}
    record |= numbers | words | {"frame": "words", "tags": "tags.csv"}
    record |= {"capitals": "rules", "judge": {"examiner": {}}, "restarts": "23"}
    path.write_text(json.dumps(record))
    with chdir(study):
        facts = StudyFacts(read_study("study.toml"))
        texts = datasheet(facts).markdown(), methods(facts).markdown()
    # Whatever else a search is asked for must be named here and in both texts
    elsewhere = {"seed", "recipe", "restarts", "per_pair", "allow_unknown", "max_scored"}
    named = {*record} | elsewhere
    assert {field.name for field in fields(SearchQuestion)} <= named
    stated = (*map(str, numbers.values()), "examiner", "tags.csv", "23")
    for value in (*stated, "Capitalised words", "part of speech", *(w for (w,) in words.values())):
        assert all(value in text for text in texts), value


def test_texts_state_no_rule_that_every_line_turns_off(study: Path, sheet: str) -> None:
    assert "contain at most 1 name." in sheet
    (study / "blocked.txt").write_text("machine\n", encoding="utf-8")
    change(study, ('words = "8"', 'words = "8"\nblocked = "blocked.txt"'))
    with chdir(study):
        assert "blocked.txt" in datasheet(StudyFacts(read_study("study.toml"))).markdown()
        change(study, ('words = "8"', 'words = "8"\nevery_line = true'))
        facts = StudyFacts(read_study("study.toml"))
        texts = datasheet(facts).markdown(), methods(facts).markdown()
    for text in texts:
        assert "sentences have 8 words.\n" in text or "sentences have 8 words. " in text
        assert "blocked.txt" not in text


def test_draft_states_that_groups_share_instructions(study: Path, draft: str) -> None:
    assert "instructions in catch trials" not in draft
    with chdir(study):
        facts = StudyFacts(read_study("study.toml"))
        facts.trials = [
            replace(trial, kind_1=Kind.INSTRUCTION) if trial.condition is Condition.CATCH else trial
            for trial in facts.trials
        ]
        assert "instructions in catch trials are the same" in preregistration(facts).markdown()


def test_models_of_unknown_training_text_are_named(study: Path, sheet: str, section: str) -> None:
    for text in (sheet, section):
        assert "unknown" not in text
    (study / "bigram.arpa").write_bytes((study / "results/models/bigram.arpa").read_bytes())
    change(study, ('{ train = "ngram", order = 2 }', '"kenlm:bigram.arpa"'))
    for name in ("scores", "triplets"):
        path = study / "results" / f"{name}.csv.meta.json"
        record = json.loads(path.read_text())
        record["training_text"]["bigram"] = None
        path.write_text(json.dumps(record))
    with chdir(study):
        facts = StudyFacts(read_study("study.toml"))
        texts = datasheet(facts).markdown(), methods(facts).markdown()
    assert facts.unknown_training_texts == ["bigram"]
    assert all("The training text of bigram is unknown" in text for text in texts)
    header = ("model", "natural sentences", "in its training text")
    assert table(texts[0], *header) == [["bigram", "–", "unknown"], ["unigram", "49", "0"]]


def test_the_methods_include_those_of_the_analysis(section: str, results: Path) -> None:
    own = (results / "analysis" / "methods.md").read_text(encoding="utf-8").split("\n\n")
    for paragraph in own[1:-1]:  # but for the works, which the section lists
        # Without the signs of Markdown
        assert re.sub(r"[\\*\n]", "", paragraph) in re.sub(r"[\\*\n]", "", section)


def test_only_works_that_apply_are_cited(section: str) -> None:
    body, listed = section.split("## References")
    for author, year, reference in works():
        cited = re.search(rf"{author}[^;]{{0,25}}{year}", body) is not None
        assert cited == (reference[:30] in listed), reference
    # No masked model takes part
    assert "Salazar" not in section
    assert "Kauf" not in section
    assert "Chen & Goodman, 1999" in body


def test_a_study_without_people_has_questions_in_their_place(study: Path) -> None:
    change(
        study,
        ('[simulate]\nmodel = "bigram"\nparticipants = 12\n', ""),
        ("[analyze]\nworst = 4\n", ""),
        ("[select.natural]\nper_pair = 3\n", ""),
    )
    with chdir(study):
        facts = StudyFacts(read_study("study.toml"))
        text, page = methods(facts).markdown(), datasheet(facts).markdown()
        draft = preregistration(facts).markdown()
    # Neither old tables of stages that are gone, nor claims about people
    for gone in ("simulated", "Natural pairs", "Wilcoxon", "artificial"):
        assert gone not in text + page, gone
    assert "To fill in: who took part" in text
    assert "Registration prior to creation of data." in draft
    assert "The study file has no section" in draft


def test_rules_of_exclusion_are_preregistered_in_the_order_in_which_they_apply(study: Path) -> None:
    rules = """[analyze]
min_median_rt = 800
max_away = 90
participants = "people.csv"
require = ["first_language=English"]
partial = true
"""
    change(study, ("[analyze]\n", rules))
    (study / "people.csv").write_text("participant,first_language\n")
    with chdir(study):
        draft = preregistration(StudyFacts(read_study("study.toml"))).markdown()
    assert (
        "excluded, in this order, and counted: a median reaction time below 800 ms; "
        "absences from the page above 90 s in all; first_language other than English."
    ) in " ".join(draft.split())
    assert "is anybody else left out" not in draft


@pytest.mark.parametrize("missing", ["", "max_missing = 0.2\n"])
@pytest.mark.parametrize("kept", ["", "partial = true\n"])
def test_unfinished_participants_are_preregistered(study: Path, missing: str, kept: str) -> None:
    change(study, ("[analyze]\n", f"[analyze]\n{missing}{kept}"))
    with chdir(study):
        draft = preregistration(StudyFacts(read_study("study.toml"))).markdown()
    draft = " ".join(draft.split())
    assert ("Ratings of incomplete sessions are included in regressions" in draft) == bool(kept)
    assert ("Incomplete sessions are not analysed." in draft) == (not kept)
    assert ("left at most 20 % of them unanswered" in draft) == bool(missing)
    assert ("the participant rated every trial of the group." in draft) == (not missing)
    assert ("did not rate at least 80 % of the trials of their group" in draft) == bool(missing)


def test_figures_are_of_the_triplets_that_they_are_said_to_be_of(study: Path) -> None:
    """Witness: the records. Figures of all triplets never stand for those of the selected ones."""
    selected, found = (study / "results" / f"{n}.csv.meta.json" for n in ("selected", "triplets"))
    assert "Figures of the selected triplets:" in (study / PAGE).read_text(encoding="utf-8")
    record = json.loads(selected.read_text())
    with chdir(study):
        assert StudyFacts(read_study("study.toml")).figures == record.pop("figures")
        selected.write_text(json.dumps(record))
        assert StudyFacts(read_study("study.toml")).figures == {}
        Path("results/selected.csv").unlink()
        of_all = json.loads(found.read_text())["figures"]
        assert StudyFacts(read_study("study.toml")).figures == of_all


def test_a_selection_made_before_there_was_a_floor_has_a_datasheet(study: Path) -> None:
    path = study / "results" / "selected.csv.certificate.json"
    certificate = json.loads(path.read_text())
    del certificate["question"]["enough"], certificate["question"]["tags"]
    path.write_text(json.dumps(certificate))
    with chdir(study):
        page = datasheet(StudyFacts(read_study("study.toml"))).markdown()
    assert "nats below that of the natural sentence" not in page


def test_reviews_are_counted(study: Path) -> None:
    pairs = read_csv_rows(study / "results" / "pairs.csv")
    header = (
        "reviewer item_id kind source_id condition group model_1 model_2 sentence_1 sentence_2 "
        "sentence_3 decision reason"
    ).split()
    with (study / "review.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for place, pair in enumerate(pairs):
            decision = ("reject", "odd") if place == 0 else ("keep", "")
            models = (pair["model_1"], pair["model_2"], pair["sentence_1"], pair["sentence_2"])
            writer.writerow(("Ann", pair["trial_id"], "pair", "", "", 0, *models, "", *decision))
    review_with(study, ["review.csv"])
    run(study, last="select natural")
    with chdir(study):
        facts = StudyFacts(read_study("study.toml"))
        page, text = datasheet(facts).markdown(), methods(facts).markdown()
    assert table(page, "reviewer", "items", "kept", "rejected", "undecided") == [
        ["Ann", "pairs", str(len(pairs) - 1), "1", "0"]
    ]
    assert table(page, "reason for rejection", "times") == [["odd", "1"]]
    assert ["pairs", "rejected by a reviewer", "1"] in table(page, "excluded", "reason", "number")
    assert f"1 reviewer inspected the items and rejected 1 of {len(pairs)} pairs" in text


FIELDS = {
    # OSF Preregistration, version 3 of its schema: pages, and questions in their order
    "Study information": ["Title", "Authors", "Hypotheses"],
    "Design plan": [
        "Study type",
        "Blinding",
        "Is there any additional blinding in this study?",
        "Study design",
        "Randomization",
    ],
    "Sampling plan": [
        "Existing data",
        "Explanation of existing data",
        "Data collection procedures",
        "Sample size",
        "Sample size rationale",
        "Stopping rule",
    ],
    "Variables": ["Manipulated variables", "Measured variables", "Indices"],
    "Analysis plan": [
        "Statistical models",
        "Transformations",
        "Inference criteria",
        "Data exclusion",
        "Missing data",
        "Exploratory analysis",
    ],
    "Other": ["Other"],
}


def test_the_draft_has_the_fields_of_the_template_and_leaves_none_empty(draft: str) -> None:
    pages = re.split(r"^## ", draft, flags=re.MULTILINE)[1:]
    fields = {}
    for page in pages:
        name, *questions = re.split(r"^### ", page, flags=re.MULTILINE)
        answers = dict(question.split("\n", 1) for question in questions)
        assert all(answer.strip() for answer in answers.values())
        fields[name.strip()] = list(answers)
    assert fields == FIELDS


def test_the_draft_states_sample_size_and_power_of_the_study(draft: str, results: Path) -> None:
    assert "6 participants: 2 in each of 3 groups." in draft
    sizes = [
        r for r in read_csv_rows(results / "trials.csv.power-sizes.csv") if r["scope"] == "overall"
    ]
    planned = sizes[0]
    assert (planned["groups"], planned["participants_per_group"]) == ("3", "2")
    for rate in (
        *("first_low", "first_high", "significantly_better_low", "significantly_better_high"),
        "shows_equivalence",
    ):
        assert f"{100 * float(planned[rate]):.1f} %" in draft
    assert f"a difference of {float(planned['detectable_difference']):.3f} in accuracy" in draft
    # By default units are left to the design, whose 3 groups are too few for any other test
    assert "compared by a two-sided t-test" in draft
    assert "Wilcoxon" not in draft
    assert "the variance of two crossed random factors" in draft
    assert "the false discovery rate at 0.05 (Benjamini & Hochberg, 1995)" in draft
    # 1 pair of models, and 2 models against the ceiling
    assert "3 contrasts will be tested" in draft


def test_methods_tell_what_people_who_are_analysed_said_of_themselves(study: Path) -> None:
    head = "name,when,kind,question,options\n"
    table = head + "age,before,number,Age?,18|99\nremarks,after,text,Anything?,\n"
    table += "task,check,choice,What?,a|*b\n"
    (study / "asked.csv").write_text(table)
    with chdir(study):
        read = read_study("study.toml")
        step = export_step("jspsych")
        assert step is not None
        settings = PageSettings(questions=Path("asked.csv"), deadline=9, break_every=5)
        trials, out = Path("results/trials.csv"), Path("results/export/jspsych")
        export = step(trials=trials, out=out, settings=settings)
        stage = StudyStage("export jspsych", "", export, ("export", "jspsych"))
        facts = StudyFacts(replace(read, stages=(*read.stages, stage)))
        one, two, three = [*facts.participants][:3]
        facts.participants = {one: False, two: False, three: True}
        facts.analysis = {**facts.analysis, "left_out": {two: "too fast"}}
        ages = zip((one, two, three), ("31", "77", "88"), strict=True)
        answers = [questionnaire.QuestionAnswer(who, "age", age) for who, age in ages]
        remark = questionnaire.QuestionAnswer(one, "remarks", "I am Ann")
        responses = facts.path("responses")
        assert responses is not None
        questionnaire.write_answers(questionnaire.questions_beside(responses), [*answers, remark])
        assert facts.questions == ["age: mean 31.0, 31 to 31"]
        told = methods(facts).markdown()
        plan = preregistration(facts).markdown()
        files = _psych_ds(facts, study / "psych-ds")
        (answered,) = (path for name, path in files.items() if "answers" in name)
        kept = [(row["question"], row["answer"]) for row in read_csv_rows(answered)]
    assert kept == [("age", "31"), ("age", "77"), ("age", "88")]
    assert "Participants are asked for: age, remarks." in plan
    for fact in (
        "does not answer within 9 seconds",
        "a break after every 5 trials",
        "Before the instructions, participants are asked for: age. After the last trial, "
        "participants are asked for: remarks. Comprehension questions follow",
        "within 2 attempts cannot take part",
        "Participants reported: age: mean 31.0, 31 to 31.",
    ):
        assert fact in told


def test_texts_of_a_study_of_choices_speak_of_no_confidence(study: Path) -> None:
    change(study, ("groups = 3", 'groups = 3\nscale = "choice"'))
    with chdir(study):
        facts = StudyFacts(read_study("study.toml"))
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


def test_participants_and_answers_of_the_methods_add_up(study: Path) -> None:
    """Witness: of twelve people two go early and one leaves two trials of all unrated."""
    with chdir(study):
        facts = StudyFacts(read_study("study.toml"))
        first, second, third = [*facts.participants][:3]
        facts.responses = [
            replace(r, rating=UNRATED if (r.participant, r.position) in late else r.rating)
            for late in [{(third, 2), (third, 5)}]
            for r in facts.responses
            if r.participant not in (first, second) or r.position < 4
        ]
        rules = Exclusions(partial=True, max_missing=0.9, min_catch=0)
        scores = ScoreTable.from_file("results/trial-scores.csv")
        sampling = Sampling()
        analysis = analyze(
            read_trials("results/trials.csv"),
            facts.responses,
            scores,
            exclusions=rules,
            sampling=sampling,
        )
        facts.analysis = analysis_facts(analysis)
        section = methods(facts).markdown()
    seen = len(facts.responses)
    assert f"all 12 participants are artificial. They gave {seen - 2} ratings." in section
    kept = "an unfinished session, kept in regressions and mixed models alone: 2"
    told = f"2 participants were excluded ({kept}). The analysis includes 10 participants."
    assert told in " ".join(section.split())


@pytest.mark.parametrize(
    ("way", "said", "cited"),
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
def test_each_way_to_score_is_told_with_its_source(
    done_study: Path, way: dict[str, object], said: str, cited: str | None
) -> None:
    usual: dict[str, object] = {
        "family": "hf",
        "rule": "log-likelihood",
        "unit": "token",
        "order": None,
    }
    usual |= {"transform": "", "end_scored": False, "sampling": ""}
    with chdir(done_study):
        facts = StudyFacts(read_study("study.toml"))
        facts.scorings = [{**usual, "names": ["a", "*b*"], **way}]
        text = methods(facts).markdown().replace("\\", "")
    assert "The score of a sentence under a and *b* is the " in text
    assert said in text
    assert cited is None or cited in text
    works_cited = text.split("## References")[-1]
    assert cited is None or works_in(cited)[0][:30] in works_cited


def test_names_of_models_are_text_in_every_template(done_study: Path) -> None:
    """A name, a title and a doubt that would be markup in Markdown and in HTML."""
    sign = "**x** | `y` <b>z</b>"
    with chdir(done_study):
        facts = StudyFacts(replace(read_study("study.toml"), title=sign))
        facts.names = [sign, "unigram"]
        facts.model_pairs = [(sign, "unigram")]
        for report in (datasheet(facts, [sign]), methods(facts), preregistration(facts)):
            assert report.title.startswith(("Materials of", "Methods of", "Preregistration of"))
            assert sign in report.title
            assert "<b>z" not in report.html()
            assert r"\*\*x\*\* | \`y\` \<b>z\</b>" in report.markdown().replace(r"\|", "|")
