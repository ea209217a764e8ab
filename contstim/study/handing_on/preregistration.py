"""A draft of a preregistration, with the fields of OSF's standard template.

The fields and their order are those of "OSF Preregistration" (version 3 of its schema, Center for
Open Science). What a study file says is filled in; everything else is a question, marked as such.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contstim.experiments.analysis.families import every_contrast
from contstim.experiments.design.population import AS_MEASURED
from contstim.reporting.report import Bullets, Heading, Paragraph, Report
from contstim.scale import Scale
from contstim.steps.analysis import AnalysisSettings
from contstim.steps.simulation import PowerSettings
from contstim.stimuli import CONTROVERSIAL
from contstim.study.handing_on.datasheet import to_fill_in
from contstim.study.handing_on.methods import catch_sentence, planned_analysis
from contstim.study.handing_on.references import Citations
from contstim.study.places import TRIALS
from contstim.tables import read_table
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.reporting.report import Part
    from contstim.study.handing_on.facts import StudyFacts


def preregistration(facts: StudyFacts) -> Report:
    """The draft; the current folder is the study's.

    Args:
        facts: of the study.
    """
    cite = Citations()
    design = _design_plan(facts)
    sampling = _sampling_plan(facts)
    variables = _variables(facts)
    analysis = _analysis_plan(facts, cite)
    return Report(
        f"Preregistration of {facts.study.title}: a draft",
        (
            Paragraph(
                "The fields of OSF's standard template, filled in as far as the study file says. "
                "Answer what is marked, check all else, and delete this line."
            ),
            Heading("Study information"),
            *_field("Title", Paragraph(facts.study.title)),
            *_field("Authors", to_fill_in("who?")),
            *_field("Hypotheses", *_hypotheses(facts)),
            Heading("Design plan"),
            *design,
            Heading("Sampling plan"),
            *sampling,
            Heading("Variables"),
            *variables,
            Heading("Analysis plan"),
            *analysis,
            Heading("Other"),
            *_field(
                "Other",
                Paragraph(
                    "Items, their selection and their certificates are in the datasheet beside "
                    "this draft; the archive repeats them."
                ),
                Bullets(cite.works()),
            ),
        ),
    )


def _field(name: str, *parts: Part) -> list[Part]:
    return [Heading(name, level=3), *parts]


def _models(facts: StudyFacts) -> list[str]:
    return [model.name for model in facts.study.models]


def _hypotheses(facts: StudyFacts) -> list[Part]:
    models = _models(facts)
    contrasts = every_contrast(models) if len(models) > 1 else []
    settings = facts.study.sections.get("analysis")
    planned = isinstance(settings, AnalysisSettings) and settings.contrasts is not None
    family = (
        "The contrasts to be tested are those of the table that the study file names."
        if planned
        else f"{counted(len(contrasts), 'contrast')} will be tested without direction: every two "
        f"of {counted(len(models), 'model')} ({', '.join(models)}), and each model against the "
        "lower noise ceiling."
    )
    return [
        Paragraph(
            "People's choices between two sentences agree with some models more often than with "
            f"others. {family}"
        ),
        to_fill_in("which model do you expect to predict people better than which, and why?"),
    ]


def _design_plan(facts: StudyFacts) -> list[Part]:
    study_type = Paragraph(
        "Experiment: a researcher randomly assigns treatments to study subjects. (Participants "
        "are assigned to groups that see different items.)"
    )
    blinding = Paragraph(
        "For studies that involve human subjects, they will not know the treatment group to which "
        "they have been assigned."
    )
    if not facts.trials:
        question = to_fill_in("who sees what? The study has no trials yet.")
        design, randomization = [question], [question]
    else:
        conditions = ", ".join(
            f"{condition} ({facts.per_group(condition):,})" for condition in facts.conditions
        )
        design = [
            Paragraph(
                "Repeated measures with items nested in groups of participants: "
                f"{counted(facts.groups, 'group')}, each with "
                f"{counted(facts.per_group(), 'trial')} of its own "
                f"({counted(len(facts.trials), 'trial')} in all). Within participants: condition "
                f"and pair of models. Trials of a participant: {conditions}. Every group has "
                "equally many trials of each condition, pair of models and role; no group sees a "
                "sentence twice. Sides are counterbalanced: in each condition either sentence "
                "stands first in half of the trials, as far as their number allows."
            )
        ]
        randomization = [
            Paragraph(
                "Items were allotted to groups before data collection (seed "
                f"{facts.study.seed}). The order of trials is drawn for each participant."
            ),
            to_fill_in("how are participants assigned to groups (by chance, or in turn)?"),
        ]
    return [
        *_field("Study type", study_type),
        *_field("Blinding", blinding),
        *_field(
            "Is there any additional blinding in this study?",
            to_fill_in("do those who analyse the data know which model is which?"),
        ),
        *_field("Study design", *design),
        *_field("Randomization", *randomization),
    ]


def _sampling_plan(facts: StudyFacts) -> list[Part]:
    people = len(facts.participants) - sum(facts.participants.values())
    if people:
        existing = [
            Paragraph(
                f"{counted(people, 'participant')} have answered already, so that this cannot be a "
                "registration prior to creation of data."
            ),
            to_fill_in("which of OSF's descriptions of existing data holds?"),
        ]
    else:
        existing = [
            Paragraph("Registration prior to creation of data."),
            to_fill_in("has nobody answered yet, elsewhere either?"),
        ]
    power = facts.study.sections.get("power")
    size: list[Part] = [to_fill_in("how many participants in each group?")]
    rationale: list[Part] = []
    if isinstance(power, PowerSettings) and facts.trials:
        groups = facts.groups if power.power_groups is None else power.power_groups
        size = [
            Paragraph(
                f"{facts.files.planned_participants:,} participants: "
                f"{power.participants:,} in each of {counted(groups, 'group')}."
            ),
            to_fill_in("how many more are asked, in place of those who will be left out?"),
        ]
        rationale = [Paragraph(text) for text in _power(power)]
    rationale.append(to_fill_in("what else decided it (money, time)?"))
    return [
        *_field("Existing data", *existing),
        *_field(
            "Explanation of existing data",
            Paragraph(
                "Items were chosen by models' scores alone. Artificial participants, where the "
                "study has any, are simulated and are not data."
            ),
        ),
        *_field(
            "Data collection procedures",
            to_fill_in(
                "from which population, how recruited and paid, native speakers of what, from when "
                "to when, and which ethics committee approved?"
            ),
        ),
        *_field("Sample size", *size),
        *_field("Sample size rationale", *rationale),
        *_field("Stopping rule", to_fill_in("when does data collection end?")),
    ]


_ENDS = ("low", "high")  # of rates, by what is assumed of rivals


def _power(power: PowerSettings) -> list[str]:
    """Results of the simulation of the experiment for all trials together."""
    path = Path(f"{TRIALS}.power-sizes.csv")
    if not path.is_file():
        return []
    table = read_table(path)
    names = (
        *("scope", "groups", "participants_per_group", "test", "first_low", "first_high"),
        *("significantly_better_low", "significantly_better_high"),
        *("detectable_difference", "smallest_effect", "shows_equivalence"),
    )
    if not set(names) <= table.keys():
        return []
    rows = zip(*(table[name] for name in names), strict=True)
    # The first row of a scope is that of the design as planned.
    row = next(
        (dict(zip(names, cells, strict=True)) for cells in rows if cells[0] == "overall"), None
    )
    if row is None:
        return []
    tests = "signed-rank tests over groups" if row["test"] == "groups" else "crossed tests"
    groups, each = int(row["groups"]), int(row["participants_per_group"])
    table = read_table(Path(f"{TRIALS}.power.csv"))
    as_measured = AS_MEASURED in table.get("people", [])
    whom = (
        "with people whom each model predicts as well as in the pilot"
        if as_measured
        else "with each model in turn as the one that people follow most, and rivals as close as "
        "in the 2023 study or further behind"
    )
    first, better = (
        " to ".join(dict.fromkeys(f"{100 * float(row[f'{name}_{end}']):.1f} %" for end in _ENDS))
        for name in ("first", "significantly_better")
    )
    text = (
        f"In {power.simulations:,} simulated experiments of {counted(groups, 'group')} of "
        f"{counted(each, 'participant')}, {whom}, with new people and new items and all trials but "
        "catch trials together, the model that predicts people best had the highest accuracy in "
        f"{first}, and was significantly better than another model in {better} of the comparisons "
        f"({tests})."
    )
    # Empty where models cannot differ by so much, or too little is known of how items scatter
    if row["detectable_difference"] != "":
        text += (
            f" A difference of {float(row['detectable_difference']):.3f} in accuracy is found in "
            "80 % of experiments by a single test at .05."
        )
    if row["shows_equivalence"] != "":
        text += (
            " Two models that do not differ are shown to differ by less than "
            f"{float(row['smallest_effect']):g} in {100 * float(row['shows_equivalence']):.1f} % "
            "by a single test that is not adjusted for others."
        )
    return [text]


def _variables(facts: StudyFacts) -> list[Part]:
    rivals = [condition for condition in facts.conditions if condition in CONTROVERSIAL]
    manipulated = (
        f"Condition ({', '.join(facts.conditions)}) and, in {', '.join(rivals)}, the pair of "
        "models that a trial sets against each other "
        f"({counted(len(facts.model_pairs), 'pair')} of "
        f"{', '.join(_models(facts))})."
        if facts.trials
        else "Condition, and the pair of models that a trial sets against each other."
    )
    is_choice = facts.scale is Scale.CHOICE
    cosine = (
        "" if is_choice else ", and the signed-rank cosine of ratings and log-probability ratios"
    )
    answer = (
        "The choice of each trial: which of two sentences one is more likely to come across."
        if is_choice
        else "The rating of each trial, 1 to 6: which of two sentences one is more likely to "
        "come across, and how sure one is (very confident, confident, somewhat confident). "
        "1 to 3 prefer one sentence, 4 to 6 the other."
    )
    return [
        *_field("Manipulated variables", Paragraph(manipulated)),
        *_field(
            "Measured variables",
            Paragraph(
                f"{answer} The reaction time is recorded. Predictors are the models' "
                "log-probabilities of both sentences (nats)."
            ),
        ),
        *_field(
            "Indices",
            Paragraph(
                "For each participant, model and kind of trials: the share of choices that the "
                f"model predicts (accuracy){cosine}; averaged within groups, and then over groups."
            ),
        ),
    ]


def _analysis_plan(facts: StudyFacts, cite: Citations) -> list[Part]:
    sentences = list(planned_analysis(facts, cite))
    settings = facts.study.sections.get("analysis")
    rate = settings.fdr if isinstance(settings, AnalysisSettings) else None
    statistics: list[Part] = (
        [Paragraph(" ".join(sentences))]
        if sentences
        else [to_fill_in("which tests? The study file has no section [analysis] yet.")]
    )
    catch = catch_sentence(facts)
    inference: list[Part] = (
        [
            Paragraph(
                f"Two-sided tests; a contrast is significant if its adjusted p-value is below "
                f"{rate:g}, over the family of all contrasts of a measure on one kind of trials."
            )
        ]
        if rate is not None
        else [to_fill_in("what counts as significant?")]
    )
    return [
        *_field("Statistical models", *statistics),
        *_field(
            "Transformations",
            Paragraph(
                "Ratios are log p of the second sentence less log p of the first."
                if facts.scale is Scale.CHOICE
                else f"Ratings are centred at {facts.scale.middle:g}; ratios are log p of the "
                "second sentence less log p of the first. For the signed-rank cosine both are "
                "ranked by size, with their signs."
            ),
        ),
        *_field("Inference criteria", *inference),
        *_field(
            "Data exclusion",
            Paragraph(catch.replace(" were left out", " will be left out"))
            if catch
            else to_fill_in("the design has no catch trials: who will be left out?"),
            to_fill_in("is anybody else left out, such as for answers that come too fast?"),
        ),
        *_field(
            "Missing data",
            Paragraph(
                "Only participants who rated every trial of their group are analysed; nothing is "
                "imputed."
            ),
        ),
        *_field(
            "Exploratory analysis",
            Paragraph(
                "The trials on which each model fails worst, and regressions of choices on "
                "log-probability ratios, are exploratory."
            ),
            to_fill_in("what else?"),
        ),
    ]
