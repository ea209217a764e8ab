"""Artificial participants whose pages tell everything that a page can, and what of it is kept."""

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
    """A study with questions, breaks and a deadline, on the scale of its trials."""
    table = folder.with_name(f"{folder.name}-questions.csv")
    table.write_text(QUESTIONS)
    export_jspsych(trials, folder, PageSettings(questions=table, break_every=5, deadline=4.0))
    return folder


@dataclass(frozen=True, eq=False)
class WatchedParticipants(ArtificialParticipants):
    """Participants of whom pages tell by what they answer, and when they leave or miss a trial."""

    drawn: dict[tuple[int, str], tuple[Response, ...]] = field(default_factory=dict)

    def answers(
        self, number: int, name: str, *, group: int, index: int, seed: int
    ) -> tuple[Response, ...]:
        if (number, name) not in self.drawn:
            chance = random.Random(f"{number} {name}")
            own = super().answers(number, name, group=group, index=index, seed=seed)
            self.drawn[number, name] = tuple(_watched(each, chance) for each in own)
        return self.drawn[number, name]


def _watched(answer: Response, chance: random.Random) -> Response:
    away = round(chance.expovariate(1 / 3_000)) if chance.random() < 0.2 else 0
    told = replace(answer, blurs=chance.randint(1, 3) if away else 0, away_ms=float(away))
    if chance.random() < 0.05:  # the deadline
        return replace(told, rating=UNRATED, rt_ms=math.nan)
    return replace(told, input=chance.choice(("key", "mouse", "touch")))


def known(number: int) -> dict[str, Any]:
    """What participant `number` tells beside the answers."""
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


def faults(
    database: Path, people: ArtificialParticipants, run: RunSettings, journal: Path, begun: float
) -> list[str]:
    """Differences of what a server kept of everybody from what they sent and were told.

    All `people` took part to the end; the run began at `begun`, seconds since 1970.
    """
    events = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    joined = {e["number"]: e["joined"] for e in events if "joined" in e}
    codes = {e["number"]: e["code"] for e in events if "code" in e}
    names = {each["participant"]: number for number, each in joined.items()}
    numbers = range(1, run.participants + 1)
    found = [] if len(names) == len(codes) == len(numbers) else ["not everybody has completed"]

    expected = [
        answer
        for n in numbers
        for name, group, seed in [[joined[n][k] for k in ("participant", "group", "seed")]]
        for answer in people.answers(n, name, group=int(group), index=1, seed=seed)
    ]
    kept = tables.import_collected([database], people.trials).responses
    order = [(names[answer.participant], answer.position) for answer in kept]
    if [a for _, a in sorted(zip(order, kept, strict=True), key=lambda each: each[0])] != expected:
        found.append("responses are not those that were sent")
    times = [datetime.fromisoformat(answer.received).timestamp() for answer in kept]
    if not begun - 1 <= min(times) <= max(times) <= datetime.now(UTC).timestamp():
        found.append("times of arrival are not those of the run")

    rows = {
        row["participant"]: row
        for row in csv.DictReader(io.StringIO(tables.participants_csv(database, 0, plain=True)))
    }
    if rows.keys() != names.keys():
        found.append("participants are not those who joined")
    for name, number in names.items():
        told = known(number)
        right = {
            "group": joined[number]["group"],
            "seed": str(joined[number]["seed"]),
            "state": "complete",
            "answered": str(len(people.trials) // len(people.groups)),
            "simulated": "true",
            "code": codes[number],
            **{each: str(told[each]) for each in ("device", "viewport", "second_tabs")},
            **{f"{each.lower()}_plain": told["platform"].get(each, "") for each in IDS},
        }
        wrong = {key for key, value in right.items() if rows[name].get(key, "") != value}
        found += [f"{name}: {', '.join(sorted(wrong))} wrong"] if wrong else []
        if not rows[name]["joined"] <= rows[name]["completed"] <= rows[name]["seen"]:
            found.append(f"{name}: times out of order")

    answers = {(a.participant, a.question): a.answer for a in tables.collected_questions(database)}
    if answers != {
        (name, question): text
        for name, number in names.items()
        for question, text in known(number)["questions"].items()
    }:
        found.append("answers to questions are not those that were sent")
    return found
