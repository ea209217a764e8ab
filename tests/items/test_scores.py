"""Tables of scores and counts: round trips by file, and SciPy's ranks."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from contstim.errors import InputError, ScoreError
from contstim.items.scores import ScoreTable, read_pair_counts, read_token_counts
from contstim.words.sentence import Sentence, is_word
from tests.examples import examples

WORDS = (st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=9)).filter(is_word)
SENTENCES = st.builds(
    Sentence, st.lists(WORDS, min_size=1, max_size=5).map(tuple), st.sampled_from(".!?")
)
CATS, DOGS = Sentence.parse("Cats purr."), Sentence.parse("Dogs bark.")
NAMES = st.sampled_from(["gpt2", "hf:bert@pll-word-l2r", "modèle", "模型", 'a "quoted", name'])
SCORES = st.floats(allow_nan=False, max_value=1e308) | st.just(-np.inf) | st.just(-0.0)


@st.composite
def tables(draw: st.DrawFn) -> ScoreTable:
    models = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    sentences = draw(st.lists(SENTENCES, min_size=1, max_size=6, unique=True))
    size = len(sentences) * len(models)
    scores = draw(st.lists(SCORES, min_size=size, max_size=size))
    grid = np.array(scores, dtype=np.float64).reshape(len(sentences), len(models))
    return ScoreTable(tuple(sentences), tuple(models), grid)


def score_bytes(table: ScoreTable) -> bytes:
    return np.ascontiguousarray(table.log_probs).tobytes()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".npz"])
@settings(max_examples=examples(12))
@given(table=tables())
def test_written_tables_are_read_bit_for_bit(suffix: str, table: ScoreTable) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"scores{suffix}"
        table.write(path)
        loaded = ScoreTable.from_file(path)
    assert loaded.models == table.models
    assert loaded.sentences == table.sentences
    assert score_bytes(loaded) == score_bytes(table)


def test_npz_may_omit_the_sentences(tmp_path: Path) -> None:
    table = ScoreTable(None, ("a", "b"), np.array([[-1.0, -np.inf], [-2.0, -3.0]]))
    table.write(tmp_path / "scores.npz")
    loaded = ScoreTable.from_file(tmp_path / "scores.npz")
    assert loaded.sentences is None
    assert score_bytes(loaded) == score_bytes(table)
    with pytest.raises(ScoreError, match=r"can only be written to an \.npz file"):
        table.write(tmp_path / "scores.csv")


@given(st.lists(st.sampled_from([-np.inf, -3.5, -3.0, -0.0, 0.0, -1e-300]) | SCORES, min_size=1))
def test_ranks_equal_those_of_scipy(column: list[float]) -> None:
    table = ScoreTable(None, ("a", "b"), np.array([column, sorted(column)], dtype=np.float64).T)
    expected = np.stack([rankdata(c, method="average") for c in table.log_probs.T], axis=1)
    assert table.doubled_ranks().dtype == np.int64
    assert (table.doubled_ranks() == 2 * expected).all()
    assert (table.ranks() == expected / len(column)).all()


def test_unknown_model_error_lists_the_models() -> None:
    table = ScoreTable(None, ("rnn", "lstm"), np.array([[-1.0, -2.0]]))
    assert table.column("lstm").tolist() == [-2.0]
    with pytest.raises(ScoreError, match="must be one of rnn, lstm, got 'gpt2'"):
        table.column("gpt2")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_error_names_sentence_and_model(bad: float) -> None:
    with pytest.raises(ScoreError, match=rf"row 1 \('Dogs bark\.'\) under rnn is {bad}"):
        ScoreTable((CATS, DOGS), ("lstm", "rnn"), np.array([[-1, -2], [-1, bad]]))


def test_impossible_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScoreError, match="got rnn twice"):
        ScoreTable(None, ("rnn", "lstm", "rnn"), np.zeros((1, 3)))
    np.savez(tmp_path / "scores.npz", rnn=np.zeros((3, 2)))
    with pytest.raises(ScoreError, match=r"rnn has the shape \(3, 2\)"):
        ScoreTable.from_file(tmp_path / "scores.npz")
    with pytest.raises(ScoreError, match="at least two sentences"):
        ScoreTable(None, ("a",), np.zeros((1, 1))).agreement()


@pytest.mark.parametrize("shape", [(2, 2), (3, 1), (3,)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ScoreError, match="sentences × models"):
        ScoreTable(tuple(map(Sentence.parse, "abc")), ("rnn", "lstm"), np.zeros(shape))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.csv", "sentence,rnn\nCats purr.,-1\nDogs bark.,n/a\n", "row 1: 'n/a' under rnn"),
        ("s.csv", "sentence,rnn\nCats purr.,nan\n", "Cats purr.*under rnn is nan"),
        ("s.csv", "sentence\nCats purr.\n", "must have 1 to 1,000 columns of scores, got 0"),
        ("s.csv", "text,rnn\nCats purr.,-1\n", "lacks the columns sentence; its"),
        ("s.csv", "sentence,rnn,rnn\nCats purr.,-1,-2\n", "twice: rnn"),
        ("s.csv", "sentence,rnn\nCats purr.\n", "line 2: the row has 1 cells, but the header 2"),
        ("s.jsonl", '{"sentence": "Cats purr.", "rnn": null}\n', r"row 0 .* under rnn is nan"),
        ("s.jsonl", '{"sentence": "a", "rnn": 1}\n{"sentence": "b"}\n', "line 2: expected the sa"),
        ("s.csv", "sentence,rnn\nA b.,-1\nC d.,-1_0\n", "row 1: '-1_0' under rnn is not a number"),
        ("s.jsonl", '{"sentence": "A b.", "rnn": true}\n', "row 0: True under rnn is not a number"),
        ("s.jsonl", '{"sentence": "A b.", "rnn": [1]}\n', "under rnn is not a number"),
        ("s.jsonl", '{"sentence": null, "rnn": 1}\n', "row 0: None under sentence is not a se"),
        ("s.csv", "sentence,rnn\n", "s.csv has a header but no rows"),
        ("s.csv", "sentence,rnn\nA  b,-1\nA b.,-2\n", "'A b.' has two scores, in rows 0 and 1"),
        ("s.csv", "sentence,rnn\nA b.,-1\n .,-2\n", "row 1: .* A sentence needs at least one word"),
        ("s.npz", "no zip at all", r"not an \.npz"),
        ("s.parquet", "no parquet at all", "not a readable Parquet file"),
    ],
)
def test_invalid_files_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        ScoreTable.from_file(tmp_path / name)


def test_texts_are_read_as_sentences_in_canonical_form(tmp_path: Path) -> None:
    """By hand: no end mark, extra spaces, canonical form, and a sentence with the same score."""
    path = tmp_path / "s.csv"
    rows = "Cats purr,-1\n  Dogs   bark !,-inf\nOwls hoot.,-3\nOwls hoot,-3\n"
    path.write_text(f"sentence,rnn\n{rows}")
    ScoreTable.from_file(path).write(path)
    written_rows = ('"Cats purr.",-1.0', '"Dogs bark!",-inf', *['"Owls hoot.",-3.0'] * 2)
    assert path.read_text().splitlines() == ['"sentence","rnn"', *written_rows]


def test_rows_are_looked_up_by_sentence() -> None:
    table = ScoreTable((CATS, DOGS, CATS), ("rnn",), np.array([[-1.0], [-2.0], [-1.0]]))
    assert table.rows_of([DOGS, CATS, DOGS]).tolist() == [1, 0, 1]
    owls = Sentence.parse("Owls hoot")
    with pytest.raises(ScoreError, match=r"lack 1 of 2 sentences: 'Owls hoot\.'\. Score them"):
        table.rows_of([CATS, owls, owls])
    with pytest.raises(ScoreError, match="The table of scores has no sentences"):
        ScoreTable(None, ("rnn",), np.zeros((1, 1))).rows_of([CATS])


def test_table_is_converted_to_pandas() -> None:
    table = ScoreTable((CATS, DOGS), ("rnn", "lstm"), np.array([[-1.0, -2.0], [-3.0, -np.inf]]))
    frame = table.to_frame()
    assert frame.columns.tolist() == ["sentence", "rnn", "lstm"]
    assert frame["sentence"].tolist() == ["Cats purr.", "Dogs bark."]
    assert frame[["rnn", "lstm"]].to_numpy().tolist() == table.log_probs.tolist()
    assert replace(table, sentences=None).to_frame().columns.tolist() == ["rnn", "lstm"]


def test_table_with_100000_columns_is_refused(tmp_path: Path) -> None:
    """Every command would compare about 5 billion pairs of models."""
    path, names = tmp_path / "wide.csv", [f"m{n}" for n in range(100_000)]
    path.write_text(f"sentence,{','.join(names)}\nA b.{',-1' * len(names)}\n")
    with pytest.raises(ScoreError, match=r"wide\.csv must have 1 to 1,000 columns"):
        ScoreTable.from_file(path)


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=9),
    st.booleans(),
)
def test_agreement_counts_every_pair(rows: list[tuple[int, int]], impossible: bool) -> None:
    """Witness: a loop over all pairs."""
    scores = np.array(rows, dtype=np.float64)
    scores[0, 0] = -np.inf if impossible else scores[0, 0]
    agreement = ScoreTable(None, ("a", "b"), scores).agreement()
    pairs = [(i, j) for i in range(len(rows)) for j in range(i)]
    for m in range(2):
        for k in range(2):
            n_agreeing = sum(
                0.5
                if scores[i, m] == scores[j, m] or scores[i, k] == scores[j, k]
                else float((scores[i, m] > scores[j, m]) == (scores[i, k] > scores[j, k]))
                for i, j in pairs
            )
            assert agreement[m, k] == pytest.approx(n_agreeing / len(pairs))


def test_tokens_of_a_sentence_are_counted_once(tmp_path: Path) -> None:
    """By hand: one row for each word; repeated sentences, also twice in succession."""
    dog = "A dog,m,0,A,1,-1,1\nA dog,m,1,dog,2,-2,2\nA dog,n,0,A,1,-1,1\n"
    hello, header = "Hello,m,0,Hello,2,-1,1\n", "sentence,model,position,word,tokens,log_prob,x\n"
    (tmp_path / "words.csv").write_text(header + dog + hello + hello + dog)
    counts = {("A dog.", "m"): 3, ("A dog.", "n"): 1, ("Hello.", "m"): 2}
    assert read_token_counts(tmp_path / "words.csv") == counts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model_1,model_2\na,b\n", "lacks the columns per_pair"),
        ("model_1,model_2,per_pair\na,b,1\na,b,2\n", "two rows for a and b"),
        ("model_1,model_2,per_pair\na,b,few\n", "'few' under per_pair is not a whole number"),
    ],
)
def test_invalid_pair_counts_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("model_1,model_2,per_pair\na,b,1\nb,c,0\n")
    assert read_pair_counts(path) == {("a", "b"): 1, ("b", "c"): 0}
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_pair_counts(path)
