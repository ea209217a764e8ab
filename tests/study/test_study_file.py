"""Study files: the study that a valid file describes, and an error with line for each problem."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from contstim.errors import InputError
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.platforms import ExportTrials
from contstim.steps.selection import SelectPairs
from contstim.steps.training import TrainNetwork
from contstim.study.study_file import read_study

GOOD = """\
title = "Two n-gram models"
seed = 3
[texts]
training = "english:400"
natural = "more.txt"
[models]
bigram = { train = "ngram", order = 2 }
lstm = { train = "lstm", hidden = 16, epochs = 1 }
mean = { same = "lstm", transform = "mean" }
[loading]
device = "cpu"
[vocabulary]
min_count = 2
[sentences]
words = "8"
names = 0
[score]
models_in_memory = 1
[select.natural]
per_pair = 6
same_length = true
[triplets]
per_pair = 9
enough = 0.25
max_changes = 2
[select.triplets]
per_pair = 6
quantiles = 3
objective = "worst-rank"
[review]
[design]
review = ["review.csv"]
groups = 3
random_per_group = 2
catch_per_group = 1
[power]
simulations = 10
[export.jspsych]
title = "Which is better?"
[simulate]
model = "lstm"
[analyze]
units = "participants"
"""

NGRAM = '{ train = "ngram", order = 2 }'
TITLE = 'title = "Which is better?"'
SELECTED = "quantiles = 3"
UNITS = '"participants"'
# Replaced text, its replacement, and part of the message
BAD = [
    ("[design]", "[desing]", "did you mean design?"),
    ("[loading]", "[xyzzy]", "there is no such section; there are"),
    ("min_count", "min_counts", "did you mean min_count?"),
    ("simulations = 10", "groups = 10", "there is no such key"),
    ("seed = 3", "sead = 3", "did you mean seed?"),
    ("per_pair = 9", 'per_pair = "9"', "is not a whole number"),
    ("per_pair = 9", "per_pair = 9.5", "is not a whole number"),
    ('words = "8"', "words = 8", "is not a text in quotes"),
    ("same_length = true", 'same_length = "yes"', "is not true or false"),
    ('"worst-rank"', '"worst"', "is not one of"),
    ('title = "Two n-gram models"', "title = 2", "is not a text"),
    ("seed = 3", 'seed = "3"', "is not a whole number"),
    ("seed = 3", "seed = -3", "0 or more"),
    ("[power]\nsimulations = 10", "[sentences.x]", "no such key"),
    ('"more.txt"', '"mor.txt"', "there is no file 'mor.txt'"),
    ('"more.txt"', '"empty"', "'empty' is a folder; name a file"),
    ('"more.txt"', '"/dev/zero"', "'/dev/zero' is not a file"),
    ('"review.csv"', '"empty"', "'empty' is a folder; name a file"),
    ("Two n-gram", r"Two \u0000", "[title]: contains a null character"),
    ("more.txt", r"more\u0000.txt", "[texts] natural: contains a null"),
    ('"review.csv"', r'"a", "\u0000"', "review: contains a null"),
    ("min_count", r'"a\u0000b"', r"[vocabulary] a\u0000b: contains"),
    ("[loading]", r'["\u0000"]', r"[\u0000]: contains a null"),
    ("bigram =", r'"bi\u0000" =', r"[models] bi\u0000: contains"),
    ('same = "lstm"', r'same = "\u0000"', "mean.same: contains a null"),
    ('"english:400"', '"english"', "such as english:2000"),
    ('"review.csv"', '"rev.csv"', "there is no file 'rev.csv'"),
    ("enough = 0.25", 'judge = "kenlm:none.arpa"', "none.arpa"),
    (NGRAM, '"kenlm:2.arpa"', "2.arpa"),
    (NGRAM, '"hf:./empty"', "empty"),
    (NGRAM, '"nlm:2"', "bilstm: "),
    ('device = "cpu"', 'prompt = ". "', "its own context in"),
    ("order = 2", 'order = 2, context = ". "', "reads nothing"),
    ("order = 2", "order = 2, context = 2", "is not a text"),
    (NGRAM, '{ model = "hf:gpt2", rule = "chain" }', "bigram.rule: there is no such key"),
    (NGRAM, "{ model = 2 }", "must be a text"),
    ('train = "lstm"', 'train = "gru"', "must be one of ngram"),
    ("hidden = 16", "hiden = 16", "did you mean hidden?"),
    ("hidden = 16", "hidden = 0", "1 or more"),
    ("order = 2", 'order = "2"', "is not a whole number"),
    ("order = 2", "order = 9", "6 at most"),
    ("epochs = 1", 'rule = "chain"', "no rule 'chain'"),
    ('transform = "mean"', 'transform = "sum"', "transform"),
    ("epochs = 1", 'rule = "/../../../../KEEP.txt"', "no rule '/../"),
    ("order = 2", 'order = 2, rule = "."', "no rule '.'"),
    ("epochs = 1", 'rule = "log-likelihood+mean"', "no rule"),
    ('"mean"', '"mean/../../../../KEEP.txt"', "transform"),
    ('"mean"', '"mean:/KEEP.txt"', "transform"),
    ("bigram =", '".." =', "must be a file in"),
    ('same = "lstm"', 'same = "gpt"', "another model of this study"),
    (', transform = "mean"', "", "are the same model"),
    (NGRAM, "2", "is not a model"),
    ("bigram =", "LSTM =", "would be trained in the same folder"),
    ("bigram =", '"a/b" =', "is not a name for a model"),
    ("bigram =", "sentence =", "must not be"),
    ('words = "8"', 'words = "eight"', "must be a number or a range"),
    ("enough = 0.25", 'plausible = "0.25"', "is now the key judge"),
    ("seed =", "judge = 1\nseed =", "list of models"),
    ("seed =", 'judge = { model = "hf:x", rule = "y" }\nseed =', "list of models"),
    ("seed =", 'judge = { model = "kenlm:x", context = "It" }\nseed =', "context"),
    (
        "enough = 0.25",
        'recipe = "best"',
        "study.toml has 1 problem:\n  line 22, [triplets]: There is no recipe",
    ),
    (UNITS, '"participants"\nresponses = "more.txt"', "[analyze] responses: "),
    ("min_count = 2", 'zipf = "3"', "such as 3.5-7"),
    ("per_pair = 9", "per_pair = 3", "cannot be selected from 3"),
    (SELECTED, "quantiles = 4", "per_pair = 12"),
    ("groups = 3", "groups = 4", "cannot be divided evenly"),
    ("groups = 3", "groups = 2\ntwins = true", "must be at least 3 with twins"),
    ("groups = 3", "groups = 0", "1 or more"),
    (
        "catch_per_group = 1",
        'catch_per_group = 1\nscale = "stars"',
        "'stars' is not one of 'confidence', 'choice' or 'slider'",
    ),
    (
        "catch_per_group = 1\n[power]\n",
        'catch_per_group = 1\nscale = "slider"\n[export.pcibex]\n[power]\n',
        "shows buttons",
    ),
    (
        "[export.jspsych]\n",
        '[export.jspsych]\nlanguage = "pt-BR"\n',
        "must be one of en, de",
    ),
    ("random_per_group = 2", "random_per_group = 2000", "to use each only once"),
    ("per_pair = 9", "per_pair = 0", "1 or more"),
    ("[design]", "[near_pairs]", "no section writes trials"),
    ('"lstm"\n[an', '"gru"\n[an', "must be a model of the study"),
    (
        "[simulate]",
        '[import.jspsych]\nfiles = ["more.txt"]\n[simulate]',
        "responses must name one of",
    ),
    ("[export.jspsych]", "[export.jpsych]", "mean jspsych?"),
    ("[export.jspsych]", "[reproduce.adc]", "data is missing"),
    (
        '[export.jspsych]\ntitle = "Which is better?"',
        '[export.jatos]\nsave = "file"',
        "[export.jatos] save: there is no such key",
    ),
    (
        SELECTED,
        'counts = "other.csv"',
        "counts: other.csv has a number for lstm, bigram.",
    ),
    (
        SELECTED,
        'quantiles = 0\ncounts = "many.csv"',
        "[select.triplets] counts: 12 triplets of bigram and lstm cannot be selected from 9",
    ),
    (
        SELECTED,
        'quantiles = 0\ncounts = "four.csv"',
        "4 triplets of bigram and lstm cannot be divided evenly among 3 groups",
    ),
    (SELECTED, 'counts = "review.csv"', "[select.triplets] counts: "),
    (UNITS, '"auto"\ncontrasts = "other.csv"', "lacks the columns first, second"),
    (UNITS, '"auto"\npair = ["lstm", "x"]', "must be a model of the study"),
    (UNITS, '"auto"\nmin_catch = 9', "min_catch: "),
    (
        TITLE,
        "deadline = 4.0",
        "max_missing: must be above 0, because [export.jspsych] has a deadline (4 s)",
    ),
    (TITLE, "deadline = 0.2", "at least 1 second"),
    (
        TITLE,
        'questions = "other.csv"',
        "[export.jspsych] questions: other.csv lacks the columns name, when, kind",
    ),
    (
        "[power]",
        "[[questions]]\nname = 'a'\nwhen = 'after'\nkind = 'text'\nquestion = 'A?'\n\n"
        "[[questions]]\nname = 'b'\nwhen = 'after'\nkind = 'number'\nquestion = 'B?'\n"
        "options = '18'\n[power]",
        "line 47, [questions] 2.options: '18': options of a number must be",
    ),
    (
        "[power]",
        "[[questions]]\nname = 'a'\nwhen = 'after'\nkind = 'text'\nquestions = 'A?'\n[power]",
        "[questions] 1.questions: there is no such key; did you mean question?",
    ),
    ("[power]", "[questions]\n[power]", "write [[questions]] and"),
    (
        TITLE,
        'practice = "other.csv"',
        "[export.jspsych] practice: other.csv lacks the columns sentence_1",
    ),
    (
        "catch_per_group = 1",
        'attention = "other.csv"',
        "[design] attention: other.csv lacks the columns sentence_1",
    ),
    ("simulations = 10", 'pilot = "empty"', "[power]: "),
    ("simulations = 10", "simulations = 0", "must be 1 or more, not 0"),
    ('words = "8"', 'words = "9-7"', "a number or a range"),
    (
        UNITS,
        '"participants"\nresponses = "results/answers.csv"',
        "there is no file 'results/answers.csv'",
    ),
    ('title = "Which', 'tittle = "Which', "did you mean title?"),
    ("[simulate]\nmodel", "[import.nowhere]\nmodel", "no such key"),
    ('natural = "more.txt"\n', "", "[texts] names no natural text"),
    ('training = "english:400"\n', "", "set training in [texts]"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "more.txt").write_text("They read books.\n" * 200, encoding="utf-8")
    header = (
        "reviewer,item_id,kind,source_id,condition,group,model_1,model_2,"
        "sentence_1,sentence_2,sentence_3,decision,reason\n"
    )
    row = "Ann,p1,pair,,,0,bigram,lstm,They sleep.,We read.,,keep,\n"
    (tmp_path / "review.csv").write_text(header + row, encoding="utf-8")
    counts = "model_1,model_2,per_pair\n"
    (tmp_path / "other.csv").write_text(f"{counts}lstm,bigram,3\n", encoding="utf-8")
    (tmp_path / "many.csv").write_text(f"{counts}bigram,lstm,12\n", encoding="utf-8")
    (tmp_path / "four.csv").write_text(f"{counts}bigram,lstm,4\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "study.toml").write_text(GOOD, encoding="utf-8")
    return tmp_path


def test_valid_file_is_read(folder: Path) -> None:
    study = read_study(folder)
    assert [model.text for model in study.models] == [
        "bigram=kenlm:results/models/bigram.arpa",
        "lstm=lstm:results/models/lstm",
        "mean=lstm:results/models/lstm+mean",
    ]
    assert (study.title, study.seed, study.step(SelectPairs).settings.per_pair) == (  # type: ignore[union-attr]
        "Two n-gram models",
        3,
        6,
    )
    assert isinstance(study.models[1].training, TrainNetwork)
    assert study.models[1].training.training.seed == 3  # the seed of the study


def test_attention_trials_count_as_catch_trials(folder: Path) -> None:
    (folder / "asked.csv").write_text("sentence_1,sentence_2\nThis one.,The other one.\n")
    text = GOOD.replace("catch_per_group = 1", 'catch_per_group = 1\nattention = "asked.csv"')
    for min_catch, is_valid in ((2, True), (3, False)):
        rule = text.replace('"participants"', f'"participants"\nmin_catch = {min_catch}')
        (folder / "study.toml").write_text(rule, encoding="utf-8")
        if is_valid:
            analysis = read_study(folder).step(AnalyzeResponses)
            assert analysis is not None
            assert analysis.exclusions.min_catch == min_catch
        else:
            with pytest.raises(InputError, match="min_catch: "):
                read_study(folder)


def test_jatos_export_saves_to_jatos_by_default(folder: Path) -> None:
    text = GOOD.replace("[export.jspsych]", "[export.jatos]")
    (folder / "study.toml").write_text(text, encoding="utf-8")
    export = read_study(folder).step(ExportTrials)
    assert export is not None
    assert export.settings.save == "jatos"


@pytest.mark.parametrize(("old", "new", "message"), BAD)
def test_error_gives_line_and_message(folder: Path, old: str, new: str, message: str) -> None:
    assert GOOD.count(old) == 1
    (folder / "study.toml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_study(folder / "study.toml")
    text = str(error.value)
    assert message in text
    assert "study.toml has " in text
    assert all(line.startswith("  line ") for line in text.split("\n")[1:])


def test_all_problems_are_reported_in_the_order_of_lines(folder: Path) -> None:
    text = GOOD.replace("groups = 3", "groups = 4").replace("min_count", "minimum")
    text = text.replace("[power]\nsimulations = 10\n", "")
    text = text.replace('"more.txt"', '"none.txt"').replace("order = 2", 'order = "two"')
    (folder / "study.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_study(folder)
    positions = [line.split(": ")[0].strip() for line in str(error.value).split("\n")[1:]]
    assert positions == [
        "line 5, [texts] natural",
        "line 7, [models] bigram.order",
        "line 13, [vocabulary] minimum",
        "line 20, [select.natural] per_pair",
        "line 27, [select.triplets] per_pair",
    ]


def test_error_gives_line_of_invalid_toml(folder: Path) -> None:
    (folder / "study.toml").write_text(GOOD.replace("order = 2", "order = two"), encoding="utf-8")
    with pytest.raises(InputError, match=r"TOML.*line 7"):
        read_study(folder)


@pytest.mark.slow
def test_time_is_linear_in_the_number_of_unknown_keys(folder: Path) -> None:
    unknown = "".join(f"unknown_{number} = 1\n" for number in range(8_000))
    text = GOOD.replace("[select.natural]\n", f"[select.natural]\n{unknown}")
    (folder / "study.toml").write_text(text, encoding="utf-8")
    start = process_time()
    with pytest.raises(InputError) as error:
        read_study(folder)
    assert process_time() - start < 3  # quadratic time takes more than twice as long
    lines = str(error.value).split("\n")
    assert "study.toml has 8,000 problems:" in lines[0]
    assert lines[-1].startswith("  line 8019, [select.natural] unknown_7999: there is no such key")


@pytest.mark.parametrize("path", ["/dev/zero", "nowhere"])
def test_path_without_a_file_is_refused(path: str) -> None:
    with pytest.raises(InputError, match=f"There is no study file {path}"):
        read_study(path)


def test_error_for_a_missing_file_names_the_new_command(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contstim new NAME"):
        read_study(tmp_path)


@pytest.mark.parametrize("number", ["groups = 3", "per_pair = 9"])
def test_refused_number_causes_no_further_problems(folder: Path, number: str) -> None:
    old, new = number, f"{number[:-1]}0"
    (folder / "study.toml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match="has 1 problem"):
        read_study(folder)
