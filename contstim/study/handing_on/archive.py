"""Archive of a study: one zip or folder with everything that others need to reproduce it."""

from __future__ import annotations

import json
import platform
import re
import shutil
import zipfile
from contextlib import chdir, suppress
from datetime import datetime
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.experiments.platforms.folder import staging_folder
from contstim.experiments.responses.questionnaire import questions_beside
from contstim.files.documents import read_text
from contstim.files.files import checksum, path_inside, visible_files, writing
from contstim.files.records import Record, now, provenance, record_path, recorded_as, total_memory
from contstim.reporter import SILENT
from contstim.steps.paths import identity
from contstim.steps.platforms import ImportResponses
from contstim.study.handing_on.facts import StudyFacts
from contstim.study.handing_on.manifest import (
    ENVIRONMENT,
    INPUTS,
    MANIFEST,
    PSYCH_DS,
    ArchivedFile,
    Manifest,
    left_out_names,
    study_inputs,
)
from contstim.study.handing_on.texts import (
    TO_FILL_IN,
    datasheet,
    methods,
    preregistration,
    readme_text,
)
from contstim.study.states import examine, with_local_names
from contstim.study.study import ARCHIVED, PAGE, RESULTS, STORE, check_links
from contstim.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.reporter import Reporter
    from contstim.study.study import Study, StudyStage

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_STORES = "stores"  # subfolder of the results; a store is a cache of scores and searches
LARGEST = 500
"""Default size in megabytes above which an input is not copied but listed with its checksum."""


def archive_study(
    study: Study,
    out: Path,
    *,
    without: Sequence[str] = (),
    largest: float = LARGEST,
    as_it_is: bool = False,
    reporter: Reporter = SILENT,
) -> tuple[Manifest, int]:
    """Write an archive of a study with its inputs, results, environment and texts.

    After an error, no incomplete archive remains. The environment variable `SOURCE_DATE_EPOCH` can
    set the date of the archive. Two archives of a study from the same machine with the same date
    are identical. All files have this date, and are sorted by name.

    Args:
        study: study from `read_study`.
        out: a file that ends in `.zip`, or a new folder.
        without: files or folders to exclude; the archive lists their names and checksums.
        largest: size in megabytes above which inputs are excluded, too.
        as_it_is: whether to accept stages that are stale or missing, and outputs that were changed
            by hand.
        reporter: receives the names of excluded files.

    Returns:
        The manifest, and the number of questions in the texts that the author must answer.

    Raises:
        InputError: if stages are stale or missing, or their outputs were changed by hand (unless
            `as_it_is`); if a file in `without` does not exist; if the folder `out` is not empty; if
            `out` is a file of the study; or if a file cannot be read or written.
    """
    out = out.absolute()
    if out.suffix != ".zip" and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists already. Name a new folder, or a file ending in .zip.")
    command = ("contstim", "archive", study.path.name)
    with chdir(study.folder), TemporaryDirectory() as scratch, recorded_as(command):
        check_links()
        stages = study.stages
        doubts = _doubts(stages)
        if doubts and not as_it_is:
            listed = "\n".join(f"  {doubt}" for doubt in doubts)
            raise InputError(
                f"The results do not follow from this study file:\n{listed}\nRun 'contstim run "
                f"{study.path.name}' first. If a file was changed by hand, name it in the study "
                "file. Or use --as-it-is: the archive's texts then contain the sentences above."
            )
        study_text, inputs = study_inputs(study, read_text(study.path.name))
        results, unclaimed = _results(stages)
        if unclaimed:
            reporter.say(f"Excluded, because no stage writes these files: {', '.join(unclaimed)}.")
        study_text, inputs = _without_identities(study, study_text, inputs)
        study_files = {*map(identity, (*inputs.values(), *results.values(), Path(study.path.name)))}
        if identity(out) in study_files:
            raise InputError(f"{out} is a file of the study. Give the archive another name.")
        large = {n for n, p in inputs.items() if p.stat().st_size > largest * 1e6}
        excluded = left_out_names((*inputs, *results), without) | large
        for name in sorted(excluded):
            reporter.say(f"{name} is excluded; archive.json has its checksum.")
        facts = StudyFacts(study)
        hub = tuple(
            {
                "name": model["name"],
                "location": model["location"],
                "revision": model["commit"],
                "fingerprint": facts.conventions.get(model["name"], {}).get("fingerprint", ""),
            }
            for model in facts.models
            if model["on_hub"]
        )
        to_supply = tuple(_describe_file(n, p) for n, p in inputs.items() if n in excluded)
        has_page = PAGE.is_file()
        sheet = datasheet(facts, doubts)
        texts = {
            "datasheet.md": sheet.markdown(),
            "datasheet.html": sheet.html(),
            "methods.md": methods(facts).markdown(),
            "preregistration.md": preregistration(facts).markdown(),
            ENVIRONMENT: environment_text(),
            "constraints.txt": constraints_text(),
            study.path.name: study_text,
            "README.md": readme_text(facts, to_supply, hub, doubts, has_page=has_page),
        }
        if has_page:
            # The page links to the folder `results`. In the archive, this folder has another name
            links = rf'(href|src)="(?:\./)?{RESULTS}/'
            texts[PAGE.name] = re.sub(links, rf'\1="{ARCHIVED}/', read_text(PAGE))
        contents = _write_texts(texts, Path(scratch)) | _psych_ds(facts, Path(scratch) / PSYCH_DS)
        contents |= {n: p for n, p in (inputs | results).items() if n not in excluded}
        manifest = Manifest(
            title=study.title,
            study=study.path.name,
            date=now(),
            contstim=__version__,
            files=tuple(_describe_file(name, contents[name]) for name in sorted(contents)),
            results=tuple(
                _describe_file(name.removeprefix(f"{ARCHIVED}/"), path)
                for name, path in sorted(results.items())
            ),
            to_supply=to_supply,
            left_out=tuple(_describe_file(n, p) for n, p in results.items() if n in excluded),
            hub_models=hub,
            as_it_is=tuple(doubts),
        )
        contents |= _write_texts({MANIFEST: manifest.json}, Path(scratch))
        for name in contents:
            path_inside(scratch, name)  # refuses a name that leads out of the unpacked folder
        write = _write_zip if out.suffix == ".zip" else _write_folder
        write({name: contents[name] for name in sorted(contents)}, out, manifest.date)
    return manifest, sum(t.count(TO_FILL_IN) for n, t in texts.items() if n.endswith(".md"))


