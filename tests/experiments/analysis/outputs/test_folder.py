"""The folder that an analysis writes, for designs of every shape."""

import csv
import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from contstim.errors import InputError
from contstim.experiments.analysis import figures as drawing
from contstim.experiments.analysis import page as writing
from contstim.experiments.analysis.effects import Sampling, Units
from contstim.experiments.analysis.families import CEILING
from contstim.experiments.analysis.figures import drawings
from contstim.experiments.analysis.measures import ACCURACY, COSINE, Measure
from contstim.experiments.analysis.page import methods_text, verdict_texts, write_analysis
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.analysis.run import Analysis, analyze
from contstim.experiments.analysis.tables import result_tables
from contstim.experiments.responses.admission import Exclusions
from contstim.experiments.responses.checks import Problem
from contstim.files.tables import read_table
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition
from tests.experiments.analysis.simulation import Experiment, simulate

SHOWN = {*Scope} - {Scope.MINIMAL}  # of the design of 2023


def analysed(made: Experiment, units: Units | None = None, **options: object) -> Analysis:
    sampling = Sampling(units)
    return analyze(made.trials, made.responses, made.scores, sampling=sampling, **options)  # type: ignore[arg-type]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class _Tags(HTMLParser):
    """Tags that are open; tables and pictures stand where a narrow page scrolls them alone."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not [
            value
            for name, value in attrs
            if name in ("src", "href")
            if ":" in str(value) and not str(value).startswith("data:image/png;base64,")
        ]
        assert "div" in self.open or tag not in ("table", "img")
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _empty_files(_figure: Figure, path: Path, **_: str) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in ("png", "pdf"):
        Path(f"{path}.{ending}").touch()
    return bytes(24)


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn, and neither laid out nor saved: for tests of pages and tables."""
    monkeypatch.setattr(writing, "save", _empty_files)


def _draw_nothing(patch: pytest.MonkeyPatch) -> None:
    """Name figures, and neither draw nor save them."""
    patch.setattr(writing, "save", _empty_files)
    for name in ("consistency_figure", "heat_map", "scatter_figure", "sureness_figure"):
        patch.setattr(drawing, name, lambda *_, **__: True)


@pytest.fixture(scope="module")
def found() -> Analysis:
    return analysed(simulate(groups=(3, 4), seed=6))


