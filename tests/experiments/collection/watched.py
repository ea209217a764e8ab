"""Artificial participants whose pages report all events, and checks of the stored data."""

import csv
import io
import json
import math
import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contstim.experiments.collection import tables
from contstim.experiments.design.artificial import ArtificialParticipants
from contstim.experiments.platforms.jspsych import PageSettings, export_jspsych
from contstim.experiments.responses.table import UNRATED, Response
from contstim.items.stimuli import Trial
from contstim.testing.participants import RunSettings

QUESTIONS = """name,when,kind,question,options,optional
age,before,number,How old are you?,18|99,
language,before,choice,Your first language?,English|another,
task,check,choice,What is to be chosen?,the longer|*the likelier,
remarks,after,text,Anything else?,,yes
"""
IDS = ("PROLIFIC_PID", "sona_id", "workerId")
DEVICES = {"phone": "390x844", "tablet": "1024x768", "computer": "1280x800"}


def export_watched(folder: Path, trials: tuple[Trial, ...]) -> Path:
    """Export a study with questions, breaks and a deadline, on the scale of its trials."""
    table = folder.with_name(f"{folder.name}-questions.csv")
    table.write_text(QUESTIONS)
    export_jspsych(trials, folder, PageSettings(questions=table, break_every=5, deadline=4.0))
    return folder


@dataclass(frozen=True, eq=False)
class WatchedParticipants(ArtificialParticipants):
    """Participants who use every device, leave the page, and miss trials."""

    cache: dict[tuple[int, str], tuple[Response, ...]] = field(default_factory=dict)

    def answers(
        self, number: int, name: str, *, group: int, index: int, seed: int
    ) -> tuple[Response, ...]:
        if (number, name) not in self.cache:
            rng = random.Random(f"{number} {name}")
            responses = super().answers(number, name, group=group, index=index, seed=seed)
            self.cache[number, name] = tuple(_add_events(response, rng) for response in responses)
        return self.cache[number, name]


def _add_events(answer: Response, rng: random.Random) -> Response:
    away_ms = round(rng.expovariate(1 / 3_000)) if rng.random() < 0.2 else 0
    response = replace(answer, blurs=rng.randint(1, 3) if away_ms else 0, away_ms=float(away_ms))
    if rng.random() < 0.05:  # missed the deadline
        return replace(response, rating=UNRATED, rt_ms=math.nan)
    return replace(response, input=rng.choice(("key", "mouse", "touch")))


def page_fields(number: int) -> dict[str, Any]:
    """Return the fields that the page of participant `number` sends in addition to responses."""
    device = [*DEVICES][number % 3]
    questions = {
        "age": str(18 + number % 80),
        "language": ("English", "another")[number % 2],
        "remarks": ("", f'"{number}";\n=1', f"Ünïcødé {number} \0")[number % 3],
    }
    return {
        "platform": {IDS[number % 3]: f"person-{number}"} if number % 5 else {},
        "device": device,
        "viewport": DEVICES[device],
        "second_tabs": number % 4,
        "questions": questions,
    }


def find_differences(
    database: Path,
    people: ArtificialParticipants,
    run: RunSettings,
    journal: Path,
    start_time: float,
) -> list[str]:
    """Describe differences between the stored data and those that participants sent.

    All `people` finish; the run begins at `start_time`, in seconds since 1970.
    """
    events = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    joined = {e["number"]: e["joined"] for e in events if "joined" in e}
    codes = {e["number"]: e["code"] for e in events if "code" in e}
    names = {record["participant"]: number for number, record in joined.items()}
    numbers = range(1, run.participants + 1)
    faults = [] if len(names) == len(codes) == len(numbers) else ["not all completed the study"]

    expected = [
        answer
        for n in numbers
        for name, group, seed in [[joined[n][k] for k in ("participant", "group", "seed")]]
        for answer in people.answers(n, name, group=int(group), index=1, seed=seed)
    ]
    data = tables.import_collected([database], people.trials).responses
    order = [(names[answer.participant], answer.position) for answer in data]
    if [a for _, a in sorted(zip(order, data, strict=True), key=lambda pair: pair[0])] != expected:
        faults.append("responses differ from those that were sent")
    times = [datetime.fromisoformat(answer.received).timestamp() for answer in data]
    if not start_time - 1 <= min(times) <= max(times) <= datetime.now(UTC).timestamp():
        faults.append("arrival times are outside the run")

    rows = {
        row["participant"]: row
        for row in csv.DictReader(io.StringIO(tables.participants_csv(database, 0, plain=True)))
    }
    if rows.keys() != names.keys():
        faults.append("participants differ from those who joined")
    for name, number in names.items():
        fields = page_fields(number)
        cells = {
            "group": joined[number]["group"],
            "seed": str(joined[number]["seed"]),
            "state": "complete",
            "answered": str(len(people.trials) // len(people.groups)),
            "simulated": "true",
            "code": codes[number],
            **{column: str(fields[column]) for column in ("device", "viewport", "second_tabs")},
            **{f"{key.lower()}_plain": fields["platform"].get(key, "") for key in IDS},
        }
        wrong = {key for key, value in cells.items() if rows[name].get(key, "") != value}
        faults += [f"{name}: {', '.join(sorted(wrong))} wrong"] if wrong else []
        if not rows[name]["joined"] <= rows[name]["completed"] <= rows[name]["seen"]:
            faults.append(f"{name}: times out of order")

    answers = {(a.participant, a.question): a.answer for a in tables.collected_questions(database)}
    if answers != {
        (name, question): text
        for name, number in names.items()
        for question, text in page_fields(number)["questions"].items()
    }:
        faults.append("answers to questions differ from those that were sent")
    return faults
