"""A study with a model of the hub that gets a new commit."""

import json
import re
from collections.abc import Callable
from contextlib import chdir
from itertools import combinations
from pathlib import Path

from contstim.items.scores import ScoreTable
from contstim.study.handing_on.facts import StudyFacts
from contstim.study.handing_on.texts import methods
from contstim.study.study_file import read_study
from contstim.study.verification import FileState, verify_folder
from contstim.words.sentence import Sentence
from tests.study import small

STUDY = """\
title = "Hub"
[texts]
training = "corpus.txt"
natural = "more.txt"
[models]
unigram = { train = "ngram", order = 1 }
small = "hf:someone/small"
prompted = { same = "small", rule = "chain", context = ". " }
again = { model = "hf:someone/small@chain", context = "A day. " }
[vocabulary]
[sentences]
words = "8"
[score]
"""


def test_new_commit_repeats_stages_that_load_the_model(
    tmp_path: Path, english: list[Sentence], unseen: list[Sentence], hub_model: Callable[[str], str]
) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    for name, sentences in (("corpus.txt", english[:400]), ("more.txt", unseen[:60])):
        (folder / name).write_text("".join(f"{s.text}\n" for s in sentences), encoding="utf-8")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    assert hub_model("a" * 40) == "someone/small"
    assert small.run(folder).done == ("model unigram", "vocabulary", "sentences", "score sentences")
    assert small.run(folder).done == ()
    assert not verify_folder(folder).wrong
    hub_model("b" * 40)
    stale = {file.path for file in verify_folder(folder).wrong if file.state is FileState.STALE}
    assert {"results/vocabulary.txt", "results/scores.csv"} <= stale
    reasons: dict[str, tuple[str, ...]] = {}
    study_run = small.run(
        folder, begin=lambda stage, examination: reasons.update({stage.name: examination.reasons})
    )
    assert study_run.done == ("vocabulary", "score sentences")
    assert reasons["score sentences"] == (f"someone/small {'a' * 40} → {'b' * 40}",)
    assert not verify_folder(folder).wrong
    _check_contexts(folder)


def _check_contexts(folder: Path) -> None:
    """Check scores, record and methods of models that differ in rule and context."""
    table = ScoreTable.from_file(folder / "results" / "scores.csv")
    columns = [table.column(name) for name in ("small", "prompted", "again")]
    assert all((first != second).any() for first, second in combinations(columns, 2))
    record = json.loads((folder / "results" / "scores.csv.meta.json").read_text("utf-8"))
    tokens = {name: entry["context_tokens"] for name, entry in record["models"].items()}
    assert tokens["small"] == ["<|endoftext|>"]
    assert tokens["prompted"] == ["."]
    assert tokens["again"][-1] == "."
    assert tokens["unigram"] == []
    with chdir(folder):
        text = methods(StudyFacts(read_study("study.toml"))).markdown()
    for fact in ("`<|endoftext|>`", "context `.`", "rule chain", "b" * 40, "parameters"):
        assert fact in text
    for name in ("unigram", "small", "prompted", "again"):
        assert re.search(rf"\b{name} (is|was) [^;]*; it scores", text)
