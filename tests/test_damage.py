"""Damaged files of every kind that a command reads.

A reader raises a `ContstimError` that names the file, or reports unreadable rows, or, if the damage
is harmless, returns the same result. It writes nothing. A new reader needs one line in `READERS`.
"""

import csv
import gzip
import json
import pickle
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from contstim.english.paradigm import read_paradigms
from contstim.errors import ContstimError
from contstim.evaluation.acceptability import read_judgements
from contstim.evaluation.judged_scores import published_scores
from contstim.evaluation.minimal_pairs import (
    read_human_agreement,
    read_minimal_pairs,
    read_published_accuracies,
)
from contstim.experiments.analysis.controls import read_features
from contstim.experiments.analysis.families import read_contrasts
from contstim.experiments.collection.database import Recorder
from contstim.experiments.collection.service import read_study
from contstim.experiments.collection.tables import collected_responses
from contstim.experiments.platforms.gorilla import import_gorilla
from contstim.experiments.platforms.jspsych.folder import keep_texts
from contstim.experiments.platforms.jspsych.reading import import_jspsych
from contstim.experiments.platforms.jspsych.study import PageSettings
from contstim.experiments.platforms.pcibex import import_pcibex
from contstim.experiments.platforms.psychopy import import_psychopy
from contstim.experiments.platforms.qualtrics import import_qualtrics
from contstim.experiments.platforms.texts import text_of
from contstim.experiments.reproduce.published import load_plain
from contstim.experiments.responses.table import read_responses
from contstim.files.tables import read_table, write_table
from contstim.items import stimuli
from contstim.items.reviews import read_reviews
from contstim.items.scale import Scale
from contstim.items.scores import ScoreTable, read_pair_counts, read_token_counts
from contstim.models.training.acceptability import read_annotations
from contstim.store import Store, TripletStore
from contstim.words.corpus import read_sentences
from contstim.words.frequencies import read_frequencies
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary, read_repeatable
from tests.damages import DAMAGES, Damage, json_lines
from tests.experiments.collection.servers import small_study
from tests.experiments.stimuli import new_trial

TRIALS = [
    new_trial(f"t{n}", 1, a, b, condition=stimuli.Condition.CATCH)
    for n, (a, b) in enumerate([("A b c.", "C b a."), ("D e f.", "F e d."), ("G h.", "H g.")])
]