def _without_identities(
    study: Study, text: str, inputs: Mapping[str, Path]
) -> tuple[str, dict[str, Path]]:
    """Return the text and the inputs of a study file, without the database of contstim's server.

    The database identifies participants, and the record of the server may contain payment codes. If
    the section `[import.collected]` imports the database, a table of responses replaces both the
    section and the database.
    """
    stage = next((s for s in study.stages if s.key[:2] == ("import", "collected")), None)
    if stage is None or not isinstance(stage.step, ImportResponses):
        return text, dict(inputs)
    table, responses = INPUTS / "collected.csv", stage.step.out
    text, n_sections = re.subn(r"(?m)^\[import\.collected\][^\n]*\n(?:(?!\[)[^\n]*\n?)*", "", text)
    for reader in [stage for stage in study.stages if responses in stage.reads]:
        header = re.escape(f"[{'.'.join(reader.key)}]")
        key = f'responses = "{table.as_posix()}"'
        text, n_headers = re.subn(rf"(?m)^{header}[^\n]*$", rf"\g<0>\n{key}", text)
        n_sections = min(n_sections, n_headers)
    if n_sections != 1:
        raise InputError(
            "An archive contains a table of responses instead of the server's database, and its "
            "study file must name this table. Write the header [import.collected] on a line of its "
            "own, and also the header of each section that reads responses."
        )
    private = {*stage.step.files, *map(record_path, stage.step.files)}
    answers = {table: responses, questions_beside(table): questions_beside(responses)}
    public = {name: path for name, path in inputs.items() if path not in private}
    return text, public | {n.as_posix(): p for n, p in answers.items() if p.is_file()}


def _write_texts(texts: Mapping[str, str], folder: Path) -> dict[str, Path]:
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    return {name: folder / name for name in texts}


def _doubts(stages: Sequence[StudyStage]) -> list[str]:
    """Return sentences: one for each stage that is not up to date, one for each edited file."""
    doubts = []
    for stage in stages:
        now = examine(stage)
        if now.state != "done":
            why = "; ".join(now.reasons)
            doubts.append(f"{stage.name} is {now.state}{f': {why}' if why else ''}.")
        doubts += [
            f"{name} was changed by hand after the stage {stage.name} wrote it."
            for name in now.edited
        ]
    return doubts


