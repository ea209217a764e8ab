"""The output folder of an analysis, for various designs."""

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
from contstim.experiments.analysis.run import Analysis
from contstim.experiments.analysis.tables import result_tables
from contstim.experiments.responses.admission import Exclusions
from contstim.experiments.responses.checks import Problem
from contstim.files.tables import read_table
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition
from tests.experiments.analysis.simulation import simulate

SCOPES = {*Scope} - {Scope.MINIMAL}  # of the 2023 design


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class _TagChecker(HTMLParser):
    """Track open tags; check that tables and images are in scrollable divs and links are local."""

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


def _touch_files(_figure: Figure, path: Path, **_: str) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in ("png", "pdf"):
        Path(f"{path}.{ending}").touch()
    return bytes(24)


@pytest.fixture
def without_saving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw figures without layout and saving, for tests of pages and tables."""
    monkeypatch.setattr(writing, "save", _touch_files)


def _skip_drawing(patch: pytest.MonkeyPatch) -> None:
    """Name figures without drawing or saving them."""
    patch.setattr(writing, "save", _touch_files)
    for name in ("consistency_figure", "heat_map", "scatter_figure", "sureness_figure"):
        patch.setattr(drawing, name, lambda *_, **__: True)


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return simulate(groups=(3, 4), seed=6).analyze()


@pytest.fixture(scope="module")
def folder(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        _skip_drawing(patch)
        write_analysis(analysis, folder, title="A & <b>")
    return folder


def test_all_conditions_have_all_tables_and_figures(folder: Path) -> None:
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
        *(f"accuracy-{scope}" for scope in SCOPES if scope is not Scope.OVERALL),
        *("signed-rank-cosine-overall", "agreement-random-natural", "ranks"),
        *(f"dominance-{c}" for c in targeted),
        *("roles-natural-synthetic", "reliability"),
    }


def test_participants_average_to_groups_and_models(folder: Path) -> None:
    people, groups, models = (
        read_rows(folder / "tables" / f"{n}.csv") for n in ("participants", "groups", "models")
    )
    assert {row["scope"] for row in models} == SCOPES
    for model in models:
        key = ("scope", "measure", "model")
        group_rows = [g for g in groups if all(g[k] == model[k] for k in key)]
        mean = np.mean([float(g["value"]) for g in group_rows])
        assert float(model["value"]) == pytest.approx(mean)
        for group in group_rows:
            members = [p for p in people if all(p[k] == group[k] for k in (*key, "group"))]
            assert len(members) == int(group["n_participants"])
            for name in ("value", "lower_ceiling", "upper_ceiling"):
                mean = np.mean([float(p[name]) for p in members])
                assert float(group[name]) == pytest.approx(mean)


def test_page_is_well_formed_escaped_and_self_contained(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    parser = _TagChecker()
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


def test_page_shows_all_pairs_of_models(folder: Path) -> None:
    """Witness: the table of comparisons, counted for each scope on the page."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    rows = [
        row
        for row in read_rows(folder / "tables" / "comparisons.csv")
        if row["second"] != CEILING
        and (row["scope"] == "overall") == (row["measure"] != "accuracy")
    ]
    assert page.count("All pairs of models: ") == len({row["scope"] for row in rows})
    for row in rows:
        cells = (escape(row["first"]), escape(row["second"]), f"{float(row['difference']):.2f}")
        assert re.search(r"\s*".join(rf"<td[^>]*>{re.escape(c)}</td>" for c in cells), page), cells