@pytest.fixture(scope="module")
def folder(found: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        _draw_nothing(patch)
        write_analysis(found, folder, title="A & <b>")
    return folder


def test_a_design_with_every_condition_has_every_table_and_figure(folder: Path) -> None:
    tables = {path.stem for path in (folder / "tables").glob("*.csv")}
    conditions = [str(c) for c in Condition if c is not Condition.MINIMAL_PAIR]
    targeted = conditions[:3]
    assert tables == {
        *("participants", "groups", "models", "comparisons", "model_pairs", "roles"),
        *("unanimity", "trials", "failures", "regressions"),
        *(f"agreement-{c}" for c in conditions),
        *(f"dominance-{c}" for c in targeted),
    }
    figures = {path.stem for path in (folder / "figures").glob("*.png")}
    assert figures == {path.stem for path in (folder / "figures").glob("*.pdf")}
    assert figures == {
        *(f"accuracy-{scope}" for scope in SHOWN if scope is not Scope.OVERALL),
        *("signed-rank-cosine-overall", "agreement-random-natural", "ranks"),
        *(f"dominance-{c}" for c in targeted),
        *("roles-natural-synthetic", "reliability"),
    }


def test_tables_agree_with_each_other(folder: Path) -> None:
    """Participants average to groups, groups to models."""
    people, groups, models = (
        read(folder / "tables" / f"{n}.csv") for n in ("participants", "groups", "models")
    )
    assert {row["scope"] for row in models} == SHOWN
    for model in models:
        key = ("scope", "measure", "model")
        own = [g for g in groups if all(g[k] == model[k] for k in key)]
        assert float(model["value"]) == pytest.approx(np.mean([float(g["value"]) for g in own]))
        for group in own:
            members = [p for p in people if all(p[k] == group[k] for k in (*key, "group"))]
            assert len(members) == int(group["n_participants"])
            for name in ("value", "lower_ceiling", "upper_ceiling"):
                mean = np.mean([float(p[name]) for p in members])
                assert float(group[name]) == pytest.approx(mean)


def test_the_page_is_well_formed_escaped_and_stands_alone(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    parser = _Tags()
    parser.feed(page)
    assert parser.open == []
    assert "<h1>A &amp; &lt;b&gt;</h1>" in page
    assert "7 participants in 2 groups" in page
    assert "trials whose scores contradict the roles of their models" in page
    assert len(re.findall("<img ", page)) == len([*(folder / "figures").glob("*.png")])
    methods = (folder / "methods.md").read_text(encoding="utf-8")
    assert methods.startswith("# Statistics\n\n")
    assert "warning" not in methods
    assert all("degrees of freedom are those of Satterthwaite" in text for text in (page, methods))


def test_the_page_has_every_two_models_with_difference_and_verdict(folder: Path) -> None:
    """Witness: the table of comparisons, counted for each scope of the page."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    rows = [
        row
        for row in read(folder / "tables" / "comparisons.csv")
        if row["second"] != CEILING
        and (row["scope"] == "overall") == (row["measure"] != "accuracy")
    ]
    assert page.count("All pairs of models: ") == len({row["scope"] for row in rows})
    for row in rows:
        cells = (escape(row["first"]), escape(row["second"]), f"{float(row['difference']):.2f}")
        assert re.search(r"\s*".join(rf"<td[^>]*>{re.escape(c)}</td>" for c in cells), page), cells


def test_the_page_begins_with_the_verdict_and_one_figure(found: Analysis, folder: Path) -> None:
    """Witness: the tables, of which people follow the first model most."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    winner, why = verdict_texts(found)
    assert page.index(winner) < page.index("<img ") < page.index("<details") < page.index("<h2>")
    overall = [
        row
        for row in read(folder / "tables" / "models.csv")
        if (row["scope"], row["measure"]) == ("overall", COSINE.name)
    ]
    (first, value), (second, _) = sorted(
        ((row["model"], float(row["value"])) for row in overall), key=lambda each: -each[1]
    )[:2]
    assert first == "a"
    assert why.startswith(f"a has the highest signed-rank cosine over all trials: {value:.2f} (95%")
    (test,) = (
        row
        for row in read(folder / "tables" / "comparisons.csv")
        if (row["scope"], row["measure"]) == ("overall", COSINE.name)
        and {row["first"], row["second"]} == {first, second}
    )
    assert f"), {abs(float(test['difference'])):.2f} more than {second}, the next (" in why


@pytest.mark.parametrize(
    ("models", "follow", "groups", "sampling", "primary", "said"),
    [
        ("abc", 0.95, (9, 9), Sampling(), None, "a agrees with people most. a has the highest sig"),
        ("ab", 0.5, (3, 3), Sampling(), None, "The data do not show which model agrees"),
        ("ab", 0.95, (3,) * 4, Sampling("groups"), None, "models cannot be tested with 4 groups."),
        ("a", 0.95, (4, 4), Sampling(), None, "a is the only model. a has the highest signed-rank"),
        ("abc", 0.9, (9,), Sampling("participants"), None, "do not generalise to new items."),
        ("ab", 0.9, (9, 9), Sampling(), ACCURACY, "highest accuracy over all trials, the primary"),
        ("ab", 0.9, (9,), Sampling(correction="holm"), None, "% interval"),
    ],
)
def test_the_verdict_says_who_is_ahead_and_what_cannot_be_told(
    models: str,
    follow: float,
    groups: tuple[int, ...],
    sampling: Sampling,
    primary: Measure | None,
    said: str,
) -> None:
    """Witness: the model that people follow, and whether they follow it more than by chance."""
    made = simulate([*models], groups, conditions=(Condition.RANDOM_NATURAL,), follow=follow)
    found = analyze(made.trials, made.responses, made.scores, sampling=sampling, primary=primary)
    text = " ".join(verdict_texts(found))
    assert said in text
    assert ("p (Holm) " in text) == (sampling.correction == "holm")
    assert ("primary outcome" in " ".join(methods_text(found))) == (primary is not None)
    assert (found.main.measure is ACCURACY) == (primary is ACCURACY)
    levels = re.findall(r"([\d.]+)% interval(, wider because)?", text)
    assert levels
    assert all((float(level) > 95) == bool(wider) for level, wider in levels)
    best = max(found.main.models, key=lambda row: row.value)
    assert not ("reaches the noise" in text and best.value < best.lower)
    assert not ("not shown to be below the noise" in text and best.value >= best.lower)


def test_the_page_names_the_trials_that_people_are_least_and_most_sure_of(folder: Path) -> None:
    """Witness: trials.csv, without catch trials."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    rows = [row for row in read(folder / "tables" / "trials.csv") if row["condition"] != "catch"]
    sure = {row["trial_id"]: abs(float(row["sure_of_2"]) - 0.5) for row in rows}
    named = {
        heading: re.findall(r"<tr><td>(trial-[\d-]+)</td>", page.split(f"{heading} sure</h3>")[1])
        for heading in ("Least", "Most")
    }
    assert [sure[name] for name in named["Least"][:5]] == sorted(sure.values())[:5]
    assert [sure[name] for name in named["Most"][:5]] == sorted(sure.values())[:-6:-1]


@pytest.mark.slow
def test_same_analysis_writes_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "drawings", lambda *of: islice(drawings(*of), 2))
    made = simulate(("a", "b"), conditions=(Condition.RANDOM_NATURAL,))
    for name in "ab":
        write_analysis(analysed(made), tmp_path / name, title="t")
    written = [path for path in (tmp_path / "a").rglob("*.*") if path.is_file()]
    assert len(written) > 10
    for path in written:
        other = tmp_path / "b" / path.relative_to(tmp_path / "a")
        assert other.read_bytes() == path.read_bytes(), path
    for path in (tmp_path / "a" / "figures").iterdir():
        magic = b"%PDF" if path.suffix == ".pdf" else b"\x89PNG"
        assert path.read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("models", "groups", "conditions"),
    [
        (("a", "b"), (30,), (Condition.NATURAL_CONTROVERSIAL, Condition.CATCH)),
        (("a",), (3, 2), (Condition.RANDOM_NATURAL,)),
        (tuple("abcdef"), (2,), (Condition.SYNTHETIC_SYNTHETIC,)),
        (("a", "b", "c"), (1, 1), (Condition.NATURAL_SYNTHETIC, Condition.CATCH)),
    ],
)
@pytest.mark.usefixtures("unsaved")
def test_designs_of_any_shape(
    tmp_path: Path, models: tuple[str, ...], groups: tuple[int, ...], conditions: tuple[Condition]
) -> None:
    """One group of thirty; one model; six models; participants without company."""
    made = simulate(models, groups, each=1, conditions=conditions)
    found = analysed(made)
    write_analysis(found, tmp_path, title="t")
    assert found.sampling.units == "crossed"  # so few groups cannot be compared
    scopes = {row["scope"] for row in read(tmp_path / "tables" / "models.csv")}
    assert str(Scope.OVERALL) in scopes
    assert (Scope.RANDOM in scopes) == (Condition.RANDOM_NATURAL in conditions)
    pairs = Condition.RANDOM_NATURAL not in conditions
    assert (tmp_path / "figures" / "ranks.png").is_file() == pairs


def test_unfinished_sessions_count_where_they_can_and_the_page_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = simulate(groups=(4, 4), conditions=(Condition.NATURAL_CONTROVERSIAL,))
    half = [r for r in made.responses if r.participant != "g1p0" or r.position > 3]
    gone = sum(r.participant == "g1p0" for r in made.responses) - 3
    made = replace(made, responses=tuple(half))
    whole, part = (analysed(made, exclusions=Exclusions(partial=kept)) for kept in (False, True))
    assert part.ratings.participants == whole.ratings.participants
    assert [r.models for r in part.results] == [r.models for r in whole.results]
    choices = [sum(row["choices"] for row in each.regressions) for each in (whole, part)]
    assert choices[1] > choices[0]
    note = f"1 unfinished session ({gone} ratings) kept for regressions and mixed models only"
    assert [text for text in part.cautions if note in text]
    assert not [text for text in whole.cautions if "unfinished" in text]
    _draw_nothing(monkeypatch)
    write_analysis(part, tmp_path, title="t")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    kept = "an unfinished session, kept in regressions and mixed models alone: 1"
    assert note in page
    assert f"excluded: 1 ({kept}):" in page
    assert kept in " ".join(methods_text(part))


def test_impossible_pairs_and_names_of_models_are_refused(tmp_path: Path) -> None:
    found = analysed(simulate(conditions=(Condition.NATURAL_CONTROVERSIAL,)))
    with pytest.raises(InputError, match="No trial compares 'a' with 'z'"):
        write_analysis(found, tmp_path, title="t", pair=("a", "z"))
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="must not be 'ceiling', which is the noise ceiling"):
        analysed(simulate(("a", "ceiling"), conditions=(Condition.RANDOM_NATURAL,)))


def test_everything_is_finite_when_everybody_gives_one_rating() -> None:
    made = simulate(conditions=(Condition.NATURAL_CONTROVERSIAL,))
    same = tuple(replace(r, rating=3) for r in made.responses)
    found = analysed(replace(made, responses=same))
    for result in found.results:
        for one in result.models:
            assert np.isfinite((one.value, one.lower, one.upper)).all()
    assert all(np.isfinite(one["estimate"].value) for one in found.regressions)
    assert result_tables(found)["unanimity"]["near_unanimous"] == [18]
    assert {one.participant for one in found.admission.report.of(Problem.ONE_RATING)} == set(
        found.ratings.participants
    )


@pytest.mark.parametrize(
    ("units", "groups", "cautions"),
    [
        ("groups", (2,) * 5, ["With 5 groups, no result can be significant, whatever the data"]),
        ("groups", (2,) * 6, ["With 6 groups, no result can be significant unless 4 of the 6"]),
        ("groups", (2,) * 9, []),
        ("crossed", (2,) * 5, []),
        ("participants", (3,), ["With 3 participants, no result can", "Tests compare part"]),
        ("participants", (9,), ["Tests compare participants who saw the same"]),
    ],
)
def test_reach_of_test_families(units: Units, groups: tuple[int, ...], cautions: list[str]) -> None:
    """By hand: p is 2 / 2^n at best, three models make six tests, and 6 / 4 of .031 is below .05.

    Six of 2 / 2^9 = .0039 are .023 for a single test, which is enough.
    """
    made = simulate(groups=groups, conditions=(Condition.RANDOM_NATURAL,))
    found = analysed(made, units)
    assert len(found.cautions) == len(cautions)
    assert all(map(str.startswith, found.cautions, cautions))


@pytest.mark.usefixtures("unsaved")
def test_where_nothing_can_be_tested_each_place_says_so_and_none_says_none(tmp_path: Path) -> None:
    """Four groups: the page, the table and the axis of the figure."""
    made = simulate(groups=(3,) * 4, conditions=(Condition.RANDOM_NATURAL,), follow=1.0)
    found = analysed(made, "groups")
    write_analysis(found, tmp_path, title="t")
    page = (tmp_path / "report.html").read_text()
    said = "Models below the noise ceiling and differences between models cannot be tested with 4"
    assert page.count(said) == 2
    assert "none" not in page.split("</style>")[1]
    assert "untestable" in page
    assert page.index("no result can be significant, whatever") < page.index("<h2>")
    table = read_table(tmp_path / "tables" / "comparisons.csv")
    assert set(map(str, table["testable"])) == {"False"}
    assert set(table["holds_for"]) == {"items like these"}
    axes = dict(drawings(found))["accuracy-random-natural"].axes[0]
    assert axes.get_xlabel().endswith("differences cannot be tested with 4 groups")


def test_tables_are_frames_too(found: Analysis, folder: Path) -> None:
    """Witness: what was written, read back by another hand."""
    for name in ("models", "unanimity", "failures"):
        written = read(folder / "tables" / f"{name}.csv")
        frame = found.to_frame(name)
        assert list(frame.columns) == list(written[0])
        assert len(frame) == len(written)
    with pytest.raises(InputError, match=r"'nothing' .* participants"):
        found.to_frame("nothing")


def test_every_p_value_stands_with_its_family_test_and_effect(folder: Path) -> None:
    """Three models: three pairs and three ceilings."""
    for row in read(folder / "tables" / "comparisons.csv"):
        about = f"6 contrasts of {row['measure']} in {row['scope']}"
        assert row["family"] == f"{about}: 3 pairs of models, 3 models against the ceiling"
        assert row["test"] == "t-test, people and items crossed"
        assert row["correction"].startswith("false-discovery rate")
        assert np.isfinite(
            [float(row[n]) for n in ("low", "high", "low_standardised", "p_holm")]
        ).all()
    assert {row["family"] for row in read(folder / "tables" / "regressions.csv")} == {
        "single tests, not adjusted"
    }


def test_holm_decides_where_it_is_asked_for() -> None:
    """Between .05 and .05 times the rank a contrast is significant by one and not by the other."""
    made = simulate(groups=(30,), seed=5)
    sampling = Sampling(correction="holm")
    found = analyze(made.trials, made.responses, made.scores, sampling=sampling)
    tests = [test for result in found.results for test in result.comparisons]
    assert all(test.significant == (test.p_holm < 0.05) for test in tests)
    assert any(test.q_value < 0.05 <= test.p_holm for test in tests)


@pytest.mark.parametrize(
    ("sampling", "said", "cited"),
    [
        (Sampling(), "participants and items as crossed random factors", "Schütt, H. H."),
        (Sampling("groups"), "test over the means of 2 groups", "Wilcoxon, F. (1945)"),
        (Sampling("participants"), "test over 7 participants", "Benjamini, Y."),
        (Sampling(correction="holm"), "family-wise error rate at 0.05 (Holm, 1979)", "Holm, S."),
    ],
)
def test_methods_state_the_analysis_and_numbers(sampling: Sampling, said: str, cited: str) -> None:
    made = simulate(groups=(3, 4), conditions=(Condition.RANDOM_NATURAL,))
    found = analyze(made.trials, made.responses, made.scores, sampling=sampling)
    *paragraphs, references = methods_text(found)
    assert any(said in paragraph for paragraph in paragraphs)
    assert cited in references
    text = " ".join(paragraphs)
    assert "7 participants in 2 groups" in text
    # Random pairs and all trials are two scopes, each of two measures
    assert "6 contrasts (3 pairs of models, 3 models against the lower noise ceiling) in" in text
    citation = r"([A-Z][a-zü]+)(?: et al\.| (?:and|&) \w+)?,? \(?(\d{4})"
    for author, year in re.findall(citation, text):
        assert re.search(rf"{author}, .*?\({year}\)", references), (author, year)


def test_people_and_models_without_preferences_are_named() -> None:
    made = simulate(groups=(4,), conditions=(Condition.RANDOM_NATURAL,))
    log_probs = made.scores.log_probs.copy()
    log_probs[:, 1] = -7
    scores = ScoreTable(made.scores.sentences, made.scores.models, log_probs)
    same = tuple(replace(r, rating=5) for r in made.responses)
    found = analysed(replace(made, responses=same, scores=scores))
    assert found.cautions[0].startswith("Every rating is 5: results reflect the positions")
    assert found.cautions[1].startswith("b gives both sentences of every trial the same")