def _results(stages: Sequence[StudyStage]) -> tuple[dict[str, Path], list[str]]:
    """Return two groups of results: files that stages wrote, and files that no stage wrote.

    The first group is a dictionary: name in the archive → file.
    """
    records = [stage.step.record_path() for stage in stages]
    written = {*records, *(path for stage in stages for path in stage.writes)}
    # For a report, a stage declares only the main files, but its record names all files
    for record in filter(None, map(Record.from_file, filter(None, records))):
        written |= {Path(name) for name in with_local_names(record, record.outputs)}
    results, unclaimed = {}, []
    for path in visible_files(RESULTS):
        inside = path.relative_to(RESULTS)
        if not written.isdisjoint((path, *path.parents)):
            results[(ARCHIVED / inside).as_posix()] = path
        elif not path.name.startswith(STORE.name) and inside.parts[0] != _STORES:
            unclaimed.append(path.as_posix())
    return results, unclaimed


def _psych_ds(facts: StudyFacts, out: Path) -> dict[str, Path]:
    if not facts.responses or not facts.trials:
        return {}
    from contstim.experiments.platforms.psych_ds import export_psych_ds

    title = facts.study.title
    name = title if any(sign.isascii() and sign.isalnum() for sign in title) else "study"
    path, scores = map(facts.path, ("responses", "scores of trials"))
    answered = path is not None and questions_beside(path).is_file()
    export_psych_ds(
        facts.trials,
        out,
        responses=path,
        scores=scores if scores and scores.is_file() else None,
        questions=facts.asked_in if answered else None,
        scale=facts.responses[0].scale,
        name=name,
        simulated=any(facts.participants.values()),
    )
    return {
        f"{PSYCH_DS}/{path.relative_to(out).as_posix()}": path
        for path in sorted(out.rglob("*"))
        # Leave out the record of the export, because it names the temporary folder
        if path.is_file() and not path.name.endswith(".meta.json")
    }


def _describe_file(name: str, path: Path) -> ArchivedFile:
    return ArchivedFile(name, checksum(path).removeprefix("sha256:"), path.stat().st_size)


def _write_zip(contents: Mapping[str, Path], out: Path, date: str) -> None:
    stamp = datetime.fromisoformat(date).timetuple()[:6]
    with writing(out) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, path in contents.items():
            # Zip files cannot store a date before 1980
            info = zipfile.ZipInfo(f"{out.stem}/{name}", max(stamp, (1980, 1, 1, 0, 0, 0)))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, so that archives are the same on every system
            info.external_attr = 0o100644 << 16
            large = path.stat().st_size > 2**31
            with archive.open(info, "w", force_zip64=large) as target, path.open("rb") as source:
                shutil.copyfileobj(source, target)


def _write_folder(contents: Mapping[str, Path], out: Path, _date: str) -> None:
    with staging_folder(out) as work:
        for name, path in contents.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, work / name)


def environment_text() -> str:
    """Return the content of `environment.json`: date, versions, system and hardware."""
    facts: dict[str, Any] = provenance()
    facts["environment"] |= {
        "release": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "memory": total_memory(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def constraints_text() -> str:
    """Return the content of `constraints.txt`: the installed versions of dependencies."""
    lines = [
        f"# contstim {__version__} on Python {platform.python_version()}, {platform.system()} "
        f"{platform.machine()}: installed packages.",
        "# pip install -c constraints.txt contstim",
    ]
    for name, version in sorted(installed_requirements().items()):
        # Remove names of builds, such as +cpu in 2.13.0+cpu, because PyPI has no such versions
        public, _, build = version.partition("+")
        lines.append(f"{name}=={public}" + (f"  # {version}" if build else ""))
    return "\n".join(lines) + "\n"


def installed_requirements() -> dict[str, str]:
    """Return package → installed version for all direct and indirect dependencies of contstim."""
    versions: dict[str, str] = {}
    waiting = ["contstim"]
    while waiting:
        for need in metadata.requires(waiting.pop()) or []:
            name = re.match(_NAME, need)
            # Dependencies of extras are optional
            if name is None or re.search(r"\bextra\s*==", need):
                continue
            plain = re.sub(r"[-_.]+", "-", name[0]).lower()
            # A dependency that is not installed is not needed on this system
            with suppress(metadata.PackageNotFoundError):
                if plain not in versions and plain != "contstim":
                    versions[plain] = metadata.version(plain)
                    waiting.append(plain)
    return versions
