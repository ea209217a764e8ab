"""A study of minimal pairs, from models to the analysis."""

from collections import Counter
from contextlib import chdir
from pathlib import Path

import pytest

from contstim.files.documents import read_json_object
from contstim.files.tables import read_table
from contstim.items.stimuli import Condition, read_controversial_minimal_pairs, read_trials
from contstim.study.handing_on.facts import StudyFacts
from contstim.study.handing_on.texts import datasheet, methods
from contstim.study.page import study_page
from contstim.study.running import run_study
from contstim.study.states import stage_states
from contstim.study.study import Study
from contstim.study.study_file import read_study

MATERIALS = """
title = "Minimal pairs"
[texts]
training = "english:1000"
[models]
two = { train = "ngram", order = 2 }
three = { train = "ngram", order = 3 }
[generate.minimal_pairs]
out = "results/generated"
per_paradigm = 20
[evaluate.blimp]
data = "results/generated"
method = ["full-sentence"]
[select.minimal_pairs]
per_pair = 4
"""
STUDY = (
    MATERIALS.replace("[models]", 'natural = "english:100"\n[models]')
    + """
[design]
groups = 2
random_per_group = 2
catch_per_group = 2
[simulate]
model = "three"
[analyze]
"""
)


@pytest.fixture(scope="module")
def minimal_study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("minimal")
    (folder / "study.toml").write_text(MATERIALS, encoding="utf-8")
    study = read_study(folder)
    run_study(study)
    return study


def test_texts_and_page_report_the_selected_minimal_pairs(minimal_study: Study) -> None:
    """Witness: verdicts counted from the table of scores."""
    with chdir(minimal_study.folder):
        facts = StudyFacts(minimal_study)
        texts = datasheet(facts).markdown(), methods(facts).markdown()
        pairs = read_controversial_minimal_pairs("results/minimal-pairs.csv")
        certificate = read_json_object("results/minimal-pairs.csv.certificate.json")
        scores = read_table("results/evaluate-blimp/pairs.csv")
        page = study_page(minimal_study, stage_states(minimal_study)).html()
    is_right = [
        [
            float(g) - float(b) > 1e-4  # nats, far above rounding
            for g, b in zip(scores[f"{m}: good"], scores[f"{m}: bad"], strict=True)
        ]
        for m in ("two", "three")
    ]
    one_sided = Counter(
        (paradigm.replace("_", " "), two)
        for paradigm, two, three in zip(scores["paradigm"], *is_right, strict=True)
        if two != three
    )
    paradigms = {name.replace("_", " ") for name in scores["paradigm"]}
    differing = {name for name, _ in one_sided}
    first, second = (
        sum(n for (_, two), n in one_sided.items() if two is side) for side in (True, False)
    )
    counts = Counter(pair.paradigm.replace("_", " ") for pair in pairs)
    proven_bound, objective = (f"{certificate[name]:.6g}" for name in ("bound", "objective"))
    paradigm_counts = ", ".join(f"{name} ({n})" for name, n in sorted(counts.items()))
    agreeing = sorted(paradigms - differing)
    summary = (
        f"two alone prefers the acceptable sentence in {first} minimal pairs, three alone in "
        f"{second}. Selected minimal pairs by paradigm: {paradigm_counts}. The two models prefer "
        f"the same sentences in {len(agreeing)} of {len(paradigms)} paradigms: "
        f"{', '.join(agreeing)}."
    )
    assert summary in texts[0]
    assert summary in page
    assert proven_bound == objective
    proof = f": {objective}. This is the proven maximum for the {first + second} candidates"
    assert proof in texts[0]
    for statement in (
        "The selection is the proven optimum",
        f"{len(scores['paradigm']):,} minimal pairs of {len(paradigms)} paradigms (generated)",
        "4 for each pair of models",
        f"In {len(agreeing)} paradigms, all models prefer the same sentences.",
    ):
        assert statement in texts[1]


def test_names_that_differ_only_in_case_are_distinguished(minimal_study: Study) -> None:
    """There are as many models and paradigms as names."""
    with chdir(minimal_study.folder):
        facts = StudyFacts(minimal_study)
        rows = [
            dict(zip(("model_1", "model_2", "paradigm"), names, strict=True))
            | {"model_1_right": str(number), "model_2_right": "0", "chosen": "0"}
            for number, names in enumerate((("a", "m", "Verbs"), ("A", "m", "verbs")))
        ]
        facts.__dict__["verdicts"] = rows
        texts = datasheet(facts).markdown(), methods(facts).markdown()
    assert "a alone prefers the acceptable sentence in 0 minimal pairs" in texts[0]
    assert "A alone prefers the acceptable sentence in 1 minimal pairs" in texts[0]
    assert "of 2 paradigms" in texts[1]
    assert "In 1 paradigm, all models prefer the same sentences." in texts[1]


def test_absolute_paths_and_links_keep_stages_done(minimal_study: Study, tmp_path: Path) -> None:
    """Stages stay up to date however the study file names their inputs."""
    (tmp_path / "link").symlink_to(minimal_study.folder / "results" / "generated")
    models = minimal_study.folder / "results" / "models"
    evaluation = MATERIALS.partition("[evaluate.blimp]")[2].replace("results/generated", "link")
    (tmp_path / "study.toml").write_text(
        f"""
[models]
two = "kenlm:{models}/two.arpa"
three = "kenlm:{models}/three.arpa"
[evaluate.blimp]{evaluation}""",
        encoding="utf-8",
    )
    study = read_study(tmp_path)
    run_study(study)
    assert {state.state for state in stage_states(study)} == {"done"}
    paths = sorted((minimal_study.folder / "results" / "generated").glob("*.jsonl"))
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    for path, text in texts.items():
        path.write_text(text + "\n", encoding="utf-8")
    try:
        changed = stage_states(study)[0]
    finally:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
    assert changed.state == "stale"
    assert changed.because.startswith("changed: ")
    assert changed.because.endswith(f", … ({len(paths)} in all)")


@pytest.mark.slow
def test_study_of_generated_minimal_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run_study(read_study(tmp_path))
    pairs = read_controversial_minimal_pairs("results/minimal-pairs.csv")
    trials = read_trials("results/trials.csv")
    source_ids = {t.source_id for t in trials if t.condition is Condition.MINIMAL_PAIR}
    assert source_ids == {pair.trial_id for pair in pairs}
    assert len(pairs) == 4
    judges = read_table("results/analysis/tables/paradigms.csv")["judge"]
    assert {*judges} == {"grammar", "two", "three"}
