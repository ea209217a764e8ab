"""`contstim review` and `contstim show` as a user runs them."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from contstim.experiments.design.building import triplet_trials
from contstim.experiments.responses.table import write_responses
from contstim.files.tables import columns_of, write_table
from contstim.items.reviews import (
    Decision,
    ReviewedItem,
    read_reviews,
    undecided_items,
    write_review,
)
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Pair, Triplet, trial_columns
from tests.cli.running import run, succeed
from tests.experiments.responses.experiment import make_responses, make_trials
from tests.experiments.stimuli import some_pairs, some_triplets
from tests.interrupts import hear_interrupts

pytestmark = pytest.mark.slow

TRIPLETS, PAIRS = some_triplets(1), some_pairs(1)
TRIALS = [
    replace(trial, group=1) for triplet in TRIPLETS for trial in triplet_trials(triplet, twins=True)
]
IDS = [each.triplet_id for each in TRIPLETS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_table(tmp_path / "triplets.csv", columns_of(Triplet, TRIPLETS))
    write_table(tmp_path / "pairs.parquet", columns_of(Pair, PAIRS))
    write_table(tmp_path / "trials.jsonl", trial_columns(TRIALS))
    sentences = dict.fromkeys(
        sentence for item in undecided_items([*PAIRS, *TRIALS]) for sentence in item.sentences
    )
    models = ("ngram", "rnn", "bert", "gpt")
    log_probs = -np.add.outer(np.arange(len(sentences)), np.arange(4.0))
    ScoreTable(tuple(sentences), models, log_probs).write(tmp_path / "scores.csv")
    return tmp_path


def facts(page: Path) -> dict[str, Any]:
    data = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert data
    return dict(json.loads(data[1]))


def review_of(path: Path, reviewer: str, *decisions: str) -> None:
    items: list[ReviewedItem] = [
        replace(item, decision=Decision(decision), reason="odd" * (decision == "reject"))
        for item, decision in zip(undecided_items(TRIPLETS, reviewer), decisions, strict=True)
    ]
    write_review(path, items)


@pytest.mark.parametrize(
    ("table", "n_items", "own"),
    [
        ("triplets.csv", len(TRIPLETS), 2),  # whose log-probabilities stand in the table
        ("pairs.parquet", len(PAIRS), 0),
        ("trials.jsonl", len(TRIALS), 0),
    ],
)
def test_each_table_becomes_a_page(folder: Path, table: str, n_items: int, own: int) -> None:
    done = run(folder, "review", table, "--out", "pages/review.html", status=0)
    assert "open it in a browser" in done.stderr
    items = facts(folder / "pages" / "review.html")["items"]
    assert [len(each["columns"]) for each in items] == [own] * n_items
    succeed(folder, "review", table, "--scores", "scores.csv", "--out", "scored.html")
    items = facts(folder / "scored.html")["items"]
    assert [len(each["columns"]) for each in items] == [4] * n_items
    succeed(folder, "show", table, "--out", "show.html")
    page = (folder / "show.html").read_text()
    assert "ngram against rnn" in page
    assert page.count("data:image/png") == (table == "triplets.csv")
    succeed(folder, "show", table, "--scores", "scores.csv", "--out", "map.html", "--title", "Mine")
    page = (folder / "map.html").read_text()
    assert "<h1>Mine</h1>" in page
    assert page.count("data:image/png") == 1 + (table == "triplets.csv")


def test_answers_of_people_stand_beside_trials(folder: Path) -> None:
    """By hand: the trials' ratings, and their mean; only their number where one person rated."""
    trials = make_trials()
    write_table(folder / "seen.csv", trial_columns(trials))
    people = {"ann": 1, "bob": 1, "cleo": 1}
    write_responses(folder / "responses.csv", make_responses(trials, people))
    common = "review seen.csv --out review.html --responses".split()
    succeed(folder, *common, "responses.csv")
    rated = {
        trial.trial_id: [r.rating for r in make_responses(trials, people) if r.trial_id == name]
        for trial in trials
        for name in [trial.trial_id]
    }
    for item in facts(folder / "review.html")["items"]:
        ratings = rated[item["id"]]
        if not ratings:  # the second group's
            assert (item["answers"], item["sureness"]) == ("", None)
            continue
        assert item["answers"].startswith(f"3 answers: mean rating {np.mean(ratings):.1f}, ")
        assert f"{item['sureness']:.0%} sure of sentence" in item["answers"]
        assert 0.5 <= item["sureness"] <= 1
    record = json.loads((folder / "review.html.meta.json").read_text())
    assert any("responses.csv" in str(each) for each in record["inputs"])
    write_responses(folder / "one.csv", make_responses(trials, {"ann": 1}))
    succeed(folder, *common, "one.csv")
    item = facts(folder / "review.html")["items"][0]
    assert re.fullmatch(r"1 answer: mean rating \d\.0", item["answers"])
    assert item["sureness"] is None
    failed = run(folder, "review triplets.csv --out x.html --responses one.csv", status=2)
    assert "triplets.csv has no trials" in failed.stderr


def test_several_reviews_are_counted_and_shown_together(folder: Path) -> None:
    """Witness: counted by hand."""
    review_of(folder / "ann.csv", "Ann", "keep", "reject", "reject", "", "keep", "")
    review_of(folder / "bea.csv", "", "reject", "reject", "", "", "keep", "")
    options = "--review ann.csv --review bea.csv --reviewer Ann --out r.html"
    printed = succeed(folder, "review", "triplets.csv", *options.split())
    assert printed.splitlines() == [
        "Ann: 4 of 6 triplets decided, 2 rejected",
        "bea: 3 of 6 triplets decided, 2 rejected",
        "rejected by at least one reviewer: 3; reviewers disagree: 1",
    ]
    items = facts(folder / "r.html")["items"]
    assert [each["decision"] for each in items[:2]] == [[["keep", ""]], [["reject", "odd"]]]
    assert items[0]["others"] == [["bea", "reject", "odd"]]


