"""`contstim review` and `contstim show` as a user runs them."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections import defaultdict
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
IDS = [triplet.triplet_id for triplet in TRIPLETS]


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


def read_page_data(page: Path) -> dict[str, Any]:
    match = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert match
    return dict(json.loads(match[1]))


def write_decisions(path: Path, reviewer: str, *decisions: str) -> None:
    items: list[ReviewedItem] = [
        replace(item, decision=Decision(decision), reason="odd" * (decision == "reject"))
        for item, decision in zip(undecided_items(TRIPLETS, reviewer), decisions, strict=True)
    ]
    write_review(path, items)


@pytest.mark.parametrize(
    ("table", "n_items", "n_columns"),
    [
        ("triplets.csv", len(TRIPLETS), 2),  # the table has log-probabilities
        ("pairs.parquet", len(PAIRS), 0),
        ("trials.jsonl", len(TRIALS), 0),
    ],
)
def test_review_and_show_write_a_page_for_each_table(
    folder: Path, table: str, n_items: int, n_columns: int
) -> None:
    result = run(folder, "review", table, "--out", "pages/review.html", status=0)
    assert "open it in a browser" in result.stderr
    items = read_page_data(folder / "pages" / "review.html")["items"]
    assert [len(item["columns"]) for item in items] == [n_columns] * n_items
    succeed(folder, "review", table, "--scores", "scores.csv", "--out", "scored.html")
    items = read_page_data(folder / "scored.html")["items"]
    assert [len(item["columns"]) for item in items] == [4] * n_items
    succeed(folder, "show", table, "--out", "show.html")
    page = (folder / "show.html").read_text()
    assert "ngram against rnn" in page
    assert page.count("data:image/png") == (table == "triplets.csv")
    succeed(folder, "show", table, "--scores", "scores.csv", "--out", "map.html", "--title", "Mine")
    page = (folder / "map.html").read_text()
    assert "<h1>Mine</h1>" in page
    assert page.count("data:image/png") == 1 + (table == "triplets.csv")


def test_review_shows_responses_with_trials(folder: Path) -> None:
    """By hand: the mean of the trials' ratings; only their number for a single participant."""
    trials = make_trials()
    write_table(folder / "seen.csv", trial_columns(trials))
    groups_by_participant = {"ann": 1, "bob": 1, "cleo": 1}
    write_responses(folder / "responses.csv", make_responses(trials, groups_by_participant))
    command = "review seen.csv --out review.html --responses".split()
    succeed(folder, *command, "responses.csv")
    ratings_by_trial: defaultdict[str, list[int]] = defaultdict(list)
    for response in make_responses(trials, groups_by_participant):
        ratings_by_trial[response.trial_id].append(response.rating)
    for item in read_page_data(folder / "review.html")["items"]:
        ratings = ratings_by_trial[item["id"]]
        if not ratings:  # a trial of the second group
            assert (item["answers"], item["sureness"]) == ("", None)
            continue
        assert item["answers"].startswith(f"3 answers: mean rating {np.mean(ratings):.1f}, ")
        assert f"{item['sureness']:.0%} sure of sentence" in item["answers"]
        assert 0.5 <= item["sureness"] <= 1
    record = json.loads((folder / "review.html.meta.json").read_text())
    assert any("responses.csv" in str(path) for path in record["inputs"])
    write_responses(folder / "one.csv", make_responses(trials, {"ann": 1}))
    succeed(folder, *command, "one.csv")
    item = read_page_data(folder / "review.html")["items"][0]
    assert re.fullmatch(r"1 answer: mean rating \d\.0", item["answers"])
    assert item["sureness"] is None
    result = run(folder, "review triplets.csv --out x.html --responses one.csv", status=2)
    assert "triplets.csv has no trials" in result.stderr


def test_review_counts_and_shows_several_reviews(folder: Path) -> None:
    """Witness: counted by hand."""
    write_decisions(folder / "ann.csv", "Ann", "keep", "reject", "reject", "", "keep", "")
    write_decisions(folder / "bea.csv", "", "reject", "reject", "", "", "keep", "")
    options = "--review ann.csv --review bea.csv --reviewer Ann --out r.html"
    printed = succeed(folder, "review", "triplets.csv", *options.split())
    assert printed.splitlines() == [
        "Ann: 4 of 6 triplets decided, 2 rejected",
        "bea: 3 of 6 triplets decided, 2 rejected",
        "rejected by at least one reviewer: 3; reviewers disagree: 1",
    ]
    items = read_page_data(folder / "r.html")["items"]
    assert [item["decision"] for item in items[:2]] == [[["keep", ""]], [["reject", "odd"]]]
    assert items[0]["others"] == [["bea", "reject", "odd"]]


