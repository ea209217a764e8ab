"""The researcher's settings of a page; study.json for the server, and study.js for the page."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from contstim.errors import InputError
from contstim.experiments.design.population import SECONDS_PER_TRIAL
from contstim.experiments.platforms.lists import check_trial_ids
from contstim.experiments.platforms.texts import LANGUAGES, Language, has_texts, labels
from contstim.experiments.responses.questionnaire import Question
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition, Trial
from contstim.options import Help
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


STUDY = "STUDY_ID"
PROLIFIC = ("PROLIFIC_PID", STUDY, "SESSION_ID")
SIGNED = "participant"
"""A parameter of the page's address; its value is valid only with the parameter `token`."""
IDENTITY = (*PROLIFIC, SIGNED, "sona_id", "workerId", "assignmentId", "hitId")
"""Parameters of the page's address by which platforms identify participants and their visits."""
VISIT = ("SESSION_ID", "assignmentId", "hitId")
"""Parameters among `IDENTITY` that differ between visits of the same person."""
_OTHER_PARAMETERS = {"group", "fresh", "simulate", "token"}


def check_web_address(address: str) -> None:
    """Check that a text is a web address.

    Raises:
        InputError: if the text does not begin with https:// or http://, or has no host.
    """
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and bool(parts.netloc)
    except ValueError:
        is_valid = False  # the address has an unbalanced bracket, such as https://[::1
    if not is_valid:
        raise InputError(
            f"{address!r} is not a web address. A web address begins with https:// or http://."
        )


@dataclass(frozen=True)
class PageSettings:
    """Settings of the content and the behaviour of a page; see also the help texts of the fields.

    Attributes:
        datapipe_address: address of DataPipe's API, with a slash at the end.
        completion_code: code for all participants. If `completion_code` and `redirect` are empty, a
            server gives each participant an individual code; with other destinations of answers,
            there is no code.
        language: HTML language code.
        practice: table of practice pairs with sentence_1 and sentence_2. None means the table of an
            earlier export into the same folder, or no practice if there is no such table.
        identify: parameters of the page's address that identify a person, in addition to
            `IDENTITY`.
        questions: table of questions (`read_questions`). None means the table of an earlier export
            into the same folder, or no questions if there is no such table.
        check_attempts: maximum number of attempts at the comprehension questions; the instructions
            are shown again before each further attempt.
        deadline: seconds until an unanswered pair is skipped as missing; 0 for no limit.
        library: folder from which jsPsych's files are copied, even if `vendor` is false. If
            `library` is None, and `vendor` is true, the files are fetched from npm.

    Raises:
        InputError: if settings contradict each other, or a value is invalid.
    """

    save: Annotated[
        Literal["server", "datapipe", "jatos", "download"],
        Help("Where answers are saved: contstim collect, the OSF, JATOS, or a download."),
    ] = "server"
    datapipe_id: Annotated[str, Help("ID of the experiment on DataPipe, for --save datapipe.")] = ""
    datapipe_address: str = "https://pipe.jspsych.org/api/"
    completion_code: Annotated[
        str, Help("Code that participants see when all answers are saved.")
    ] = ""
    redirect: Annotated[
        str,
        Help(
            "Web address to which participants go after completion, such as Prolific's link; "
            "{sona_id} is replaced by the participant's ID."
        ),
    ] = ""
    return_link: Annotated[
        str,
        Help("Web address for people who decline, fail a check, or come when the study is full."),
    ] = ""
    title: Annotated[
        str, Help("Title of the browser window; by default in the language of the page.")
    ] = ""
    language: Language = "en"
    practice: Annotated[
        Path | None,
        Help(
            "Practice trials: a table with the columns sentence_1 and sentence_2.",
            content="practice",
        ),
    ] = None
    questions: Annotated[
        Path | None,
        Help(
            "Questions to participants: a table with the columns name, when (before, after, "
            "check), kind, question and options.",
            content="questions",
            kind="questions",
        ),
    ] = None
    check_attempts: Annotated[
        int, Help("Maximum number of attempts at the comprehension questions.", at_least=1)
    ] = 2
    break_every: Annotated[
        int, Help("Number of trials between breaks; 0 for no breaks.", at_least=0)
    ] = 0
    deadline: Annotated[
        float, Help("Time limit of a trial, seconds; 0 for no limit.", at_least=0)
    ] = 0.0
    vendor: Annotated[
        bool, Help("Copy jsPsych from npm into the folder, so that the page works offline.")
    ] = False
    identify: Annotated[
        tuple[str, ...],
        Help(
            "Other URL parameters that identify participants. The parameters of Prolific, SONA "
            "and MTurk, and `participant`, are always saved."
        ),
    ] = ()
    identities: Annotated[
        Literal["hashed", "plain"],
        Help("Whether IDs in participants.csv of `contstim collect` are hashed or unchanged."),
    ] = "hashed"
    library: Annotated[
        Path | None,
        Help(
            "Copy jsPsych from this folder (`vendor` of an earlier export, or node_modules).",
            flag="--vendor-from",
            folder=True,
        ),
    ] = None

    @property
    def has_secret(self) -> bool:
        """True if the settings contain a completion code or a redirect, which prove completion."""
        return bool(self.completion_code or self.redirect)

    @property
    def marks(self) -> tuple[str, ...]:
        """Names of the page's features that select lines of its texts; see `texts.text_of`."""
        has = {"break": self.break_every, "deadline": self.deadline}
        # If the settings contain no code and no redirect, the server gives each participant an
        # individual code; see `Service.complete`
        has_personal_code = self.save == "server" and not self.has_secret
        code = "personal_code" if has_personal_code else "no_code"
        return (*(mark for mark, value in has.items() if value), code)

    @property
    def heading(self) -> str:
        """Title, or the default title in the page's language."""
        text_language = self.language if has_texts(self.language) else LANGUAGES[0]
        return self.title or labels(text_language, "title")["title"]

    def __post_init__(self) -> None:
        if self.title and not self.title.strip():
            raise InputError("title must not be empty.")
        if (self.save == "datapipe") != bool(self.datapipe_id):
            raise InputError(
                "`datapipe_id` must be set if and only if answers are saved to DataPipe: this "
                "is the ID of the experiment on pipe.jspsych.org."
            )
        # The ID is inserted in a script and an address; these characters need no escaping
        if not re.fullmatch(r"[A-Za-z0-9_-]*", self.datapipe_id):
            raise InputError(
                f"`datapipe_id` must have only letters, digits, - and _, got {self.datapipe_id!r}."
            )
        if not re.fullmatch(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", self.language):
            raise InputError(
                f"`language` must be a code such as en, de or pt-BR, got {self.language!r}."
            )
        for name in self.identify:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) or name in _OTHER_PARAMETERS:
                raise InputError(
                    "`identify` must name URL parameters in letters, digits, - and _, other "
                    f"than {', '.join(sorted(_OTHER_PARAMETERS))}, got {name!r}."
                )
        if 0 < self.deadline < 1:
            raise InputError(
                "`deadline` must be 0 (no limit) or at least 1 second, got "
                f"{self.deadline:g}. Buttons are disabled for the first quarter of a second."
            )
        for address in filter(None, (self.redirect, self.return_link, self.datapipe_address)):
            check_web_address(address)


