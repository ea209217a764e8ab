"""Steps of the demo: text, models, natural pairs, triplets, and a page to look at."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.english import generate
from contstim.errors import InputError
from contstim.files.documents import read_json_object, write_json
from contstim.files.files import write_text
from contstim.files.records import record_path, write_record
from contstim.files.tables import columns_of, write_table
from contstim.items.stimuli import Pair, Triplet, read_triplets
from contstim.models.base import conventions
from contstim.models.catalog import load_model, model_files
from contstim.models.scoring import score_sentences
from contstim.models.training.settings import (
    RecurrentSettings,
    TrainingSettings,
    TransformerSettings,
)
from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.settings import SearchSettings
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.optimization.selection.natural import select_natural
from contstim.optimization.selection.question import NaturalQuestion
from contstim.reporter import SILENT, Reporter
from contstim.reporting.stimuli_page import stimuli_report
from contstim.steps.review import flags_of
from contstim.steps.training import tell_training
from contstim.store import Store
from contstim.version import __version__
from contstim.wording import counted
from contstim.words.corpus import read_sentences
from contstim.words.filters import distinct_words, filter_sentences, in_vocabulary, not_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from contstim.items.reviews import Stimulus
    from contstim.items.scores import ScoreTable
    from contstim.models.base import LanguageModel
    from contstim.models.training.loop import Progress
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

# Small and briefly trained: the demo needs models that differ, not good ones. Of each the words of
# its n-grams or its architecture, passes over the text, and rate of learning.
_SMALL: Any = {"width": 64, "layers": 2, "heads": 2, "window": 32, "dropout": 0}
_RECURRENT: Any = {"embedding": 64, "hidden": 96, "min_count": 1}
_MODELS: dict[str, tuple[int | RecurrentSettings | TransformerSettings, int, float]] = {
    "2-gram": (2, 1, 1.0),
    "3-gram": (3, 1, 1.0),
    "RNN": (RecurrentSettings(kind="rnn", **_RECURRENT), 2, 0.01),
    "LSTM": (RecurrentSettings(kind="lstm", **_RECURRENT), 3, 0.01),
    "GPT-2": (TransformerSettings(kind="gpt2", **_SMALL), 3, 0.006),
    "BERT": (TransformerSettings(kind="bert", **_SMALL), 3, 0.006),
}
NAMES = tuple(_MODELS)
_MODELS["judge"] = (5, 1, 1.0)  # of what reads well
_WORDS = 7  # BERT is exact over all orders, which costs twice as much for every word more
# Each is shown as soon as its second model is trained; models are trained in the order of NAMES.
_DUELS = (("2-gram", "3-gram"), ("RNN", "LSTM"), ("3-gram", "GPT-2"), ("GPT-2", "BERT"))
# Few changes, so that people can read the sentences: for fewer nats where more are not found, and
# with any new words last
_SEARCHES = (
    *(SearchSettings(enough=nats) for nats in (3.0, 1.5, 0.7)),
    SearchSettings(frame="none"),
)
_STARTS = 10  # natural sentences, at most, from which each pair of models is searched
_RARER = 0.2  # share of natural sentences that are rarer than any synthetic one, to a judge
_SETTINGS = "demo.json"


@dataclass(frozen=True)
class Scale:
    """Size of the demo.

    Attributes:
        training: sentences that models are trained on.
        natural: sentences to select pairs from, before those are left out that are no news to the
            models.
        judging: sentences that the judge of what reads well is trained on.
        most_epochs: cuts the training of every network short.
    """

    training: int = 3_000
    natural: int = 400
    judging: int = 40_000
    most_epochs: int | None = None


@dataclass(frozen=True)
class Demo:
    """Results of the demo: triplets, most controversial first, and natural pairs with scores."""

    out: Path
    triplets: tuple[Triplet, ...]
    pairs: tuple[Pair, ...]
    scores: ScoreTable


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for torch: networks this small gain nothing from more.

    On a busy machine threads wait for each other six times as long as they work; and with one the
    same seed gives the same figures, however many processors there are.
    """
    import torch

    before = torch.get_num_threads()  # the caller's, given back when the demo is over
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@_one_thread()
def run_demo(
    out: Path | str,
    *,
    seed: int = 0,
    scale: Scale | None = None,
    reporter: Reporter = SILENT,
    show: Callable[[Triplet], None] = lambda _triplet: None,
) -> Demo:
    """Train one model of every kind on the embedded English and show where they disagree.

    Writes models, natural sentences, vocabulary, scores, pairs with their certificate, triplets and
    a page to look at into a folder. What an earlier run of the same demo left there is not done
    again.

    Args:
        out: the folder, made if need be.
        seed: decides the text, the models' first weights and every search.
        scale: how much is done.
        reporter: told what happens next, and how far each training is.
        show: given the triplet of two models as soon as both are trained.

    Raises:
        InputError: the folder holds a demo with another seed, scale or version.
    """
    out, scale = Path(out), scale or Scale()
    searches = [asdict(search.few_changes) if search.few_changes else {} for search in _SEARCHES]
    _claim(out, {"contstim": __version__, "seed": seed, "searches": searches, **vars(scale)})
    reporter.say(f"Writing {counted(scale.training, 'sentence')} of the embedded English …")
    text = _sentences(out / "text.txt", lambda: generate(scale.training, seed=seed))
    models: dict[str, LanguageModel] = {}

    def train_next(name: str) -> LanguageModel:
        reporter.say(f"Training: {name} …")
        told = partial(tell_training, reporter, "training")
        epochs = scale.most_epochs
        with reporter:
            models[name] = train(name, text, out, seed=seed, most_epochs=epochs, on_progress=told)
        return models[name]

    # The words of a search are those that n-gram models saw five times; the networks learn from
    # the same text and know them too, but for words of the sentences that validate them alone.
    vocabulary = default_vocabulary([train_next(name) for name in NAMES[:2]])
    # Of another seed, and none that a model was trained on: new to all of them.
    rules = (distinct_words(vocabulary.repeatable), in_vocabulary(vocabulary), not_in(text))
    natural = _sentences(
        out / "natural.txt",
        lambda: filter_sentences(generate(scale.natural, seed=seed + 1, words=_WORDS), rules),
    )
    reporter.say(f"Training: a judge, on {counted(scale.judging, 'other sentence')} …")
    more = _sentences(out / "judge.txt", lambda: generate(scale.judging, seed=seed + 2))
    judge = train("judge", more, out, seed=seed)
    judged = judge.log_probs(natural)
    floor = float(np.quantile(judged, _RARER))
    triplets: list[Triplet] = []
    path = out / "triplets.csv"
    # The record is written last: where it is missing, an earlier run was interrupted
    finished = path.is_file() and record_path(path).is_file()
    earlier = read_triplets(path) if finished else ()
    known: Any = read_json_object(record_path(path)).get("models") or {} if finished else {}
    for number, (first, second) in enumerate(_DUELS):
        for name in NAMES[len(models) : NAMES.index(second) + 1]:
            vocabulary, _ = shared_vocabulary([train_next(name)], vocabulary)
        duel = [each for each in earlier if (each.model_1, each.model_2) == (first, second)]
        if not duel or known | conventions([models[first], models[second]]) != known:
            reporter.say(f"Searching: {first} against {second} …")
            # Every duel starts from sentences of its own.
            likely = [s for s, p in zip(natural, judged, strict=True) if p >= floor]
            starts = likely[number :: len(_DUELS)][:_STARTS]
            pair = models[first], models[second]
            duel = _search_duel(*pair, starts, vocabulary, (judge, floor), seed)
        triplets += duel
        for triplet in duel:
            show(triplet)
    triplets.sort(key=lambda triplet: -triplet.controversiality)
    vocabulary.save(out / "vocab.txt")
    facts = {"seed": seed, "models": conventions(models.values())}
    loaded = model_files(model.specification for model in models.values())
    write_table(path, columns_of(Triplet, triplets))
    write_record(path, [out / "natural.txt", out / "vocab.txt", *loaded], **facts)
    reporter.say(f"Scoring {counted(len(natural), 'new sentence')} and selecting natural pairs …")
    with Store(out / "scores.sqlite") as store:
        to_score = list(filter_sentences(natural, [in_vocabulary(vocabulary)]))
        scores = score_sentences([*models.values()], to_score, store=store)
    scores.write(out / "scores.csv")
    selection = select_natural(scores, NaturalQuestion(per_pair=1))
    write_table(out / "pairs.csv", columns_of(Pair, selection.pairs))
    certificate = out / "pairs.csv.certificate.json"
    selection.certificate.save(certificate)
    write_record(out / "scores.csv", [out / "natural.txt", *loaded], **facts)
    write_record(out / "pairs.csv", [out / "scores.csv"], [certificate], **facts)
    title = f"Where {', '.join(NAMES[:-1])} and {NAMES[-1]} disagree"
    shown: list[Stimulus] = [*triplets, *selection.pairs]
    page = stimuli_report(title, shown, scores=scores, flagged=flags_of(shown))
    write_text(out / "report.html", page.html())
    return Demo(out, tuple(triplets), selection.pairs, scores)