def test_rows_that_files_repeat_are_counted_once(folder: Path) -> None:
    """Witness: what is printed and shown of the same reviews, each given once."""
    review_of(folder / "ann.csv", "Ann", "keep", "reject", "reject", "", "keep", "")
    review_of(folder / "bea.csv", "Bea", "reject", "reject", "", "", "keep", "")
    rows = (folder / "bea.csv").read_text().splitlines(keepends=True)
    (folder / "twice.csv").write_text("".join([*rows, *rows[1:]]))
    both = read_reviews([folder / "ann.csv", folder / "bea.csv"])
    write_review(folder / "both.csv", both.decisions)
    once = "--review ann.csv --review bea.csv --out once.html"
    again = "--review ann.csv --review both.csv --review twice.csv --out again.html"
    printed = [
        succeed(folder, "review", "triplets.csv", *options.split()) for options in (once, again)
    ]
    assert printed[0] == printed[1]
    assert facts(folder / "once.html")["items"] == facts(folder / "again.html")["items"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("scores.csv --out r.html", "contains neither triplets"),
        ("nothing.csv --out r.html", "Cannot read nothing.csv"),
        ("pairs.parquet --out r.html --scores few.csv", "The scores lack 11 of 12 sentences"),
        ("triplets.csv --out r.html --blocked ann.csv", "is not a single word"),
        ("triplets.csv --out . --quiet", "it is a folder"),
    ],
)
def test_mistakes_are_named_before_writing(folder: Path, options: str, message: str) -> None:
    review_of(folder / "ann.csv", "Ann", "keep", "reject", "reject", "", "keep", "")
    first = PAIRS[0].sentence_1
    assert first
    (folder / "few.csv").write_text(f"sentence,ngram\n{first.text},-1\n")
    done = run(folder, "review", *options.split(), status=2)
    assert message in done.stderr
    assert not (folder / "r.html").exists()
    assert not (folder / "m.csv").exists()


def test_flags_rest_on_the_text_and_the_lists_that_are_given(folder: Path) -> None:
    (folder / "blocked.txt").write_text("nobody\n")
    (folder / "words.csv").write_text("word,count\nnobody,3000000\nmade,1000000\n")
    options = "--text words.csv --blocked blocked.txt --language any --often 9 --rare 2.9"
    succeed(folder, "review", "triplets.csv", *options.split(), "--out", "r.html")
    read = facts(folder / "r.html")
    names = [name for name, _ in read["flags"]]
    explanations = dict(read["flags"])
    assert "Zipf frequency below 2.9" in explanations["rare word"]
    assert "words.csv" in explanations["rare word"]
    frequent = "A new word of a synthetic sentence occurs in more than 9 items."
    assert explanations["word in many items"].startswith(frequent)
    details = [(names[kind], text) for kind, text in read["items"][0]["flags"]]
    assert ("block list", "“Nobody” is a blocked word.") in details
    assert ("rare word", "“ngram” is rare (Zipf 2.4).") in details


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "contstim", "review", "triplets.csv", "--out", "review.html"]
    process = subprocess.Popen(
        [*command, "--serve", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def interrupt_while_a_decision_arrives(url: str, process: subprocess.Popen[str]) -> str:
    """Return what the process says at its end."""
    port = int(re.findall(r"\d+", url)[-1])
    with socket.create_connection(("127.0.0.1", port)) as client:
        head = (
            f"POST /decisions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nExpect: 100-continue\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        )
        client.sendall(head.encode())
        assert b"100" in client.recv(100)  # the server waits for the body
        client.sendall(b"{")
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=60)
    return messages


def test_a_served_review_is_saved_resumed_and_ended_by_an_interrupt(folder: Path) -> None:
    """Quietly the second time, where a decision is still arriving."""
    saved = {"item_id": IDS[0], "decision": "reject", "reason": "rude"}
    for number in range(2):
        options = ("--port", "0", "--reviewer", " Ann  B ", *["--quiet"] * number)
        with serving(folder, *options) as (url, process):
            assert url.startswith("http://127.0.0.1:")
            page = httpx2.get(url, verify=False).text
            fingerprint = re.search(r'"fingerprint": "(\w+)"', page)
            assert fingerprint
            body = {"fingerprint": fingerprint[1], "decisions": [saved]}
            assert httpx2.post(f"{url}decisions", json=body, verify=False).status_code == 200
            saved |= {"item_id": IDS[1]}
            if number:
                assert interrupt_while_a_decision_arrives(url, process) == ""
        assert process.returncode in (0, 130)
    review = read_reviews([folder / "review-Ann_B.csv"])
    assert review.rejected == set(IDS[:2])
    assert {item.reviewer for item in review.decisions} == {"Ann B"}
    # of another set, the file stays as it is
    before = (folder / "review-Ann_B.csv").read_bytes()
    write_table(folder / "triplets.csv", columns_of(Triplet, TRIPLETS[2:]))
    done = run(
        folder, "review triplets.csv --out review.html --reviewer", "Ann B", "--serve", status=2
    )
    assert "review-Ann_B.csv already exists" in done.stderr
    assert "other items: 2 of 6" in done.stderr
    assert (folder / "review-Ann_B.csv").read_bytes() == before