_VERSION = 2
_COPIED_SETTINGS = ("check_attempts", "break_every", "deadline", "identities", "return_link")
_MINUTES_OF_READING = 3  # consent, instructions, examples, debriefing
# Participants can read the page's source, so it contains numbers, not names of conditions
_STRATA = {condition: number for number, condition in enumerate(Condition)}

Text = Annotated[str, Field(min_length=1)]


class PageTrial(BaseModel):
    """A trial for the page: displayed sentences, and a number (stratum) for the condition."""

    model_config = ConfigDict(strict=True, frozen=True)

    trial_id: Text
    sentence_1: Text
    sentence_2: Text
    stratum: int


class PageStudy(BaseModel):
    """The content of study.json; for fields that are not listed here, see `PageSettings`.

    Attributes:
        version: version of this format.
        id: identifier of the trials. A browser resumes a session only if this identifier has not
            changed since the session began.
        minutes: expected duration for the group with most trials, including reading.
        scale: scale of the ratings.
        save: where answers are saved. `to` is the destination; for DataPipe, there are also
            `experiment` and `address`.
        completion: `code` and `redirect`. The page's copy of this field is None if answers are
            saved to a server, because the server sends both values only after completion.
        texts: texts by file name.
        questions: questions other than the trials, in their order.
        groups: trials of each group, by group number.
        identify: parameters of the address that identify a person.
        visit: parameters among `identify` that differ between visits of the same person.
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
        """The content without `code` and `redirect`; a server sends these after completion."""
        return self.model_dump() | {"completion": None}

    @property
    def code(self) -> str | None:
        """Completion code for all participants; None if there is none."""
        return (self.completion or {}).get("code") or None

    @property
    def redirect(self) -> str | None:
        """Address after completion; None if there is none."""
        return (self.completion or {}).get("redirect") or None

    @cached_property
    def trials(self) -> dict[str, frozenset[str]]:
        """Group number → identifiers of the group's trials, in the order of group numbers."""
        groups = sorted(self.groups.items(), key=lambda group: int(group[0]))
        return {group: frozenset(trial.trial_id for trial in trials) for group, trials in groups}

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of groups, trials, sentences and scale; it ignores the order of trials."""
        return self._fingerprint(len(self.trials))

    def _fingerprint(self, n_groups: int) -> str:
        """Return the fingerprint of the first `n_groups` groups."""
        canonical = [
            [group, sorted([t.trial_id, [t.sentence_1, t.sentence_2]] for t in self.groups[group])]
            for group in islice(self.trials, n_groups)
        ]
        if self.scale is not Scale.CONFIDENCE:
            canonical.append([self.scale, []])
        return hashlib.sha256(json.dumps(canonical).encode()).hexdigest()

    def extends(self, fingerprint: str) -> bool:
        """Return True if a fingerprint is that of this study, with all or only its first groups."""
        return any(self._fingerprint(n) == fingerprint for n in range(len(self.trials), 0, -1))

    @property
    def script(self) -> str:
        """Content of study.js, which the page loads.

        The page does not load study.json, because a page that is opened from a disk could not read
        this file. If answers are saved to a server, the script contains neither code nor redirect.
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
    """Build the content of study.json.

    Raises:
        InputError: if `check_trial_ids` refuses the trials.
        SentenceError: if a sentence has no words.
    """
    check_trial_ids(trials)
    # Trials are sorted, so that the identifier does not depend on their order
    groups = grouped(
        (
            str(trial.group),
            PageTrial(
                trial_id=trial.trial_id,
                sentence_1=trial.sentence_1.displayed_text,
                sentence_2=trial.sentence_2.displayed_text,
                stratum=_STRATA[trial.condition],
            ),
        )
        for trial in sorted(trials, key=lambda trial: (trial.group, trial.trial_id))
    )
    # The identifier does not depend on texts, because they may be edited during an experiment
    content: dict[str, Any] = {group: [*map(dict, members)] for group, members in groups.items()}
    scale = trials[0].scale
    if scale is not Scale.CONFIDENCE:
        content["scale"] = scale
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
        **{name: getattr(settings, name) for name in _COPIED_SETTINGS},
    )