def test_repeated_rows_are_counted_once(folder: Path) -> None:
    """Witness: the output and page of the same reviews, each given once."""
    write_decisions(folder / "ann.csv", "Ann", "keep", "reject", "reject", "", "keep", "")
    write_decisions(folder / "bea.csv", "Bea", "reject", "reject", "", "", "keep", "")
    rows = (folder / "bea.csv").read_text().splitlines(keepends=True)
    (folder / "twice.csv").write_text("".join([*rows, *rows[1:]]))
    reviews = read_reviews([folder / "ann.csv", folder / "bea.csv"])
    write_review(folder / "both.csv", reviews.decisions)
    printed, items = [], []
    for names in ("ann.csv bea.csv", "ann.csv both.csv twice.csv"):
        options = [option for name in names.split() for option in ("--review", name)]
        printed.append(succeed(folder, "review triplets.csv --out r.html", *options))
        items.append(read_page_data(folder / "r.html")["items"])
    assert printed[0] == printed[1]
    assert items[0] == items[1]


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
def test_mistakes_are_reported_before_writing(folder: Path, options: str, message: str) -> None:
    write_decisions(folder / "ann.csv", "Ann", "keep", "reject", "reject", "", "keep", "")
    sentence = PAIRS[0].sentence_1
    assert sentence
    (folder / "few.csv").write_text(f"sentence,ngram\n{sentence.text},-1\n")
    result = run(folder, "review", *options.split(), status=2)
    assert message in result.stderr
    assert not (folder / "r.html").exists()


def test_flags_depend_on_the_given_text_and_lists(folder: Path) -> None:
    (folder / "blocked.txt").write_text("nobody\n")
    (folder / "words.csv").write_text("word,count\nnobody,3000000\nmade,1000000\n")
    options = "--text words.csv --blocked blocked.txt --language any --often 9 --rare 2.9"
    succeed(folder, "review", "triplets.csv", *options.split(), "--out", "r.html")
    page_data = read_page_data(folder / "r.html")
    explanations = dict(page_data["flags"])
    names = [*explanations]
    assert "Zipf frequency below 2.9" in explanations["rare word"]
    assert "words.csv" in explanations["rare word"]
    frequent = "A new word of a synthetic sentence occurs in more than 9 items."
    assert explanations["word in many items"].startswith(frequent)
    details = [(names[kind], text) for kind, text in page_data["items"][0]["flags"]]
    assert ("block list", "“Nobody” is a blocked word.") in details
    assert ("rare word", "“ngram” is rare (Zipf 2.4).") in details


@contextmanager
def serve_review(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
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


def interrupt_during_a_decision(url: str, process: subprocess.Popen[str]) -> str:
    """Return the last messages of the process."""
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


def test_served_review_is_saved_resumed_and_interrupted(folder: Path) -> None:
    """The second run is quiet and is interrupted while a decision arrives."""
    decision = {"item_id": IDS[0], "decision": "reject", "reason": "rude"}
    for number in range(2):
        options = ("--port", "0", "--reviewer", " Ann  B ", *["--quiet"] * number)
        with serve_review(folder, *options) as (url, process):
            assert url.startswith("http://127.0.0.1:")
            page = httpx2.get(url, verify=False).text
            fingerprint = re.search(r'"fingerprint": "(\w+)"', page)
            assert fingerprint
            body = {"fingerprint": fingerprint[1], "decisions": [decision]}
            assert httpx2.post(f"{url}decisions", json=body, verify=False).status_code == 200
            decision |= {"item_id": IDS[1]}
            if number:
                assert interrupt_during_a_decision(url, process) == ""
        assert process.returncode in (0, 130)
    review = read_reviews([folder / "review-Ann_B.csv"])
    assert review.rejected == set(IDS[:2])
    assert {item.reviewer for item in review.decisions} == {"Ann B"}
    # Decisions on another set of items are not overwritten
    content_before = (folder / "review-Ann_B.csv").read_bytes()
    write_table(folder / "triplets.csv", columns_of(Triplet, TRIPLETS[2:]))
    command = "review triplets.csv --out review.html --serve --reviewer"
    messages = run(folder, command, "Ann B", status=2).stderr
    assert "review-Ann_B.csv already exists" in messages
    assert "lacks 2 of 6" in messages
    assert (folder / "review-Ann_B.csv").read_bytes() == content_before