def train(
    name: str,
    text: Sequence[Sentence],
    folder: Path,
    *,
    seed: int,
    most_epochs: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> LanguageModel:
    """One of `NAMES`, or the judge, trained on a text or taken from where it was trained before.

    Args:
        name: which.
        text: what it is trained on.
        folder: holds the models, each under its name.
        seed: decides a network's first weights and the order of sentences.
        most_epochs: cuts every network's training short.
        on_progress: told after every step of a network's training.

    Raises:
        InputError: the folder holds a model of that name with another text or other settings.
    """
    architecture, epochs, learning_rate = _MODELS[name]
    epochs = min(epochs, most_epochs or epochs)
    settings = TrainingSettings(
        epochs=epochs, batch_size=32, learning_rate=learning_rate, seed=seed
    )
    run: Any = {"device": "cpu", "on_progress": on_progress}
    # Every trainer takes up what an earlier call left in its folder.
    specification = _train(text, folder / name, architecture, settings, **run)
    return load_model(specification, device="cpu", name=name)


def _train(
    text: Sequence[Sentence],
    out: Path,
    architecture: int | RecurrentSettings | TransformerSettings,
    training: TrainingSettings,
    **run: Any,
) -> str:
    """Train a model, and return its specification; libraries of other kinds are not loaded.

    Args:
        text: training text.
        out: output folder; for n-grams the file name without `.arpa`.
        architecture: number of words of the longest n-grams, or settings of a network.
        training: training settings of a network.
        run: `device`, `precision` and `on_progress` of a network.

    Raises:
        ModelError, CorpusError: see `train_ngram` and `train_network`.
    """
    if isinstance(architecture, int):
        from contstim.models.ngram.training import train_ngram

        train_ngram(text, architecture, out.with_name(f"{out.name}.arpa"))
        return f"kenlm:{out}.arpa"
    from contstim.models.training.run import train_network

    train_network(text, out, architecture, training, **run)
    return f"{architecture.kind if isinstance(architecture, RecurrentSettings) else 'hf'}:{out}"


def _claim(out: Path, settings: Mapping[str, object]) -> None:
    """Make the folder this demo's, unless it is another's."""
    path = out / _SETTINGS
    if path.is_file():
        other = read_json_object(path)
        differing = [name for name in settings if settings[name] != other.get(name)]
        if differing:
            raise InputError(
                f"{out} holds a demo with another "
                + ", ".join(f"{n} ({other.get(n)}, now {settings[n]})" for n in differing)
                + ". Name another folder with --out, or delete this one."
            )
    elif out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out} is not empty and holds no demo; name another folder with --out.")
    write_json(path, settings)


def _sentences(path: Path, make: Callable[[], Iterable[Sentence]]) -> list[Sentence]:
    """The sentences of a file, made and written if it is not there yet."""
    if not path.is_file():
        write_text(path, "".join(f"{sentence.text}\n" for sentence in make()))
    return list(read_sentences(path))


def _search_duel(
    first: LanguageModel,
    second: LanguageModel,
    natural: Sequence[Sentence],
    vocabulary: Vocabulary,
    judge: tuple[LanguageModel, float],
    seed: int,
) -> list[Triplet]:
    """The first triplet of two models that disagree enough; of all natural sentences in turn."""
    for search, sentence in product(_SEARCHES, natural):
        triplet, _, _ = synthesize_triplet(
            first,
            second,
            sentence,
            vocabulary,
            constraints=search.constraints(sentence, every_fix=False),
            fluency=judge,
            seed=seed,
            restarts=SINGLE,
            few_changes=search.few_changes,
        )
        if triplet.distinct:
            return [triplet]
    return []
