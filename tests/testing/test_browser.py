"""Artificial participants in a real browser, on a page that speaks the protocol and no more."""

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
}).then((given) => given.json());
if (new URLSearchParams(location.search).get("simulate") !== "data") throw Error("no simulation");
const study = await fetch("study.json").then((given) => given.json());
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


def test_the_page_saves_what_artificial_participants_rate(serve: Serve, tmp_path: Path) -> None:
    made = simulate(groups=(1, 1), conditions=(Condition.RANDOM_NATURAL,))
    folder = export(tmp_path / "study", made.trials)
    (folder / "index.html").write_text(PAGE)
    (folder / "page.js").write_text(SCRIPT)
    served = serve(folder, redirect="https://example.invalid/complete")
    people = artificial_participants(made.trials, made.scores, "b", noise=1, lapses=0.1)
    sent = take_part_in_browser(people, f"http://127.0.0.1:{served.port}", 2, patience=60)
    (tmp_path / "responses.csv").write_bytes(served.download("responses").content)
    downloaded = read_responses(tmp_path / "responses.csv")
    # nan is not nan; when an answer came only the server knows
    kept = [repr(replace(one, received="")) for one in downloaded]
    assert kept == [repr(one) for one in sent]
    rated = [(one.group, one.trial_id, one.rating) for one in downloaded]
    direct = simulate_responses(people, 2)
    assert sorted(rated) == sorted((one.group, one.trial_id, one.rating) for one in direct)


@pytest.mark.slow
def test_a_page_that_goes_nowhere_is_given_up_in_words(serve: Serve) -> None:
    made = simulate(groups=(1,), each=1)
    people = artificial_participants(made.trials, made.scores, "b", noise=1)
    served = serve()
    with pytest.raises(WorkerError, match="did not reach the end"):
        take_part_in_browser(people, f"http://127.0.0.1:{served.port}", 1, patience=0.5)
    (served.folder / "index.html").write_text(PAGE)
    (served.folder / "page.js").write_text(SCRIPT)
    strict = serve(served.folder, database=served.database.with_name("people"), rehearsal=False)
    with pytest.raises(WorkerError, match="--rehearsal"):
        take_part_in_browser(people, f"http://127.0.0.1:{strict.port}", 1, patience=30)
    with pytest.raises(InputError, match="is not a web address"):
        take_part_in_browser(people, "localhost", 1)
    for host in ("example.invalid", "127.0.0.1.example.invalid", "192.0.2.1:8000"):
        with pytest.raises(InputError, match="does not accept artificial participants"):
            take_part_in_browser(people, f"https://{host}/study", 1)