def test_page_begins_with_the_verdict_and_one_figure(analysis: Analysis, folder: Path) -> None:
    """Witness: the tables; participants follow the first model most."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    winner, note = verdict_texts(analysis)
    assert page.index(winner) < page.index("<img ") < page.index("<details") < page.index("<h2>")
    overall = [
        row
        for row in read_rows(folder / "tables" / "models.csv")
        if (row["scope"], row["measure"]) == ("overall", COSINE.name)
    ]
    (first, value), (second, _) = sorted(
        ((row["model"], float(row["value"])) for row in overall),
        key=lambda name_and_value: -name_and_value[1],
    )[:2]
    assert first == "a"
    assert note.startswith(f"a has the highest signed-rank cosine over all trials: {value:.2f} ")
    (test,) = (
        row
        for row in read_rows(folder / "tables" / "comparisons.csv")
        if (row["scope"], row["measure"]) == ("overall", COSINE.name)
        and {row["first"], row["second"]} == {first, second}
    )
    assert f"), {abs(float(test['difference'])):.2f} more than {second}, the next (" in note


@pytest.mark.parametrize(
    ("models", "follow", "groups", "sampling", "primary", "expected"),
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
def test_verdict_states_the_best_model_and_limits(
    models: str,
    follow: float,
    groups: tuple[int, ...],
    sampling: Sampling,
    primary: Measure | None,
    expected: str,
) -> None:
    """Witness: the model that participants follow, and whether they follow it above chance."""
    experiment = simulate([*models], groups, conditions=(Condition.RANDOM_NATURAL,), follow=follow)
    analysis = experiment.analyze(sampling=sampling, primary=primary)
    text = " ".join(verdict_texts(analysis))
    assert expected in text
    assert ("p (Holm) " in text) == (sampling.correction == "holm")
    assert ("primary outcome" in " ".join(methods_text(analysis))) == (primary is not None)
    assert (analysis.main.measure is ACCURACY) == (primary is ACCURACY)
    levels = re.findall(r"([\d.]+)% interval(, wider because)?", text)
    assert levels
    assert all((float(level) > 95) == bool(wider) for level, wider in levels)
    best = max(analysis.main.models, key=lambda row: row.value)
    assert not ("reaches the noise" in text and best.value < best.lower)
    assert not ("not shown to be below the noise" in text and best.value >= best.lower)


def test_page_lists_the_least_and_most_certain_trials(folder: Path) -> None:
    """Witness: trials.csv, without catch trials."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    rows = [r for r in read_rows(folder / "tables" / "trials.csv") if r["condition"] != "catch"]
    certainty = {row["trial_id"]: abs(float(row["sure_of_2"]) - 0.5) for row in rows}
    extremes = {
        heading: re.findall(r"<tr><td>(trial-[\d-]+)</td>", page.split(f"{heading} sure</h3>")[1])
        for heading in ("Least", "Most")
    }
    assert [certainty[name] for name in extremes["Least"][:5]] == sorted(certainty.values())[:5]
    assert [certainty[name] for name in extremes["Most"][:5]] == sorted(certainty.values())[:-6:-1]


@pytest.mark.slow
def test_same_analysis_writes_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "drawings", lambda *of: islice(drawings(*of), 2))
    experiment = simulate(("a", "b"), conditions=(Condition.RANDOM_NATURAL,))
    for name in "ab":
        write_analysis(experiment.analyze(), tmp_path / name, title="t")
    paths = [path for path in (tmp_path / "a").rglob("*.*") if path.is_file()]
    assert len(paths) > 10
    for path in paths:
        other_path = tmp_path / "b" / path.relative_to(tmp_path / "a")
        assert other_path.read_bytes() == path.read_bytes(), path
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
@pytest.mark.usefixtures("without_saving")
def test_designs_of_various_shapes(
    tmp_path: Path, models: tuple[str, ...], groups: tuple[int, ...], conditions: tuple[Condition]
) -> None:
    """A group of thirty; one model; six models; groups of one participant."""
    experiment = simulate(models, groups, each=1, conditions=conditions)
    analysis = experiment.analyze()
    write_analysis(analysis, tmp_path, title="t")
    assert analysis.sampling.units == "crossed"  # too few groups for a test over groups
    scopes = {row["scope"] for row in read_rows(tmp_path / "tables" / "models.csv")}
    assert str(Scope.OVERALL) in scopes
    assert (Scope.RANDOM in scopes) == (Condition.RANDOM_NATURAL in conditions)
    pairs = Condition.RANDOM_NATURAL not in conditions
    assert (tmp_path / "figures" / "ranks.png").is_file() == pairs


