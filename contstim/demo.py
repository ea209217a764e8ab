"""The demo: generate text, train small models, and show sentences about which they disagree.

Natural pairs consist of two generated sentences. A triplet consists of a generated sentence and two
changed versions of it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from itertools import compress, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.english import generate
from contstim.errors import InputError
from contstim.files.documents import read_json_object, write_json
from contstim.files.files import write_text
from contstim.files.records import write_record
from contstim.files.tables import write_table
from contstim.items.stimuli import triplet_columns
from contstim.models.base import conventions
from contstim.models.catalog import load_model, model_files
from contstim.models.scoring import score_sentences
from contstim.models.training.settings import (
    RecurrentSettings,
    TrainingSettings,
    TransformerSettings,
    trained_specification,
)
from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.settings import SearchSettings
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.optimization.selection.question import NaturalRules
from contstim.reporter import SILENT, Reporter
from contstim.reporting.stimuli_page import stimuli_report
from contstim.steps.review import flags_of
from contstim.steps.selection import SelectPairs
from contstim.steps.training import tell_training
from contstim.store import Store
from contstim.version import __version__
from contstim.wording import quantity
from contstim.words.corpus import read_sentences
from contstim.words.filters import distinct_words, filter_sentences, in_vocabulary, not_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from contstim.items.reviews import Stimulus
    from contstim.items.stimuli import Pair, Triplet
    from contstim.models.base import LanguageModel
    from contstim.models.training.loop import Progress
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

# Name → (kind, number of epochs, learning rate). The kind is the order of an n-gram model, or the
# architecture of a network. The models are small, because the demo needs different models, not good
# models
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
_MODELS["judge"] = (5, 1, 1.0)  # chooses the most sensible sentences
_WORDS = 7  # words of a natural sentence; each further word doubles the cost of exact BERT scores
# Pairs of models, in the order of the searches. The models are trained in the order of `NAMES`, and
# a search begins as soon as both models of its pair are trained
_DUELS = (("2-gram", "3-gram"), ("RNN", "LSTM"), ("3-gram", "GPT-2"), ("GPT-2", "BERT"))
# The first three searches change few words, so that sentences stay readable. If a search finds no
# triplet, the next search requires less disagreement (in nats of log-probability). The last search
# may replace all words
_SEARCHES = (
    *(SearchSettings(enough=nats) for nats in (3.0, 1.5, 0.7)),
    SearchSettings(frame="none"),
)
_STARTS = 10  # for each pair of models, searches start from at most this number of sentences
_FLOOR_QUANTILE = 0.2  # natural sentences below this quantile of the judge's scores are skipped
_SETTINGS = "demo.json"


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit torch to one thread, so that results do not depend on the number of processors.

    More threads do not make such small networks faster.
    """
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


@_one_thread()
def run_demo(
    out: Path | str,
    *,
    seed: int = 0,
    n_training: int = 3_000,
    n_natural: int = 400,
    n_judging: int = 40_000,
    most_epochs: int | None = None,
    reporter: Reporter = SILENT,
    show: Callable[[Triplet], None] = lambda _triplet: None,
) -> tuple[tuple[Triplet, ...], tuple[Pair, ...]]:
    """Train one model of every kind on the embedded English, and show where the models disagree.

    Write models, texts, vocabulary, scores, pairs, triplets and a report page into a folder. Reuse
    the texts, models and scores of an earlier run of the same demo.

    Args:
        out: output folder, created if it does not exist.
        seed: seed of the text, the initial weights and every search.
        n_training: number of sentences in the training text of the models.
        n_natural: number of natural sentences to generate. Sentences with repeated or unknown words
            are then removed, and so are sentences of the training text.
        n_judging: number of sentences in the training text of the judge.
        most_epochs: maximum number of epochs of every network.
        reporter: receiver of messages and progress.
        show: callback, called with each triplet when it is ready.

    Returns:
        Triplets, most controversial first, and natural pairs. A triplet is a natural sentence and
        two changed versions of it, one for each model to reject.

    Raises:
        InputError: if the folder has files but no demo, or a demo with other settings.
    """
    out = Path(out)
    goals = [search.few_changes() for search in _SEARCHES]
    searches = [asdict(goal) if goal else {} for goal in goals]
    settings = {"contstim": __version__, "seed": seed, "searches": searches}
    sizes = {"training": n_training, "natural": n_natural, "judging": n_judging}
    _claim_folder(out, settings | sizes | {"most_epochs": most_epochs})
    reporter.say(f"Writing {quantity(n_training, 'sentence')} of the embedded English …")
    text = _read_or_write(out / "text.txt", lambda: generate(n_training, seed=seed))
    models: dict[str, LanguageModel] = {}

    def train_next(name: str) -> LanguageModel:
        reporter.say(f"Training: {name} …")
        on_progress = partial(tell_training, reporter, "training")
        with reporter:
            models[name] = train(
                name, text, out, seed=seed, most_epochs=most_epochs, on_progress=on_progress
            )
        return models[name]

    # The vocabulary contains the words that occur at least five times in the training text. The
    # networks also know these words, except words that only occur in their validation sentences
    vocabulary = default_vocabulary([train_next(name) for name in NAMES[:2]])
    # Use another seed and exclude the training sentences, so that all natural sentences are new to
    # the models
    rules = (distinct_words(vocabulary.repeatable), in_vocabulary(vocabulary), not_in(text))
    natural = _read_or_write(
        out / "natural.txt",
        lambda: filter_sentences(generate(n_natural, seed=seed + 1, words=_WORDS), rules),
    )
    reporter.say(f"Training: a judge model, on {quantity(n_judging, 'other sentence')} …")
    judge_text = _read_or_write(out / "judge.txt", lambda: generate(n_judging, seed=seed + 2))
    judge = train("judge", judge_text, out, seed=seed)
    judged = judge.log_probs(natural)
    likely = [*compress(natural, judged >= np.quantile(judged, _FLOOR_QUANTILE))]
    triplets: list[Triplet] = []
    for number, (first, second) in enumerate(_DUELS):
        for name in NAMES[len(models) : NAMES.index(second) + 1]:
            vocabulary, _ = shared_vocabulary([train_next(name)], vocabulary)
        reporter.say(f"Searching: {first} against {second} …")
        # Different pairs of models start from different natural sentences
        starts = likely[number :: len(_DUELS)][:_STARTS]
        triplet = _search_duel(models[first], models[second], starts, vocabulary, judge, seed)
        if triplet is not None:
            triplets.append(triplet)
            show(triplet)
    triplets.sort(key=lambda triplet: -triplet.controversiality)
    vocabulary.save(out / "vocab.txt")
    facts = {"seed": seed, "models": conventions(models.values())}
    loaded = model_files(model.specification for model in models.values())
    write_table(out / "triplets.csv", triplet_columns(triplets))
    inputs = [out / "natural.txt", out / "vocab.txt", *loaded]
    write_record(out / "triplets.csv", inputs, **facts)
    reporter.say(f"Scoring {quantity(len(natural), 'new sentence')} and selecting natural pairs …")
    with Store(out / "scores.sqlite") as store:
        to_score = list(filter_sentences(natural, [in_vocabulary(vocabulary)]))
        scores = score_sentences([*models.values()], to_score, store=store)
    scores.write(out / "scores.csv")
    write_record(out / "scores.csv", [out / "natural.txt", *loaded], **facts)
    one_pair = NaturalRules(per_pair=1)
    pairs = SelectPairs(scores=out / "scores.csv", out=out / "pairs.csv", settings=one_pair).run()
    title = f"Where {', '.join(NAMES[:-1])} and {NAMES[-1]} disagree"
    stimuli: list[Stimulus] = [*triplets, *pairs.pairs]
    page = stimuli_report(title, stimuli, scores=scores, flagged=flags_of(stimuli))
    write_text(out / "report.html", page.html())
    return tuple(triplets), pairs.pairs


