"""A page's settings, which the researcher decides, and study.json, which page and server read."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from contstim.errors import InputError
from contstim.experiments.design.golan2023 import SECONDS_PER_TRIAL
from contstim.experiments.platforms.lists import check_trials
from contstim.experiments.platforms.texts import LANGUAGES, Language, has_texts, labels
from contstim.experiments.responses.questionnaire import Question
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition
from contstim.options import Help

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.items.stimuli import Trial


STUDY = "STUDY_ID"
PROLIFIC = ("PROLIFIC_PID", STUDY, "SESSION_ID")
SIGNED = "participant"
"""Parameter of the page's address whose value the parameter `token` proves."""
IDENTITY = (*PROLIFIC, SIGNED, "sona_id", "workerId", "assignmentId", "hitId")
"""Parameters of the page's address by which platforms say who somebody is."""
VISIT = ("SESSION_ID", "assignmentId", "hitId")
"""Those that are another each time the same person comes."""
_OTHER_PARAMETERS = {"group", "fresh", "simulate", "token"}


def check_web_address(address: str) -> None:
    """Refuse what is not an address of the web, such as `javascript:…` or a bare host.

    Raises:
        InputError: it begins with neither https:// nor http://, or names no host.
    """
    try:
        parts = urlsplit(address)
        proper = parts.scheme in ("http", "https") and bool(parts.netloc)
    except ValueError:
        proper = False  # brackets that do not close, as of an IPv6 host
    if not proper:
        raise InputError(
            f"{address!r} is not a web address; it must begin with https:// or http://."
        )


SaveTo: TypeAlias = Literal["server", "datapipe", "jatos", "download"]
"""Destination of answers."""

DATAPIPE = "https://pipe.jspsych.org/api/"