TRIALS_CSV = """\
trial_id,group,condition,model_1,model_2,sentence_1,sentence_2,kind_1,kind_2,source_id
ta,1,catch,,,A b c.,C b a.,natural,shuffled,
tb,2,natural-synthetic,m,n,D e f.,F e d.,natural,synthetic_1,x
"""
PAIRS_CSV = """\
trial_id,model_1,model_2,sentence_1,sentence_2,row_1,row_2,rank_1_model_1,rank_1_model_2,\
rank_2_model_1,rank_2_model_2
pa,m,n,A b.,C d.,0,1,0.25,0.75,0.75,0.25
pb,m,n,E f.,G h.,2,3,0.25,0.75,0.75,0.25
"""
LOG_PROBS = ",".join(
    f"log_prob_{s}_model_{m}" for s in ("natural", "synthetic_1", "synthetic_2") for m in (1, 2)
)
TRIPLETS_CSV = f"""\
triplet_id,model_1,model_2,natural,synthetic_1,synthetic_2,{LOG_PROBS},controversiality
ta,m,n,A b.,C b.,A d.,-3.5,-3.5,-6.5,-3,-3,-6.5,6
tb,m,n,E f.,G f.,E h.,-3.5,-3.5,-6.5,-3,-3,-6.5,6
"""
REVIEW_CSV = """\
reviewer,item_id,kind,source_id,condition,group,model_1,model_2,sentence_1,sentence_2,sentence_3,\
decision,reason
Ann,pa,pair,,,0,m,n,A b.,C d.,,keep,
Ann,pb,pair,,,0,m,n,E f.,G h.,,reject,odd
Ann,pc,pair,,,0,m,n,I j.,K l.,,,
"""
RESPONSES_CSV = """\
participant,group,trial_id,rating,left,position,rt_ms
ann,1,t0,2,1,1,1200.5
ann,1,t1,5,2,2,900.5
"""
SCORES_CSV = "sentence,m,n\nA b.,-3.5,-2.5\nC d.,-1.5,-4\n"
JUDGED_CSV = """\
id,item,label,phenomenon,sentence,judgement
a,x,g,agreement,The dog sleeps,6.5
b,x,*,agreement,The dog sleep,2.25
"""
HUMANS_CSV = (
    "AssignmentStatus,Answer.english,Answer.navtive,"
    + ",".join(
        f"Input.item_{i}_condition,Input.field_{i}_1,Input.field_{i}_2,Answer.Choice{i}"
        for i in range(1, 6)
    )
    + "\nApproved,1,1,"
    + ",".join(f"x_1ans{1 + i % 2},s{i} a,s{i} b,1. s" for i in range(5))
    + "\n"
)
GORILLA_CSV = """\
Zone Name,trial_id,shown_left,Reaction Time,Participant Private ID
resp2,t0,1,1200,ann
resp5,t1,2,900,ann
"""
JSPSYCH_CSV = """\
participant,trial_id,left,rating,response,rt
ann,t0,1,2,1,1200
ann,t1,2,5,1,900
"""
PSYCHOPY_CSV = """\
trial_id,left,rating.keys,rating.rt,participant
t0,1,2,1.25,ann
t1,2,5,0.75,ann
"""
QUALTRICS_CSV = """\
ResponseId,Status,Q1,T1_Page Submit,Q2,T2_Page Submit
R_a,0,2,1.25,5,0.75
R_b,0,2,1.25,5,0.75
"""
KEY_CSV = "tag,trial_id,left,position\nQ1,t0,1,1\nQ2,t1,2,2\n"
PCIBEX_CSV = """\
# 1. Results reception time.
# 2. MD5 hash of participant's IP address.
# 3. Order number of item.
# 4. PennElementType.
# 5. PennElementName.
# 6. Parameter.
# 7. Value.
# 8. EventTime.
# 9. trial_id.
# 10. left.
1700000000,abc,2,PennController,x,_Trial_,Start,1700000001000,t0,1
1700000000,abc,2,Selector,rating,Selection,3,1700000002000,t0,1
"""
PARADIGMS = """\
field = "morphology"
phenomenon = "mine"

[simple]
good = "NAME[sem=adult, agr=?a] REFL"
bad = "NAME"
"""


def _read_store(path: Path) -> object:
    """Return the content of a store that commands read."""
    with Store(path) as store:
        triplets = TripletStore(store)
        log_probs = store.log_probs("f", ["A b.", "C d."]).tolist()
        return log_probs, triplets.naturals(), triplets.find("key"), triplets.floors("f", "w", 0.25)


def _content_writer(name: str, write: Callable[[Path], object]) -> Callable[[], bytes]:
    """Return a function that returns the content of a file written by `write`."""

    def content() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / name)
            return (Path(folder) / name).read_bytes()

    return content


def _write_store(path: Path) -> None:
    with Store(path) as store:
        texts = ["A b.", "C d.", *(f"Sentence {n}." for n in range(500))]
        store.save("f", "{}", texts, -np.arange(1.0, len(texts) + 1))


def _write_answers(path: Path) -> None:
    Recorder(path, "fingerprint").close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO participant (number, participant, study_group, seed, joined, seen) "
            "VALUES (1, 'p-1', '1', 3, 0, 0)"
        )
        rows = [(1, f"trial-{n}", 3, 1, n + 1, 900.5, 0, "key", 0, 0) for n in range(100)]
        connection.executemany(f"INSERT INTO response VALUES ({', '.join('?' * 10)})", rows)
        connection.commit()
        connection.execute("PRAGMA journal_mode = DELETE")


def _write_study(path: Path) -> None:
    small_study(path.parent, groups=1, trials=1, questions=[], completion={"code": "abc"})
    path.write_text(json.dumps(json.loads(path.read_text()), indent=1))


SCORES = ScoreTable(
    tuple(map(Sentence.parse, ("A b.", "C d."))), ("m",), np.array([[-1.0], [-2.0]])
)


def _as_json_lines(text: str) -> bytes:
    """Return a CSV table as JSON lines."""
    header, *lines = text.splitlines()
    rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    return json_lines([{n: _parse_cell(cell) for n, cell in row.items()} for row in rows])


def _parse_cell(cell: str) -> object:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def _read_page(path: Path) -> object:
    return keep_texts(path.parent, PageSettings(), into=path.parent)


