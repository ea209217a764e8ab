"""`contstim waves`: partial and duplicated responses, and killed runs.

Independent witness: `contstim verdict`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.analysis.e_values import read_answers
from contstim.experiments.design.building import build_design
from contstim.experiments.design.waves import read_waves
from contstim.experiments.responses.table import Response, write_responses
from contstim.files.tables import columns_of, read_table, write_table
from contstim.items.reviews import Decision, undecided_items, write_review
from contstim.items.stimuli import Condition, Trial, Triplet, read_trials, trial_columns
from contstim.steps.verdict import FindVerdict
from contstim.steps.waves import DesignWaves
from contstim.study.verification import verify_folder
from tests.experiments.stimuli import natural, some_triplets
from tests.steps.records import record_of

MODELS = ("a", "b", "c")
ORDER = {"a": 0, "b": 1, "c": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_table(tmp_path / "triplets.csv", columns_of(Triplet, some_triplets(40, MODELS)))
    lines = "\n".join(sentence.text for sentence in natural(40))
    (tmp_path / "natural.txt").write_text(lines, encoding="utf-8")
    (tmp_path / "answers").mkdir()
    return tmp_path


def make_step(folder: Path, **settings: object) -> DesignWaves:
    files = {"triplets": folder / "triplets.csv", "sentences": folder / "natural.txt"}
    rules = {"people_per_wave": 4, "trials_per_person": 6, "max_people": 40}
    data = (folder / "answers",) if [*(folder / "answers").iterdir()] else ()
    options = {"out": folder / "trials.csv", "data": data, **files, **rules, **settings}
    return DesignWaves.of(options)


def start(folder: Path, **settings: object) -> DesignWaves:
    """Design the first wave, and return the step."""
    step = make_step(folder, **settings)
    step.run()
    return step


def prefer_first(trial: Trial) -> int:
    """Return the rating of a participant who agrees with the alphabetically first model."""
    if trial.condition is Condition.CATCH:
        return 1
    # model_1 rejects sentence_1
    return 6 if ORDER[trial.model_1] < ORDER[trial.model_2] else 1


def respond(
    trials: Iterable[Trial], lists: Iterable[int], rate: Callable[[Trial], int] = prefer_first
) -> list[Response]:
    groups = {*lists}
    return [
        Response(f"p{t.group}", t.group, t.trial_id, rate(t), 1, 0, 900.0)
        for t in trials
        if t.group in groups
    ]


def write(folder: Path, name: str, responses: list[Response]) -> None:
    write_responses(folder / "answers" / f"{name}.csv", responses)


def assert_repeated(folder: Path) -> None:
    """Check that a run from the data alone writes the same tables."""
    contents = {path: path.read_bytes() for path in folder.glob("trials.csv*.csv")}
    for path in folder.glob("trials.csv*"):
        path.unlink()
    make_step(folder).run()
    assert {path: path.read_bytes() for path in contents} == contents


def test_waves_end_with_the_verdict_of_the_witness(folder: Path) -> None:
    step = start(folder)
    first_trials = read_trials(step.out)
    assert {trial.group for trial in first_trials} == {1, 2, 3, 4}
    # Settings may change before the first response
    make_step(folder, people_per_wave=3).run()
    assert {trial.group for trial in read_trials(step.out)} == {1, 2, 3}
    for n in range(1, 9):
        verdict = make_step(folder).run()
        trials = read_trials(step.out)
        designed_waves = read_waves(Path(f"{step.out}.waves.csv"))
        assert [wave.wave for wave in designed_waves] == [*range(1, len(designed_waves) + 1)]
        if not verdict.open:
            break
        last_wave = designed_waves[-1]
        assert read_trials(Path(f"{step.out}.wave.csv")) == tuple(last_wave.trials_of(trials))
        write(folder, f"{n}", respond(trials, range(last_wave.first_list, last_wave.last_list + 1)))
    assert (verdict.winner, verdict.beaten) == ("a", {"b": "a", "c": "a"})
    record = record_of(step.out)
    assert record["finished"] == 4 * len(designed_waves)
    # b and c are no longer compared once one of them is dropped
    by_wave = {row["wave"]: row for row in record["history"]}
    assert by_wave[1]["surviving"] == ["a", "b", "c"]
    assert by_wave[len(designed_waves)]["winner"] == "a"
    table = read_table(Path(f"{step.out}.verdict.csv"))
    witness = FindVerdict(answers=Path(f"{step.out}.answers.csv"), out=folder / "again.csv")
    assert witness.run().winner == "a"
    assert {n: c for n, c in table.items() if n.startswith("e_")} == {
        n: c for n, c in read_table(folder / "again.csv").items() if n.startswith("e_")
    }


def test_partial_data_copies_and_kills_change_nothing(folder: Path) -> None:
    step = start(folder)
    responses = respond(read_trials(step.out), range(1, 5))
    for n, part in enumerate((responses[:13], responses[13:30])):
        write(folder, f"{n}", part)
        make_step(folder).run()
        assert len(read_waves(Path(f"{step.out}.waves.csv"))) == 1
    write(folder, "2", responses[30:])
    write(folder, "copy", responses)  # every response a second time
    make_step(folder).run()
    tables = {path: path.read_bytes() for path in folder.glob("trials.csv*.csv")}
    # State of a run killed after it wrote the table of waves and before the trials
    trials = read_trials(step.out)
    for name in ("0", "1", "copy"):
        (folder / "answers" / f"{name}.csv").unlink()
    write(folder, "2", responses)
    write_table(step.out, trial_columns([t for t in trials if t.group <= 4]))
    make_step(folder).run()
    assert {path: path.read_bytes() for path in tables} == tables


def test_only_first_list_of_a_participant_counts(folder: Path) -> None:
    step = start(folder)
    trials = read_trials(step.out)
    second_list = [replace(r, participant="p1") for r in respond(trials, [2])]
    write(folder, "1", [*respond(trials, [1]), *second_list])
    make_step(folder).run()
    assert {a.list for a in read_answers(Path(f"{step.out}.answers.csv"))} == {"1"}


def test_counted_list_does_not_change(folder: Path) -> None:
    step = start(folder, people_per_list=2)
    trials = read_trials(step.out)
    assert {trial.group for trial in trials} == {1, 2}
    responses = respond(trials, [1])
    copies = [[replace(r, participant=name) for r in responses] for name in ("q1", "r1")]
    answers = Path(f"{step.out}.answers.csv")
    write(folder, "1", responses)
    make_step(folder, people_per_list=2).run()
    assert read_answers(answers, may_be_empty=True) == ()  # one of two participants
    write(folder, "2", copies[0])
    make_step(folder, people_per_list=2).run()
    counted = read_answers(answers)
    assert {answer.participant for answer in counted} == {"p1", "q1"}
    # A third participant and changed ratings of the first arrive too late
    changed_responses = [replace(row, rating=7 - row.rating) for row in responses]
    write(folder, "1", changed_responses)
    write(folder, "3", copies[1])
    make_step(folder, people_per_list=2).run()
    assert read_answers(answers) == counted
    # A withdrawn participant is removed once the data lack the responses
    (folder / "gone.csv").write_text("participant,reason\np1,withdrew\n", encoding="utf-8")
    write(folder, "1", responses)
    make_step(folder, people_per_list=2, exclude=folder / "gone.csv").run()
    assert read_answers(answers) == counted
    (warning,) = record_of(step.out)["warnings"]
    assert "p1" in warning
    (folder / "answers" / "1.csv").unlink()
    with pytest.raises(InputError, match="p1"):
        make_step(folder, people_per_list=2).run()
    make_step(folder, people_per_list=2, exclude=folder / "gone.csv").run()
    assert {answer.participant for answer in read_answers(answers)} == {"q1"}


def test_late_list_counts_later_and_rules_are_fixed(folder: Path) -> None:
    step = start(folder)
    write(folder, "1", respond(read_trials(step.out), [1, 2, 3]))
    make_step(folder, people_per_wave=3).run()  # continues without list 4
    history = record_of(step.out)["history"]
    assert len(record_of(step.out)["waves"]) == 2
    write(folder, "2", respond(read_trials(step.out), [4], lambda trial: 7 - prefer_first(trial)))
    make_step(folder, people_per_wave=3, min_catch=0).run()
    assert record_of(step.out)["history"][0] == history[0]
    wave_numbers = [a.wave for a in read_answers(Path(f"{step.out}.answers.csv")) if a.list == "4"]
    assert {*wave_numbers} == {2}
    for rule in ({"alpha": 0.1}, {"margin": 0.2}):
        with pytest.raises(InputError, match="an earlier verdict used"):
            make_step(folder, **rule).run()


def test_rerun_from_data_keeps_the_wave_in_progress(folder: Path) -> None:
    def rate(trial: Trial) -> int:
        """Rate without preference for a model, so that no verdict is reached."""
        is_catch = trial.condition is Condition.CATCH
        return 1 if is_catch or int(trial.trial_id[-4:], 16) % 2 else 6

    step = start(folder)
    for wave, n_people in ((1, 4), (2, 4), (3, 2)):
        first = 4 * wave - 3
        responses = respond(read_trials(step.out), range(first, first + n_people), rate)
        write(folder, f"{wave}", responses)
        make_step(folder).run()
    assert "2 of 4 participants of wave 3" in record_of(step.out)["status"]
    assert_repeated(folder)


def test_first_wave_from_a_design(folder: Path) -> None:
    design = build_design(
        triplets=some_triplets(6, MODELS), groups=2, random_per_group=0, catch_per_group=0
    )
    write_table(folder / "first.csv", trial_columns(design.trials))
    step = start(folder, first=folder / "first.csv")
    assert read_trials(step.out) == design.trials
    with pytest.raises(InputError, match="multiple of 2, the number of groups"):
        make_step(folder, first=folder / "first.csv", people_per_wave=3).run()
    twins = build_design(
        triplets=some_triplets(6, MODELS),
        groups=3,
        random_per_group=0,
        catch_per_group=0,
        twins=True,
    )
    write_table(folder / "first.csv", trial_columns(twins.trials))
    with pytest.raises(InputError, match="twins"):
        make_step(folder, first=folder / "first.csv", people_per_wave=3).run()


def test_changed_trials_are_refused(folder: Path) -> None:
    step = start(folder)
    write(folder, "1", respond(read_trials(step.out), range(1, 5)))
    text = step.out.read_text(encoding="utf-8").replace(",4,", ",3,", 1)
    text = text.replace('"4"', '"3"', 1) if text == step.out.read_text(encoding="utf-8") else text
    step.out.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="wave 1"):
        make_step(folder).run()


def test_wave_ends_despite_excluded_participants(folder: Path) -> None:
    step = start(folder)
    trials = read_trials(step.out)
    careless_responses = respond(trials, [4], lambda trial: 7 - prefer_first(trial))
    write(folder, "1", respond(trials, [1, 2, 3]) + careless_responses)
    make_step(folder).run()
    record = record_of(step.out)
    assert (record["finished"], record["excluded"], len(record["waves"])) == (4, 1, 2)
    lists = {answer.list for answer in read_answers(Path(f"{step.out}.answers.csv"))}
    assert lists == {"1", "2", "3"}


def test_waves_end_at_the_maximum_of_participants(folder: Path) -> None:
    step = start(folder, max_people=4)
    write(folder, "1", respond(read_trials(step.out), range(1, 5)))
    verdict = make_step(folder, max_people=4).run()
    record = record_of(step.out)
    assert (record["is_over"], len(record["waves"]), bool(verdict.open)) == (True, 1, True)
    assert record["further_people"] > 0


def test_verdict_is_shown_if_the_pool_is_too_small(folder: Path) -> None:
    write_table(folder / "triplets.csv", columns_of(Triplet, some_triplets(10, MODELS)))
    step = start(folder)
    write(folder, "1", respond(read_trials(step.out), range(1, 5)))
    make_step(folder).run()
    record = record_of(step.out)
    assert (record["complete"], record["triplets_per_pair"], len(record["waves"])) == (False, 16, 1)
    assert record["history"][0]["surviving"] == ["a", "b", "c"]


def test_verify_recomputes_the_verdicts(folder: Path) -> None:
    step = start(folder)
    write(folder, "1", respond(read_trials(step.out), range(1, 5)))
    make_step(folder).run()
    assert not verify_folder(folder).wrong
    record, survivor = Path(f"{step.out}.meta.json"), '"surviving": [\n        "'
    text = record.read_text(encoding="utf-8")
    assert f"{survivor}a" in text
    record.write_text(text.replace(f"{survivor}a", f"{survivor}z"), encoding="utf-8")
    wrong_names = [Path(file.path).name for file in verify_folder(folder).wrong]
    assert wrong_names == ["trials.csv.answers.csv"]


def test_wave_waits_for_decisions_and_avoids_rejected_items(folder: Path) -> None:
    items = undecided_items(some_triplets(40, MODELS), "ann")
    reject, keep = Decision.REJECT, Decision.KEEP
    some_items = [i for n, i in enumerate(items) if n % 40 < 14]
    decisions = [replace(i, decision=reject if n % 2 else keep) for n, i in enumerate(some_items)]
    write_review(folder / "review.csv", decisions)
    step = start(folder, review=(folder / "review.csv",), trials_per_person=3)
    shown_trials = read_trials(step.out)
    kept_ids = {item.item_id for item in decisions if item.decision is keep}
    assert {trial.source_id for trial in shown_trials if trial.model_1} <= kept_ids
    write(folder, "1", respond(shown_trials, range(1, 5)))
    step = start(folder, review=(folder / "review.csv",), trials_per_person=3)
    record = record_of(step.out)
    assert len(record["waves"]) == 1
    assert "decisions about 78 triplets" in record["status"]
    decisions += [replace(i, decision=keep) for i in items if i not in some_items]
    write_review(folder / "review.csv", decisions)
    make_step(folder, review=(folder / "review.csv",), trials_per_person=3).run()
    assert len(record_of(step.out)["waves"]) == 2


def test_counted_answers_need_their_data_and_do_not_change(folder: Path) -> None:
    step, answers_path = make_step(folder), folder / "trials.csv.answers.csv"
    step.run()
    write(folder, "2", respond(read_trials(step.out), range(1, 5)))
    make_step(folder).run()
    counted = read_answers(answers_path)
    late = [replace(r, participant="p1") for r in respond(read_trials(step.out), [5])]
    write(folder, "1", late)  # is read before the counted responses
    make_step(folder).run()
    assert read_answers(answers_path) == counted
    for path in (folder / "answers").iterdir():
        path.unlink()
    with pytest.raises(InputError, match="lack 4 participants"):
        make_step(folder).run()


@pytest.mark.parametrize("missing_name", ["trials.csv", "trials.csv.waves.csv"])
def test_first_wave_is_designed_again_after_a_kill(folder: Path, missing_name: str) -> None:
    step = start(folder)
    make_step(folder, trials_per_person=3).run()
    (folder / missing_name).unlink()  # as if killed between the two tables
    make_step(folder).run()
    trials = read_trials(step.out)
    assert sum(bool(trial.model_1) for trial in trials) == 24
    assert record_of(step.out)["waves"][0]["items"] == 24


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"platform": "unknown"}, "`platform` must be one of"),
        ({"require": ("language=en",)}, "`require` needs `participants`"),
        ({"sentences": None}, "Set `sentences`"),
    ],
)
def test_impossible_settings_are_refused_before_wave_1(
    folder: Path, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make_step(folder, **settings).run()
