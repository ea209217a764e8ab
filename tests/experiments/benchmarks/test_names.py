"""Short names, against ones written by hand."""

from contstim.experiments.benchmarks.names import short_names


def test_names_lose_what_does_not_tell_them_apart() -> None:
    assert short_names(["hf:runs/a/bert@chain", "hf:runs/gpt2"]) == ["bert@chain", "gpt2"]
    assert short_names(["hf:a/x/bert@chain", "hf:a/y/bert@chain", "hf:gpt2"]) == [
        *("x/bert@chain", "y/bert@chain", "hf:gpt2")
    ]
    assert short_names(["hf:gpt2+slor:dir/uni.arpa"]) == ["hf:gpt2+slor:dir/uni.arpa"]
    assert short_names(["kenlm:m.arpa", "m.arpa"]) == ["kenlm:m.arpa", "m.arpa"]