def test_unfinished_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They count in regressions and mixed models only."""
    experiment = simulate(groups=(4, 4), conditions=(Condition.NATURAL_CONTROVERSIAL,))
    responses = [r for r in experiment.responses if r.participant != "g1p0" or r.position > 3]
    n_ratings = sum(r.participant == "g1p0" for r in experiment.responses) - 3
    experiment = replace(experiment, responses=tuple(responses))
    without_partial, with_partial = (
        experiment.analyze(exclusions=Exclusions(partial=partial)) for partial in (False, True)
    )
    assert with_partial.ratings.participants == without_partial.ratings.participants
    assert [r.models for r in with_partial.results] == [r.models for r in without_partial.results]
    choices = [
        sum(row["choices"] for row in a.regressions) for a in (without_partial, with_partial)
    ]
    assert choices[1] > choices[0]
    note = f"1 unfinished session ({n_ratings} ratings) kept for regressions and mixed models only"
    assert [text for text in with_partial.cautions if note in text]
    assert not [text for text in without_partial.cautions if "unfinished" in text]
    _skip_drawing(monkeypatch)
    write_analysis(with_partial, tmp_path, title="t")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    description = "an unfinished session, kept in regressions and mixed models alone: 1"
    assert note in page
    assert f"excluded: 1 ({description}):" in page
    assert description in " ".join(methods_text(with_partial))


def test_invalid_model_pairs_and_names_are_rejected(tmp_path: Path) -> None:
    analysis = simulate(conditions=(Condition.NATURAL_CONTROVERSIAL,)).analyze()
    with pytest.raises(InputError, match="No trial compares 'a' with 'z'"):
        write_analysis(analysis, tmp_path, title="t", pair=("a", "z"))
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="must not be 'ceiling', which is the noise ceiling"):
        simulate(("a", "ceiling"), conditions=(Condition.RANDOM_NATURAL,)).analyze()


def test_results_of_constant_ratings_are_finite() -> None:
    experiment = simulate(conditions=(Condition.NATURAL_CONTROVERSIAL,))
    responses = tuple(replace(r, rating=3) for r in experiment.responses)
    analysis = replace(experiment, responses=responses).analyze()
    for result in analysis.results:
        for row in result.models:
            assert np.isfinite((row.value, row.lower, row.upper)).all()
    assert all(np.isfinite(row["estimate"].value) for row in analysis.regressions)
    assert result_tables(analysis)["unanimity"]["near_unanimous"] == [18]
    assert {row.participant for row in analysis.admission.report.of(Problem.ONE_RATING)} == set(
        analysis.ratings.participants
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
def test_cautions_state_what_tests_can_detect(
    units: Units, groups: tuple[int, ...], cautions: list[str]
) -> None:
    """By hand: p is at least 2 / 2^n, three models make six tests, and 6 / 4 of .031 is below .05.

    Six times 2 / 2^9 = .0039 is .023, so a single test can be significant.
    """
    experiment = simulate(groups=groups, conditions=(Condition.RANDOM_NATURAL,))
    analysis = experiment.analyze(sampling=Sampling(units))
    assert len(analysis.cautions) == len(cautions)
    assert all(map(str.startswith, analysis.cautions, cautions))


@pytest.mark.usefixtures("without_saving")
def test_untestable_differences_are_reported_everywhere(tmp_path: Path) -> None:
    """Four groups: the page, the table and the axis of the figure."""
    experiment = simulate(groups=(3,) * 4, conditions=(Condition.RANDOM_NATURAL,), follow=1.0)
    analysis = experiment.analyze(sampling=Sampling("groups"))
    write_analysis(analysis, tmp_path, title="t")
    page = (tmp_path / "report.html").read_text()
    statement = "Models below the noise ceiling and differences between models cannot be tested"
    assert page.count(statement) == 2
    assert "none" not in page.split("</style>")[1]
    assert "untestable" in page
    assert page.index("no result can be significant, whatever") < page.index("<h2>")
    table = read_table(tmp_path / "tables" / "comparisons.csv")
    assert set(map(str, table["testable"])) == {"False"}
    assert set(table["holds_for"]) == {"items like these"}
    axes = dict(drawings(analysis))["accuracy-random-natural"].axes[0]
    assert axes.get_xlabel().endswith("differences cannot be tested with 4 groups")


def test_tables_can_be_frames(analysis: Analysis, folder: Path) -> None:
    """Witness: the written tables, read by the csv module."""
    for name in ("models", "unanimity", "failures"):
        rows = read_rows(folder / "tables" / f"{name}.csv")
        frame = analysis.to_frame(name)
        assert list(frame.columns) == list(rows[0])
        assert len(frame) == len(rows)
    with pytest.raises(InputError, match=r"'nothing' .* participants"):
        analysis.to_frame("nothing")


def test_p_values_have_their_family_test_and_effect(folder: Path) -> None:
    """Three models: three pairs and three ceilings."""
    for r in read_rows(folder / "tables" / "comparisons.csv"):
        contrasts = f"6 contrasts of {r['measure']} in {r['scope']}"
        assert r["family"] == f"{contrasts}: 3 pairs of models, 3 models against the ceiling"
        assert r["test"] == "t-test, people and items crossed"
        assert r["correction"].startswith("false-discovery rate")
        numbers = [float(r[n]) for n in ("low", "high", "low_standardised", "p_holm")]
        assert np.isfinite(numbers).all()
    assert {r["family"] for r in read_rows(folder / "tables" / "regressions.csv")} == {
        "single tests, not adjusted"
    }


def test_holm_decides_on_request() -> None:
    """Some contrasts are significant by the false-discovery rate but not by Holm."""
    experiment = simulate(groups=(30,), seed=5)
    sampling = Sampling(correction="holm")
    analysis = experiment.analyze(sampling=sampling)
    tests = [test for result in analysis.results for test in result.comparisons]
    assert all(test.significant == (test.p_holm < 0.05) for test in tests)
    assert any(test.q_value < 0.05 <= test.p_holm for test in tests)


@pytest.mark.parametrize(
    ("sampling", "expected", "cited"),
    [
        (Sampling(), "participants and items as crossed random factors", "Schütt, H. H."),
        (Sampling("groups"), "test over the means of 2 groups", "Wilcoxon, F. (1945)"),
        (Sampling("participants"), "test over 7 participants", "Benjamini, Y."),
        (Sampling(correction="holm"), "family-wise error rate at 0.05 (Holm, 1979)", "Holm, S."),
    ],
)
def test_methods_state_analysis_and_numbers(sampling: Sampling, expected: str, cited: str) -> None:
    experiment = simulate(groups=(3, 4), conditions=(Condition.RANDOM_NATURAL,))
    analysis = experiment.analyze(sampling=sampling)
    *paragraphs, references = methods_text(analysis)
    assert any(expected in paragraph for paragraph in paragraphs)
    assert cited in references
    text = " ".join(paragraphs)
    assert "7 participants in 2 groups" in text
    # Two scopes, random pairs and all trials, with two measures each
    assert "6 contrasts (3 pairs of models, 3 models against the lower noise ceiling) in" in text
    citation = r"([A-Z][a-zü]+)(?: et al\.| (?:and|&) \w+)?,? \(?(\d{4})"
    for author, year in re.findall(citation, text):
        assert re.search(rf"{author}, .*?\({year}\)", references), (author, year)


def test_cautions_name_constant_ratings_and_scores() -> None:
    experiment = simulate(groups=(4,), conditions=(Condition.RANDOM_NATURAL,))
    log_probs = experiment.scores.log_probs.copy()
    log_probs[:, 1] = -7
    scores = ScoreTable(experiment.scores.sentences, experiment.scores.models, log_probs)
    responses = tuple(replace(r, rating=5) for r in experiment.responses)
    analysis = replace(experiment, responses=responses, scores=scores).analyze()
    assert analysis.cautions[0].startswith("Every rating is 5: results reflect the positions")
    assert analysis.cautions[1].startswith("b gives both sentences of every trial the same")