FLAT = "id,m\na,-3.5\nb,-2.5\n"


# Damages after which a file is valid but has other content
SIGNED = {"negative": "numbers may have either sign"}
REPEATED = {"a row twice": "a repeated row counts, or is reported, twice"}
PARTICIPANTS = {
    **REPEATED,
    "the last column missing": "it is optional, and a note says how participants are named",
    "a column missing": "a note says that the file is one participant",
    "a name missing": "a note says that the file is one participant",
    "empty cells": "a note counts the rows that are not trials",
    "null for a text": "a note counts the rows that are not trials",
    "null for a number": "a missing reaction time",
    "not a number": "a missing rating or reaction time, as pandas writes it",
}
UNKNOWN_JUDGEMENT = "a missing judgement"
JUDGEMENTS = {
    **SIGNED,
    "a column missing": "rows without identifiers are numbered",
    "a name missing": "rows without identifiers are numbered",
    "null for a number": UNKNOWN_JUDGEMENT,
    "not a number": UNKNOWN_JUDGEMENT,
}
PAGE = {
    "missing": "the default text is used",
    "header only": "a page without examples",
    "a row twice": "a page may show a pair twice",
    "empty": "a page may omit a text",
}
LABELS = dict.fromkeys(
    ("words for numbers", "underscores in numbers", "not a number", "digits of another script"),
    "a label is a text",
)
LABELS |= dict.fromkeys(("infinite", "huge", "long", "negative"), "a label is a text")
NEW = {"missing": "a missing store is created", "empty": "an empty file is a new store"}


KINDS = {"jsonl": "json", "txt": "lines", "md": "lines"}


@dataclass(frozen=True)
class Reader:
    """A kind of file with a valid example, its reader and its harmless damages."""

    name: str  # file name
    content: str | bytes | Callable[[], bytes]  # a valid example
    read: Callable[[Path], object]  # the reader of commands
    # Content of other files in the folder, by name
    other_files: dict[str, str] = field(default_factory=dict)
    # Damages that no reader can detect, and why
    harmless: dict[str, str] = field(default_factory=dict)
    kind: str = ""  # key of `DAMAGES`; by default from the file extension

    @property
    def damages(self) -> dict[str, Damage]:
        ending = self.name.rpartition(".")[2]
        return DAMAGES.get(self.kind or KINDS.get(ending, ending), DAMAGES["binary"])


def _read_judged_scores(path: Path) -> object:
    return published_scores(read_judgements(path.parent / "judged.csv"), path)