def train(
    name: str,
    text: Sequence[Sentence],
    folder: Path,
    *,
    seed: int,
    most_epochs: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> LanguageModel:
    """Train the judge or one of the models in `NAMES`, and load the model.

    The judge is an n-gram model that chooses sensible sentences. A model that was trained before is
    only loaded. The seed determines a network's initial weights and the order of sentences.
    `on_progress` is called after every training step of a network.

    Raises:
        InputError: if the folder has a model of this name that was trained on another text or with
            other settings.
    """
    architecture, epochs, rate = _MODELS[name]
    epochs = min(epochs, most_epochs or epochs)
    settings = TrainingSettings(epochs=epochs, batch_size=32, learning_rate=rate, seed=seed)
    out, kind = folder / name, "ngram" if isinstance(architecture, int) else architecture.kind
    # Both trainers reuse the results of an earlier call
    if isinstance(architecture, int):
        from contstim.models.ngram.training import train_ngram

        train_ngram(text, architecture, out.with_name(f"{name}.arpa"))
    else:
        from contstim.models.training.run import train_network

        train_network(text, out, architecture, settings, device="cpu", on_progress=on_progress)
    return load_model(trained_specification(kind, out), device="cpu", name=name)


def _claim_folder(out: Path, settings: Mapping[str, object]) -> None:
    """Write the settings into a folder.

    A folder with other settings is refused, and so is a folder with files but without settings.
    """
    path = out / _SETTINGS
    if path.is_file():
        stored = read_json_object(path)
        differing = [name for name in settings if settings[name] != stored.get(name)]
        if differing:
            raise InputError(
                f"{out} contains a demo with other settings ({', '.join(differing)}). Name another "
                "folder with --out, or delete this one."
            )
    elif out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out} is not empty and has no demo. Name another folder with --out.")
    write_json(path, settings)


def _read_or_write(path: Path, make: Callable[[], Iterable[Sentence]]) -> list[Sentence]:
    if not path.is_file():
        write_text(path, "".join(f"{sentence.text}\n" for sentence in make()))
    return list(read_sentences(path))


def _search_duel(
    first: LanguageModel,
    second: LanguageModel,
    natural: Sequence[Sentence],
    vocabulary: Vocabulary,
    judge: LanguageModel,
    seed: int,
) -> Triplet | None:
    """Return the first triplet whose three sentences differ; None if no search finds one.

    Try each search on all natural sentences before the next search.
    """
    for search, sentence in product(_SEARCHES, natural):
        triplet, _, _ = synthesize_triplet(
            first,
            second,
            sentence,
            vocabulary,
            constraints=search.constraints(sentence, every_fix=False),
            judges=judge if search.nats else (),
            seed=seed,
            restarts=SINGLE,
            few_changes=search.few_changes(),
        )
        if triplet.distinct:
            return triplet
    return None
