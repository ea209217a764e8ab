"""Planted truth: who answers over the protocol is found by the analysis, as if asked directly."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.errors import InputError, WorkerError
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.measures import MEASURES
from contstim.experiments.analysis.ratings import scopes_of
from contstim.experiments.analysis.run import Analysis, analyze
from contstim.experiments.collection.tables import collected_questions
from contstim.experiments.design.artificial import artificial_participants, simulate_responses
from contstim.experiments.platforms.jspsych import PageSettings, export_jspsych
from contstim.experiments.responses.table import Response, read_responses
from contstim.items.stimuli import Condition
from contstim.testing.participants import RunSettings, take_part
from tests.experiments.analysis.simulation import simulate
from tests.experiments.collection.conftest import Serve
from tests.experiments.collection.servers import export

PEOPLE = 6
CONDITIONS = (Condition.NATURAL_CONTROVERSIAL, Condition.RANDOM_NATURAL, Condition.CATCH)


def said(responses: Iterable[Response]) -> Counter[tuple[int, str, int, float]]:
    """What was answered, whoever and whenever."""
    return Counter((one.group, one.trial_id, one.rating, one.rt_ms) for one in responses)


def consistency(found: Analysis) -> dict[tuple[str, str], dict[str, float]]:
    """Every model's value in every scope and measure."""
    return {
        (str(scope), measure.name): {m.model: m.value for m in found.result(scope, measure).models}
        for scope in scopes_of(found.ratings)
        for measure in MEASURES
    }


def test_people_who_follow_a_model_are_found_by_the_server(serve: Serve, tmp_path: Path) -> None:
    made = simulate(groups=(1, 1), each=2, conditions=CONDITIONS[:2])
    folder, asked = tmp_path / "study", tmp_path / "asked.csv"
    asked.write_text("name,when,kind,question,options\nhome,after,choice,Where?,here|there\n")
    export_jspsych(made.trials, folder, PageSettings(questions=asked))
    served = serve(folder)
    people = artificial_participants(made.trials, made.scores, "b", noise=0.5, lapses=0.02, seed=4)
    run = RunSettings(f"http://127.0.0.1:{served.port}/", PEOPLE, at_once=8)
    sent = take_part(people, run, tmp_path / "journal")
    (tmp_path / "responses.csv").write_bytes(served.download("responses").content)
    downloaded = read_responses(tmp_path / "responses.csv")
    assert sorted(downloaded, key=repr) == sorted(sent, key=repr)
    told = {each.participant: each.answer for each in collected_questions(served.database)}
    assert {*told} == {each.participant for each in sent}
    assert {*told.values()} <= {"here", "there"}
    direct = simulate_responses(people, PEOPLE)
    assert said(downloaded) == said(direct)

    sampling = Sampling()
    through, without = (
        consistency(analyze(made.trials, responses, made.scores, sampling=sampling))
        for responses in (downloaded, direct)
    )
    for where, values in without.items():
        assert through[where] == pytest.approx(values, abs=1e-12)
        assert max(values, key=lambda model: values[model]) == "b", where


def test_an_interrupted_visit_goes_on_from_its_journal(serve: Serve, tmp_path: Path) -> None:
    made = simulate(groups=(1, 1), each=1, conditions=CONDITIONS)
    served = serve(export(tmp_path / "study", made.trials), redirect="https://example.org/")
    people = artificial_participants(made.trials, made.scores, "a", noise=1, seed=1)
    journal = tmp_path / "journal"
    run = RunSettings(f"http://127.0.0.1:{served.port}", 4)
    whole = take_part(people, run, journal)
    assert journal.read_text().count('"code": null') == 4
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join(lines[: len(lines) // 2]) + '\n{"number": 2, "sa')
    again = take_part(people, run, journal)
    assert sorted(again, key=repr) == sorted(whole, key=repr)
    assert len({one.participant for one in again}) == 4
    assert served.download("participants").text.count("complete") == 4 + 1  # and the column's name


def test_journals_of_other_runs_or_databases_are_refused(serve: Serve, tmp_path: Path) -> None:
    made = simulate(groups=(1,), each=1)
    folder = export(tmp_path / "study", made.trials)
    served = serve(folder)
    people = artificial_participants(made.trials, made.scores, "a", noise=1)
    journal = tmp_path / "journal"
    run = RunSettings(f"http://127.0.0.1:{served.port}", 1)
    take_part(people, run, journal)
    kept = journal.read_bytes()
    other = artificial_participants(made.trials, made.scores, "b", noise=1)
    elsewhere = replace(run, url="http://127.0.0.1:9")
    for who, where in (
        (other, run),
        (replace(other, model="a"), run),
        (replace(people, seed=1), run),
        (replace(people, noise=2.0), run),
        (replace(people, lapses=0.5), run),
        (people, elsewhere),
    ):
        with pytest.raises(InputError, match="journal belongs to a run with other settings"):
            take_part(who, where, journal)
    assert journal.read_bytes() == kept
    anew = serve(folder, database=tmp_path / "new.sqlite")
    lines = journal.read_text().replace(f":{served.port}", f":{anew.port}")
    journal.write_text(lines)
    with pytest.raises(WorkerError, match=r"journal contains participants that are not"):
        take_part(people, replace(run, url=f"http://127.0.0.1:{anew.port}"), journal)


def test_nobody_joins_a_study_of_other_trials(serve: Serve, tmp_path: Path) -> None:
    made, other = simulate(groups=(1,), each=1), simulate(("x", "y", "z"), (1,), each=1)
    renamed = [replace(trial, trial_id=f"other-{trial.trial_id}") for trial in other.trials]
    served = serve(export(tmp_path / "study", renamed))
    people = artificial_participants(made.trials, made.scores, "a", noise=1)
    run = RunSettings(f"http://127.0.0.1:{served.port}", 1, table="trials.csv")
    with pytest.raises(InputError, match=r"shows other trials than trials\.csv"):
        take_part(people, run, tmp_path / "journal")
    assert served.download("participants").text.count("\n") == 1  # the columns' names


def test_a_server_that_is_silent_is_given_up_in_words(tmp_path: Path) -> None:
    made = simulate(groups=(1,), each=1)
    people = artificial_participants(made.trials, made.scores, "a", noise=1)
    with pytest.raises(WorkerError, match="run the same command again"):
        take_part(people, RunSettings("http://127.0.0.1:9", 1, patience=0.2), tmp_path / "journal")
    with pytest.raises(InputError, match="is not a web address"):
        take_part(people, RunSettings("localhost:8000", 1), tmp_path / "journal")