READERS = {
    "trials": Reader("t.csv", TRIALS_CSV, stimuli.read_trials),
    "trials as JSON lines": Reader(
        "t.jsonl",
        _as_json_lines(TRIALS_CSV),
        stimuli.read_trials,
        harmless={"null for a text": "a trial need not have a source"},
    ),
    "pairs": Reader(
        "p.csv", PAIRS_CSV, stimuli.read_pairs, harmless={"header only": "a selection may be empty"}
    ),
    "triplets": Reader(
        "t.csv",
        TRIPLETS_CSV,
        stimuli.read_triplets,
        harmless={"header only": "a study may have no triplets"} | SIGNED,
    ),
    "a review": Reader(
        "r.csv",
        REVIEW_CSV,
        lambda path: read_reviews([path]),
        harmless={
            "a row twice": "a repeated decision is one decision",
            "negative": "the trial determines its group",
        },
    ),
    "responses": Reader("r.csv", RESPONSES_CSV, read_responses, harmless=REPEATED),
    "responses as JSON lines": Reader(
        "r.jsonl",
        _as_json_lines(RESPONSES_CSV),
        read_responses,
        harmless={"numbers for all texts": "an identifier may be a number"} | PARTICIPANTS,
    ),
    "scores": Reader(
        "s.csv",
        SCORES_CSV,
        ScoreTable.from_file,
        harmless=REPEATED | SIGNED | {"the last column missing": "a column is a model"},
    ),
    "scores as arrays": Reader(
        "s.npz", _content_writer("s.npz", SCORES.write), ScoreTable.from_file
    ),
    "a Parquet table": Reader(
        "t.parquet",
        _content_writer("t.parquet", lambda p: write_table(p, {"sentence": ["A b."] * 99})),
        read_table,
    ),
    "stimuli": Reader(
        "s.csv",
        b"sentence\nA b.\nC d.\n",
        stimuli.read_stimuli,
        harmless={"a ragged row": "it is a blank line"},
    ),
    "a text": Reader("t.txt", b"A b.\nC d.\n", lambda path: list(read_sentences(path))),
    "a compressed text": Reader(
        "t.txt.gz", lambda: gzip.compress(b"A b.\nC d.\n" * 99), lambda p: list(read_sentences(p))
    ),
    "a vocabulary": Reader("v.txt", b"[initial]\nA\nB\n[inner]\nc\nd\n", Vocabulary.load),
    "repeatable words": Reader("w.txt", b"the\nof\n", read_repeatable),
    "counts of pairs": Reader(
        "c.csv", b"model_1,model_2,per_pair\nm,n,3\nm,o,4\n", read_pair_counts
    ),
    "counts of tokens": Reader(
        "c.csv",
        b"sentence,model,position,tokens\nA b.,m,0,1\nA b.,m,1,2\n",
        read_token_counts,
        harmless=REPEATED,
    ),
    "contrasts": Reader(
        "c.csv", b"first,second\nm,n\nm,ceiling\n", lambda p: read_contrasts(p, ("m", "n"))
    ),
    "features": Reader(
        "f.csv", b"sentence,length\nA b.,2.5\nC d.,3.5\n", read_features, harmless=SIGNED
    ),
    "frequencies": Reader("f.csv", b"word,count\na,3\nb,4\n", read_frequencies),
    "annotations": Reader(
        "a.csv", b"sentence,label,f\nA b.,1,0\nC d.,0,1\n", read_annotations, harmless=REPEATED
    ),
    "judged sentences": Reader("j.csv", JUDGED_CSV, read_judgements, harmless=JUDGEMENTS),
    "pairs of judged sentences": Reader(
        "p.csv",
        b"gramm_id,ungramm_id\na,b\n",
        lambda p: read_judgements(p.parent / "judged.csv", p),
        {"judged.csv": JUDGED_CSV},
    ),
    "scores of judged sentences": Reader(
        "s.csv", FLAT, _read_judged_scores, {"judged.csv": JUDGED_CSV}, harmless=SIGNED
    ),
    "minimal pairs": Reader(
        "b.jsonl",
        json_lines(
            [
                {
                    "sentence_good": f"The dog {n} sleeps.",
                    "sentence_bad": f"The dog {n} sleep.",
                    "UID": "u",
                    "linguistics_term": "l",
                    "pairID": str(n),
                }
                for n in range(3)
            ]
        ),
        lambda p: read_minimal_pairs([p]),
    ),
    "people's choices": Reader("h.csv", HUMANS_CSV, read_human_agreement, harmless=REPEATED),
    "published accuracies": Reader(
        "m.jsonl",
        json_lines([{"UID": "u", "gpt2": 0.5}, {"UID": "v", "gpt2": 0.75}]),
        read_published_accuracies,
        harmless={"numbers for all texts": "an identifier may be a number"},
    ),
    "paradigms": Reader("p.toml", PARADIGMS, read_paradigms),
    "Gorilla's data": Reader(
        "g.csv", GORILLA_CSV, lambda p: import_gorilla([p], TRIALS), harmless=PARTICIPANTS
    ),
    "jsPsych's data": Reader(
        "j.csv", JSPSYCH_CSV, lambda p: import_jspsych([p], TRIALS), harmless=PARTICIPANTS
    ),
    "jsPsych's data as JSON lines": Reader(
        "j.txt",
        _as_json_lines(JSPSYCH_CSV),
        lambda p: import_jspsych([p], TRIALS),
        harmless=PARTICIPANTS,
        kind="json",
    ),
    "PsychoPy's data": Reader(
        "p.csv", PSYCHOPY_CSV, lambda p: import_psychopy([p], TRIALS), harmless=PARTICIPANTS
    ),
    "Qualtrics' data": Reader(
        "q.csv",
        QUALTRICS_CSV,
        lambda p: import_qualtrics([p], TRIALS, key=p.parent / "key.csv"),
        {"key.csv": KEY_CSV},
        harmless=PARTICIPANTS,
    ),
    "the key to Qualtrics' data": Reader(
        "k.csv",
        KEY_CSV,
        lambda p: import_qualtrics([p.parent / "q.csv"], TRIALS, key=p),
        {"q.csv": QUALTRICS_CSV},
    ),
    "PCIbex's data": Reader("p.txt", PCIBEX_CSV, lambda p: import_pcibex([p], TRIALS)),
    "labels of a page": Reader(
        "labels.csv", text_of("labels.csv", "en", (Scale.CONFIDENCE,)), _read_page, harmless=LABELS
    ),
    "examples of a page": Reader(
        "examples.csv",
        b"sentence_1,sentence_2,rating,explanation\nA b.,B a.,2,so\nC d.,D c.,5,so\n",
        _read_page,
        harmless=PAGE,
    ),
    "practice of a page": Reader(
        "practice.csv", b"sentence_1,sentence_2\nA b.,B a.\nC d.,D c.\n", _read_page, harmless=PAGE
    ),
    "a text of a page": Reader("consent.md", b"# Consent\n\nYes.\n", _read_page, harmless=PAGE),
    "an exported study": Reader(
        "study.json", _content_writer("study.json", _write_study), lambda p: read_study(p.parent)
    ),
    "a server's answers": Reader(
        "a.sqlite", _content_writer("a.sqlite", _write_answers), collected_responses
    ),
    "a published pickle": Reader("p.pkl", pickle.dumps(["a", "b"] * 9), load_plain),
    "a study's store": Reader(
        "s.sqlite", _content_writer("s.sqlite", _write_store), _read_store, harmless=NEW
    ),
}


