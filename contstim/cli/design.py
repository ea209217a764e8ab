"""`contstim design`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Quiet, Reviews, Seed
from contstim.cli.output import remark, warn
from contstim.cli.progress import step_progress
from contstim.errors import InputError
from contstim.experiments.design.golan2023 import SECONDS_PER_TRIAL

if TYPE_CHECKING:
    from contstim.reviews import Review


def design(
    out: Annotated[Path, typer.Option(help="The table of trials to write.")],
    pairs: Annotated[Path | None, typer.Option(help="Natural pairs, from select natural.")] = None,
    triplets: Annotated[Path | None, typer.Option(help="Triplets, from select triplets.")] = None,
    sentences: Annotated[
        Path | None, typer.Option(help="Natural sentences for random pairs and catch trials.")
    ] = None,
    groups: Annotated[
        int, typer.Option(help="Groups of participants; each sees its own trials.")
    ] = 10,
    random_per_group: Annotated[int, typer.Option(help="Random natural pairs for a group.")] = 9,
    catch_per_group: Annotated[
        int, typer.Option(help="Catch trials for a group: natural against its own words shuffled.")
    ] = 12,
    seed: Seed = 0,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="How long the search for an allocation may take.")
    ] = 60.0,
    seconds_per_trial: Annotated[
        float, typer.Option(help="What a trial takes; by default the median of the 2023 study.")
    ] = SECONDS_PER_TRIAL,
    text: Annotated[
        Path | None,
        typer.Option(
            help="Where word frequencies (Zipf scale) come from: a text, a table with the columns "
            "word and count, or a trained model of words; by default --sentences, or else the "
            "trials themselves."
        ),
    ] = None,
    power: Annotated[
        bool,
        typer.Option(
            "--power",
            help="Also simulate the experiment with each model in turn as the human; needs "
            "--scores, and writes ….power.md and ….power.csv.",
        ),
    ] = False,
    scores: Annotated[
        Path | None, typer.Option(help="With --power: scores of all sentences of the trials.")
    ] = None,
    participants: Annotated[int, typer.Option(help="With --power: participants in a group.")] = 10,
    power_groups: Annotated[
        int | None, typer.Option(help="With --power: groups, if other than --groups.")
    ] = None,
    ceiling: Annotated[
        float | None,
        typer.Option(
            help="With --power: how often a person agrees with the majority of the others on "
            "random natural pairs; by default as in the 2023 study, or --pilot."
        ),
    ] = None,
    pilot: Annotated[
        Path | None,
        typer.Option(
            help="With --power: the folder that analyze wrote of a pilot or an earlier study. "
            "Simulated people agree as often as people did there; by default as in the 2023 study."
        ),
    ] = None,
    simulations: Annotated[
        int, typer.Option(help="With --power: experiments to simulate for each model.")
    ] = 1000,
    review: Reviews = None,
    quiet: Quiet = False,
) -> None:
    """Turn pairs and triplets into the trials of an experiment, shared out to groups.

    No group sees a sentence twice, and every group has the same number of trials of each condition,
    model pair and role. The finished table is checked independently. Beside it stand a summary to
    read before ethics and preregistration (`….summary.md`, `….summary.png`) and a certificate.

    After a review of trials, as many as possible stay in their groups. Rejected random and catch
    trials are drawn anew; for rejected pairs and triplets run `select natural` and `select
    triplets` with the same review first.

    Examples: `contstim design --pairs pairs.csv --triplets selected.csv --sentences natural.txt
    --groups 10 --random-per-group 9 --catch-per-group 12 --out trials.csv`

    `contstim design --pairs pairs-2.csv --triplets selected-2.csv --sentences natural.txt
    --groups 10 --random-per-group 9 --catch-per-group 12 --review review.csv --out trials-2.csv`
    """
    from contstim.experiments.design.building import build_design
    from contstim.experiments.design.calibration import Ceilings, read_ceilings
    from contstim.experiments.design.power_report import design_power, power_report, power_table
    from contstim.experiments.design.summary import draw_summary, summarise, summary_report
    from contstim.files import write_text
    from contstim.frequencies import WordFrequencies, read_frequencies
    from contstim.models.recorded import require_log_probabilities
    from contstim.records import write_record
    from contstim.reviews import read_reviews
    from contstim.scores import ScoreTable
    from contstim.stimuli import read_pairs, read_stimuli, read_triplets, write_trials
    from contstim.tables import write_table
    from contstim.wording import counted

    if power != (scores is not None):
        raise InputError("--scores are what --power simulates participants from: give both.")
    if pilot is not None and not power:
        raise InputError("--pilot says how often people agree, for --power: give both.")
    if sentences is None and (random_per_group or catch_per_group):
        raise InputError(
            "Random pairs and catch trials are made of natural sentences: give --sentences, or "
            "--random-per-group 0 --catch-per-group 0."
        )
    table = None if scores is None else ScoreTable.read(scores)
    if scores is not None and table is not None:
        require_log_probabilities(scores, table.models, "A simulation with noise in nats")
    natural = [] if sentences is None else read_stimuli(sentences)
    reviewed = read_reviews(review) if review else None
    if reviewed is not None:
        _warn_of_other_numbers(reviewed, groups, random_per_group, catch_per_group)
    experiment = build_design(
        () if pairs is None else read_pairs(pairs),
        () if triplets is None else read_triplets(triplets),
        natural,
        groups=groups,
        random_per_group=random_per_group,
        catch_per_group=catch_per_group,
        seed=seed,
        seconds=seconds,
        review=reviewed,
    )
    # Frequencies come from the largest text there is: --text, all natural sentences, the trials.
    if text is None:
        trials = experiment.trials
        sentences_of_trials = [s for t in trials for s in (t.sentence_1, t.sentence_2)]
        frequencies = WordFrequencies.of(natural or sentences_of_trials)
    else:
        frequencies = read_frequencies(text)
    summary = summarise(experiment, frequencies, seconds_per_trial=seconds_per_trial)
    simulated = None
    if table is not None:
        # What is stated counts before what a pilot measured, and that before the 2023 study.
        ceilings = Ceilings() if pilot is None else read_ceilings(pilot)
        if ceiling is not None:
            ceilings = ceilings.with_random(ceiling)
        with step_progress("simulating", quiet=quiet) as progress:
            simulated = design_power(
                experiment.trials,
                table,
                ceilings=ceilings,
                groups=power_groups,
                participants=participants,
                simulations=simulations,
                seed=seed,
                progress=progress,
            )
    # Nothing is written before the simulation has ended: it may refuse its scores.
    write_trials(out, experiment.trials)
    experiment.certificate.save(Path(f"{out}.certificate.json"))
    write_text(f"{out}.summary.md", summary_report(summary).markdown())
    draw_summary(summary, f"{out}.summary.png")
    write_record(out, groups=groups, seed=seed, text=None if text is None else str(text))
    if simulated is not None:
        write_text(f"{out}.power.md", power_report(simulated).markdown())
        write_table(f"{out}.power.csv", power_table(simulated))
    for caution in dict.fromkeys((simulated or summary).cautions):
        warn(caution)
    certificate = experiment.certificate
    minutes = max(1, round(max(summary.minutes)))
    remark(
        f"{out}: {counted(certificate.trials, 'trial')} for {counted(groups, 'group')}, "
        f"{certificate.trials_per_group:,} for each participant, about "
        f"{counted(minutes, 'minute')}; {certificate.method}, "
        f"{certificate.status}. Read {out}.summary.md before you preregister.",
        quiet=quiet,
    )
    if certificate.reviewed:
        remark(
            f"  {certificate.kept:,} of {counted(certificate.reviewed, 'reviewed trial')} stay in "
            f"their groups, {certificate.rejected:,} rejected (or of a rejected pair or triplet); "
            f"more than {certificate.kept_bound:,} cannot stay (proven).",
            quiet=quiet,
        )
    for note in summary.catch:
        remark(note, quiet=quiet)


def _warn_of_other_numbers(
    review: Review, groups: int, random_per_group: int, catch_per_group: int
) -> None:
    """A design of other numbers than the reviewed one is allowed, but seldom meant."""
    from contstim.reviews import ItemKind
    from contstim.stimuli import Condition

    trials = review.of_kind(ItemKind.TRIAL).values()
    if not trials:
        return
    of_group_1 = [trial.condition for trial in trials if trial.group == 1]
    n_random, n_catch = map(of_group_1.count, (Condition.RANDOM_NATURAL, Condition.CATCH))
    before = (max(trial.group for trial in trials), n_random, n_catch)
    if before != (groups, random_per_group, catch_per_group):
        warn(
            f"the reviewed trials are of {before[0]} groups with {n_random} random and {n_catch} "
            f"catch trials each, these of {groups} with {random_per_group} and {catch_per_group}. "
            f"To leave the design as it was: --groups {before[0]} --random-per-group {n_random} "
            f"--catch-per-group {n_catch}."
        )
