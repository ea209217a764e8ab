"""Artificial participants who respond over the server's protocol.

Witness: their responses without a server, and the model that they follow.
"""

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

N_PARTICIPANTS = 6
CONDITIONS = (Condition.NATURAL_CONTROVERSIAL, Condition.RANDOM_NATURAL, Condition.CATCH)


def count_responses(responses: Iterable[Response]) -> Counter[tuple[int, str, int, float]]:
    """Count ratings and times, without participants and times of receipt."""
    return Counter((r.group, r.trial_id, r.rating, r.rt_ms) for r in responses)


def consistency_values(analysis: Analysis) -> dict[tuple[str, str], dict[str, float]]:
    """Return the value of each model by scope and measure."""
    return {
        (str(scope), measure.name): {
            m.model: m.value for m in analysis.result(scope, measure).models
        }
        for scope in scopes_of(analysis.ratings)
        for measure in MEASURES
    }


def test_analysis_identifies_the_model_of_participants(serve: Serve, tmp_path: Path) -> None:
    experiment = simulate(groups=(1, 1), each=2, conditions=CONDITIONS[:2])
    folder, questions = tmp_path / "study", tmp_path / "asked.csv"
    questions.write_text("name,when,kind,question,options\nhome,after,choice,Where?,here|there\n")
    export_jspsych(experiment.trials, folder, PageSettings(questions=questions))
    server = serve(folder)
    people = artificial_participants(
        experiment.trials, experiment.scores, "b", noise=0.5, lapses=0.02, seed=4
    )
    run = RunSettings(f"http://127.0.0.1:{server.port}/", N_PARTICIPANTS, at_once=8)
    sent = take_part(people, run, tmp_path / "journal")
    (tmp_path / "responses.csv").write_bytes(server.download("responses").content)
    downloaded = read_responses(tmp_path / "responses.csv")
    assert sorted(downloaded, key=repr) == sorted(sent, key=repr)
    answers = {row.participant: row.answer for row in collected_questions(server.database)}
    assert {*answers} == {row.participant for row in sent}
    assert {*answers.values()} <= {"here", "there"}
    expected = simulate_responses(people, N_PARTICIPANTS)
    assert count_responses(downloaded) == count_responses(expected)

    sampling = Sampling()
    with_server, without_server = (
        consistency_values(
            analyze(experiment.trials, responses, experiment.scores, sampling=sampling)
        )
        for responses in (downloaded, expected)
    )
    for key, values in without_server.items():
        assert with_server[key] == pytest.approx(values, abs=1e-12)
        assert max(values, key=lambda model: values[model]) == "b", key


def test_interrupted_run_resumes_from_its_journal(serve: Serve, tmp_path: Path) -> None:
    experiment = simulate(groups=(1, 1), each=1, conditions=CONDITIONS)
    server = serve(export(tmp_path / "study", experiment.trials), redirect="https://example.org/")
    people = artificial_participants(experiment.trials, experiment.scores, "a", noise=1, seed=1)
    journal = tmp_path / "journal"
    run = RunSettings(f"http://127.0.0.1:{server.port}", 4)
    responses = take_part(people, run, journal)
    assert journal.read_text().count('"code": null') == 4
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join(lines[: len(lines) // 2]) + '\n{"number": 2, "sa')
    resumed = take_part(people, run, journal)
    assert sorted(resumed, key=repr) == sorted(responses, key=repr)
    assert len({r.participant for r in resumed}) == 4
    assert server.download("participants").text.count("complete") == 4 + 1  # and the column name


def test_journals_of_other_runs_or_databases_are_refused(serve: Serve, tmp_path: Path) -> None:
    experiment = simulate(groups=(1,), each=1)
    folder = export(tmp_path / "study", experiment.trials)
    server = serve(folder)
    people = artificial_participants(experiment.trials, experiment.scores, "a", noise=1)
    journal = tmp_path / "journal"
    run = RunSettings(f"http://127.0.0.1:{server.port}", 1)
    take_part(people, run, journal)
    content = journal.read_bytes()
    rivals = artificial_participants(experiment.trials, experiment.scores, "b", noise=1)
    other_run = replace(run, url="http://127.0.0.1:9")
    for participants, settings in (
        (rivals, run),
        (replace(rivals, model="a"), run),
        (replace(people, seed=1), run),
        (replace(people, noise=2.0), run),
        (replace(people, lapses=0.5), run),
        (people, other_run),
    ):
        with pytest.raises(InputError, match="journal belongs to a run with other settings"):
            take_part(participants, settings, journal)
    assert journal.read_bytes() == content
    new_server = serve(folder, database=tmp_path / "new.sqlite")
    lines = journal.read_text().replace(f":{server.port}", f":{new_server.port}")
    journal.write_text(lines)
    with pytest.raises(WorkerError, match=r"journal contains participants that are not"):
        take_part(people, replace(run, url=f"http://127.0.0.1:{new_server.port}"), journal)


def test_study_of_other_trials_is_refused(serve: Serve, tmp_path: Path) -> None:
    experiment, foreign = simulate(groups=(1,), each=1), simulate(("x", "y", "z"), (1,), each=1)
    renamed = [replace(trial, trial_id=f"other-{trial.trial_id}") for trial in foreign.trials]
    server = serve(export(tmp_path / "study", renamed))
    people = artificial_participants(experiment.trials, experiment.scores, "a", noise=1)
    run = RunSettings(f"http://127.0.0.1:{server.port}", 1, table="trials.csv")
    with pytest.raises(InputError, match=r"shows other trials than trials\.csv"):
        take_part(people, run, tmp_path / "journal")
    assert server.download("participants").text.count("\n") == 1  # the column names


def test_error_names_an_unreachable_server(tmp_path: Path) -> None:
    experiment = simulate(groups=(1,), each=1)
    people = artificial_participants(experiment.trials, experiment.scores, "a", noise=1)
    with pytest.raises(WorkerError, match="run the same command again"):
        take_part(people, RunSettings("http://127.0.0.1:9", 1, patience=0.2), tmp_path / "journal")
    with pytest.raises(InputError, match="is not a web address"):
        take_part(people, RunSettings("localhost:8000", 1), tmp_path / "journal")