@dataclass(frozen=True)
class PageSettings:
    """Settings of what a page shows and does beside its trials.

    Attributes:
        save: where answers go: `contstim collect`, DataPipe (which writes to the OSF), JATOS, or a
            file that the participant downloads.
        datapipe_id: DataPipe's name of the experiment; needed there, empty elsewhere.
        datapipe_address: DataPipe's API, with a slash at the end.
        completion_code: what participants see when all is saved; empty: none, or from the server
            a code for each participant unless there is a redirect.
        redirect: where they go then, such as Prolific's completion link; empty: nowhere.
        return_link: where those go who decline, fail a check, or come when the study is full;
            empty: nowhere.
        title: of the browser's window; empty: `heading`.
        language: of the sentences and texts, as HTML names it.
        practice: a table with sentence_1 and sentence_2 to begin with; None: no practice, or that
            of an earlier export into the same folder.
        identify: parameters of the page's address, beside `IDENTITY`, that say who somebody is.
        identities: whether participants.csv has them hashed or plain.
        questions: a table of questions (`read_questions`); None: none, or that of an earlier export
            into the same folder.
        check_attempts: how often the instructions are shown until their check is right.
        break_every: pairs after which a page offers a break; 0 for none.
        deadline: seconds after which the next pair comes, and the answer is missing; 0 for none.
        vendor: copy jsPsych into the folder, so that the page needs no other server.
        library: a folder with jsPsych's files to copy; None: they are fetched from npm.

    Raises:
        InputError: settings that do not fit together, or an address that cannot be one.
    """

    save: Annotated[
        SaveTo, Help("Where answers go: contstim collect, the OSF, JATOS, or a download.")
    ] = "server"
    datapipe_id: Annotated[str, Help("With --save datapipe: the experiment's ID there.")] = ""
    datapipe_address: str = DATAPIPE
    completion_code: Annotated[str, Help("What participants see when all answers are saved.")] = ""
    redirect: Annotated[
        str, Help("Where they go then, as Prolific's link; {sona_id} becomes theirs.")
    ] = ""
    return_link: Annotated[
        str,
        Help("Where those go who decline, or come when the study is full, back to the platform."),
    ] = ""
    title: Annotated[str, Help("Of the browser's window; by default of the language.")] = ""
    language: Language = "en"
    practice: Annotated[Path | None, Help("To practise on: a table sentence_1, sentence_2.")] = None
    questions: Annotated[
        Path | None,
        Help(
            "Questions to ask: a table name, when (before, after, check), kind, question, options."
        ),
    ] = None
    check_attempts: Annotated[
        int, Help("How often people read the instructions until checks are right.", at_least=1)
    ] = 2
    break_every: Annotated[int, Help("Pairs between offered breaks; 0 for none.", at_least=0)] = 0
    deadline: Annotated[float, Help("Seconds to answer a pair; 0 for any time.", at_least=0)] = 0.0
    vendor: Annotated[bool, Help("Copy jsPsych into the folder, from npm: works offline.")] = False
    identify: Annotated[
        tuple[str, ...],
        Help(
            "Further parameters of the page's address that say who somebody is; kept as those of "
            "Prolific, SONA, MTurk and `participant`."
        ),
    ] = ()
    identities: Annotated[
        Literal["hashed", "plain"],
        Help("These in participants.csv of `contstim collect`: hashed, or as they stand."),
    ] = "hashed"
    library: Annotated[
        Path | None,
        Help(
            "Copy jsPsych from this folder (an earlier `vendor`, or node_modules).",
            flag="--vendor-from",
            folder=True,
        ),
    ] = None

    @property
    def has_secret(self) -> bool:
        """True if the settings hold what participants get for taking part."""
        return bool(self.completion_code or self.redirect)

    @property
    def marks(self) -> tuple[str, ...]:
        """Marks of what a page has that not all have; see `texts.text_of`."""
        has = {"break": self.break_every, "deadline": self.deadline}
        # Of the server alone, and where no code or link is for all: see `Service.complete`
        personal = self.save == "server" and not self.has_secret
        code = "personal_code" if personal else "no_code"
        return (*(mark for mark, value in has.items() if value), code)

    @property
    def heading(self) -> str:
        """The title; where none is given, what the page is about in its language."""
        spoken = self.language if has_texts(self.language) else LANGUAGES[0]
        return self.title or labels(spoken, "title")["title"]

    def __post_init__(self) -> None:
        if self.title and not self.title.strip():
            raise InputError("The page needs a title.")
        if (self.save == "datapipe") != bool(self.datapipe_id):
            raise InputError(
                "Saving to DataPipe needs the experiment's ID on pipe.jspsych.org (`datapipe_id`), "
                "and nothing else does."
            )
        # It becomes part of a script and of an address, where nothing needs to be escaped then.
        if not re.fullmatch(r"[A-Za-z0-9_-]*", self.datapipe_id):
            raise InputError(f"{self.datapipe_id!r} is not a DataPipe ID: letters and digits only.")
        if not re.fullmatch(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", self.language):
            raise InputError(f"`language` must be such as en, de or pt-BR, not {self.language!r}.")
        for name in self.identify:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) or name in _OTHER_PARAMETERS:
                raise InputError(
                    f"`identify` names parameters of an address, in letters, digits, - and _, but "
                    f"none of {', '.join(sorted(_OTHER_PARAMETERS))}; {name!r} is none."
                )
        if 0 < self.deadline < 1:
            raise InputError(
                f"`deadline` must be 1 second or more, or 0 for none, not {self.deadline:g}: "
                "buttons wake up a quarter of a second after a pair appears."
            )
        for address in filter(None, (self.redirect, self.return_link, self.datapipe_address)):
            check_web_address(address)


_VERSION = 2
_AS_SET = ("check_attempts", "break_every", "deadline", "identities", "return_link")
_MINUTES_OF_READING = 3  # consent, instructions, examples, debriefing
# Numbers, because participants can read the source of a page.
_STRATA = {condition: number for number, condition in enumerate(Condition)}

Text = Annotated[str, Field(min_length=1)]


class PageTrial(BaseModel):
    """A trial as the page shows it: sentences without full stops, a number for the condition.

    Where it stands for another trial since a review, it has that one's turn and side.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    trial_id: Text
    sentence_1: Text
    sentence_2: Text
    stratum: int
    instead_of: str = ""

    @model_serializer(mode="wrap")
    def _brief(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The fields, without what few trials say of themselves."""
        return {name: value for name, value in dump(self).items() if value != ""}


