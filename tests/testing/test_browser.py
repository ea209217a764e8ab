"""Artificial participants in a real browser, on a minimal page that uses the server's protocol."""

import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from contstim.errors import InputError, WorkerError
from contstim.experiments.design.artificial import artificial_participants, simulate_responses
from contstim.experiments.responses.table import read_responses
from contstim.items.stimuli import Condition
from contstim.testing.browser import take_part_in_browser
from tests.experiments.analysis.simulation import simulate
from tests.experiments.collection.conftest import Serve
from tests.experiments.collection.servers import export

pytestmark = pytest.mark.skipif(
    find_spec("playwright") is None or not shutil.which("chromium"),
    reason="needs Playwright and Chromium",
)

PAGE = '<!doctype html><title>x</title><script type="module" src="page.js"></script>'
SCRIPT = """
const post = (path, body, secret) => fetch(`api/${path}`, {
  method: "POST", body: JSON.stringify(body),
  headers: { Authorization: `Bearer ${secret}`, "Content-Type": "application/json" },
}).then((reply) => reply.json());
if (new URLSearchParams(location.search).get("simulate") !== "data") throw Error("no simulation");
const study = await fetch("study.json").then((reply) => reply.json());
const { participant, secret, group } = await post("participants", { group: null });
let position = 0;
for (const { trial_id } of study.groups[group]) {
  const rating = window.contstimSimulation[trial_id];
  position += 1;
  const response = { trial_id, rating, left: 1, position, rt_ms: position % 2 ? 9.5 : null };
  await post("responses", { participant, responses: [response] }, secret);
}
const { redirect } = await post("complete", { participant }, secret);
location = redirect;
"""


def test_page_saves_ratings_of_artificial_participants(serve: Serve, tmp_path: Path) -> None:
    experiment = simulate(groups=(1, 1), conditions=(Condition.RANDOM_NATURAL,))
    folder = export(tmp_path / "study", experiment.trials)
    (folder / "index.html").write_text(PAGE)
    (folder / "page.js").write_text(SCRIPT)
    server = serve(folder, redirect="https://example.invalid/complete")
    people = artificial_participants(experiment.trials, experiment.scores, "b", noise=1, lapses=0.1)
    responses = take_part_in_browser(people, f"http://127.0.0.1:{server.port}", 2, patience=60)
    (tmp_path / "responses.csv").write_bytes(server.download("responses").content)
    downloaded = read_responses(tmp_path / "responses.csv")
    # repr, because nan differs from itself; only the server knows the time of receipt
    saved = [repr(replace(r, received="")) for r in downloaded]
    assert saved == [repr(r) for r in responses]
    ratings = [(r.group, r.trial_id, r.rating) for r in downloaded]
    expected = simulate_responses(people, 2)
    assert sorted(ratings) == sorted((r.group, r.trial_id, r.rating) for r in expected)


@pytest.mark.slow
def test_errors_name_why_a_browser_run_failed(serve: Serve) -> None:
    experiment = simulate(groups=(1,), each=1)
    people = artificial_participants(experiment.trials, experiment.scores, "b", noise=1)
    server = serve()
    with pytest.raises(WorkerError, match="did not reach the end"):
        take_part_in_browser(people, f"http://127.0.0.1:{server.port}", 1, patience=0.5)
    (server.folder / "index.html").write_text(PAGE)
    (server.folder / "page.js").write_text(SCRIPT)
    strict = serve(server.folder, database=server.database.with_name("people"), rehearsal=False)
    with pytest.raises(WorkerError, match="--rehearsal"):
        take_part_in_browser(people, f"http://127.0.0.1:{strict.port}", 1, patience=30)
    with pytest.raises(InputError, match="is not a web address"):
        take_part_in_browser(people, "localhost", 1)
    for host in ("example.invalid", "127.0.0.1.example.invalid", "192.0.2.1:8000"):
        with pytest.raises(InputError, match="does not accept artificial participants"):
            take_part_in_browser(people, f"https://{host}/study", 1)