def _format_result(value: object) -> str:
    if isinstance(value, ScoreTable):
        return f"{value.sentences} {value.models} {value.log_probs.tolist()}"
    if isinstance(value, Vocabulary):
        return f"{value.initial} {value.inner} {sorted(value.repeatable)}"
    return repr(value)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_refused_reported_or_harmless(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    valid_path = _write_folder(reader, tmp_path / "good")
    content = valid_path.read_bytes()
    folder = tmp_path / "folder"  # the same folder for all damages, because results may name it
    path = folder / reader.name
    shutil.copytree(valid_path.parent, folder)
    expected = _format_result(reader.read(path))
    assert expected != repr(None)
    for damage in ("missing", "a folder", *reader.damages):
        shutil.rmtree(folder)
        shutil.copytree(valid_path.parent, folder)
        if damage == "missing":
            path.unlink()
        elif damage == "a folder":
            path.unlink()
            path.mkdir()
        else:
            path.write_bytes(reader.damages[damage](content))
        content_by_file = {file: _read_bytes(file) for file in folder.rglob("*")}
        result = _try_reading(reader, path)
        if isinstance(result, ContstimError):
            assert str(folder) in str(result), f"{damage}: the error names the file"
            assert len(str(result)) < 1_500, f"{damage}: the error is short"
        else:
            is_reported = "InputError(" in result  # the result names the excluded row
            is_accepted = result == expected or damage in reader.harmless or is_reported
            assert is_accepted, f"{damage}: silently read as other content"
        for file, old_content in content_by_file.items():
            is_unchanged = _read_bytes(file) == old_content or damage in reader.harmless
            assert is_unchanged, f"{damage}: files are unchanged"


TABLES = [n for n, r in READERS.items() if r.name.endswith(".csv") and r.read is not _read_page]


@pytest.mark.parametrize("name", TABLES)
def test_tab_separated_tables_are_read_like_csv(name: str, tmp_path: Path) -> None:
    """Witness: the standard library, which writes the table with tabs."""
    path = _write_folder(READERS[name], tmp_path / "folder")
    expected = _format_result(READERS[name].read(path))
    tsv_path = path.with_suffix(".tsv")
    with path.open(encoding="utf-8", newline="") as source, tsv_path.open("w") as target:
        csv.writer(target, dialect="excel-tab").writerows(csv.reader(source))
    path.unlink()
    result = _format_result(READERS[name].read(tsv_path))
    assert result.replace(tsv_path.name, path.name) == expected


def _try_reading(reader: Reader, path: Path) -> str | ContstimError:
    try:
        return _format_result(reader.read(path))
    except ContstimError as error:
        return error


def _write_folder(reader: Reader, folder: Path) -> Path:
    folder.mkdir()
    for name, text in reader.other_files.items():
        (folder / name).write_text(text)
    path, content = folder / reader.name, reader.content
    content = content() if callable(content) else content
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _read_bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