class PageStudy(BaseModel):
    """The content of study.json.

    Attributes:
        version: of this form.
        id: changes with the trials: a browser does not go on with another version of them.
        title: of the page.
        minutes: that the longest group takes, with reading.
        scale: of the answers.
        check_attempts: how often the instructions are shown until their check is right.
        break_every: pairs after which a page offers a break; 0 for none.
        deadline: seconds to answer a pair; 0 for any time.
        save: where answers go, under `to`; for DataPipe also `experiment` and `address`.
        completion: `code` and `redirect`; None where the server alone knows them.
        texts: by the names of their files.
        questions: beside the trials, in their order.
        groups: the trials of each group, under its number.
        identify: parameters of the address that say who somebody is.
        visit: those of them that are another each time the same person comes.
        identities: hashed or plain, in participants.csv.
        return_link: where those go who do not take part; empty for nowhere.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    version: int
    id: Text
    title: Text
    minutes: int
    scale: Scale
    check_attempts: int
    break_every: int
    deadline: float
    save: dict[str, str]
    completion: dict[str, str | None] | None
    texts: dict[str, str]
    questions: list[Question]
    groups: Annotated[
        dict[
            Annotated[str, Field(pattern="^[1-9][0-9]*$")],
            Annotated[list[PageTrial], Field(min_length=1)],
        ],
        Field(min_length=1),
    ]
    identify: list[Text]
    visit: list[Text]
    identities: Literal["hashed", "plain"]
    return_link: str

    @property
    def public(self) -> dict[str, Any]:
        """The same without code and redirect, which the server hands out, only on completion."""
        return self.model_dump() | {"completion": None}

    @property
    def code(self) -> str | None:
        """Code that a participant hands in on completion; None for none that is stated."""
        return (self.completion or {}).get("code") or None

    @property
    def redirect(self) -> str | None:
        """Address where the browser goes after completion; None for none."""
        return (self.completion or {}).get("redirect") or None

    @cached_property
    def trials(self) -> dict[str, frozenset[str]]:
        """Identifiers of the trials of each group, in the order of their numbers."""
        groups = sorted(self.groups.items(), key=lambda group: int(group[0]))
        return {group: frozenset(trial.trial_id for trial in trials) for group, trials in groups}

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of all groups, trials and sentences, whatever their order in the file."""
        canonical = [
            [group, sorted([t.trial_id, [t.sentence_1, t.sentence_2]] for t in self.groups[group])]
            for group in self.trials
        ]
        if self.scale is not Scale.CONFIDENCE:
            canonical.append([self.scale, []])
        return hashlib.sha256(json.dumps(canonical).encode()).hexdigest()

    @property
    def script(self) -> str:
        """study.js: the same for a page opened from disk, which may not read files.

        The collecting server hands out codes and redirects itself, so there the page does not hold
        them.
        """
        content = self.public if self.save["to"] == "server" else self.model_dump()
        script = json.dumps(content, indent=1)
        return f'"use strict";\n\ncontstim.study = {script};\n'


def build_study(
    trials: Sequence[Trial],
    settings: PageSettings,
    texts: Mapping[str, str],
    questions: Sequence[Question] = (),
) -> PageStudy:
    """The content of study.json.

    Raises:
        InputError: the trials cannot be traced back.
        SentenceError: a text has no words.
    """
    check_trials(trials)
    groups: dict[str, list[PageTrial]] = {}
    # Sorted, so that the same trials in another order are the same version.
    for trial in sorted(trials, key=lambda trial: (trial.group, trial.trial_id)):
        groups.setdefault(str(trial.group), []).append(
            PageTrial(
                trial_id=trial.trial_id,
                sentence_1=trial.sentence_1.shown,
                sentence_2=trial.sentence_2.shown,
                stratum=_STRATA[trial.condition],
                instead_of=trial.instead_of,
            )
        )
    # Only what people see decides the identifier: a text may be edited during an experiment.
    content: dict[str, Any] = {
        group: [trial.model_dump() for trial in own] for group, own in groups.items()
    }
    scale = trials[0].scale
    if scale is not Scale.CONFIDENCE:
        content["scale"] = scale
    # `{minutes}` of the consent text: the longest group at the pace of 2023, and reading.
    pairs = max(map(len, groups.values()))
    save = {"to": str(settings.save)}
    if settings.save == "datapipe":
        save |= {"experiment": settings.datapipe_id, "address": settings.datapipe_address}
    return PageStudy(
        version=_VERSION,
        id=hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16],
        title=settings.heading,
        minutes=math.ceil(pairs * SECONDS_PER_TRIAL / 60) + _MINUTES_OF_READING,
        scale=scale,
        save=save,
        completion={
            "code": settings.completion_code or None,
            "redirect": settings.redirect or None,
        },
        texts=dict(texts),
        questions=list(questions),
        groups=groups,
        identify=list(dict.fromkeys((*IDENTITY, *settings.identify))),
        visit=list(VISIT),
        **{name: getattr(settings, name) for name in _AS_SET},
    )
