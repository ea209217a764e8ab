"""Models trained on a text."""

from __future__ import annotations

import warnings
from functools import partial
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from contstim.evaluation.folder import page_table, write_findings
from contstim.evaluation.restarts import judge, restart_findings
from contstim.files.records import Record, record_path
from contstim.models.loading import Loading, TrustRemoteCode
from contstim.models.ngram.training import DiscountWarning, train_ngram
from contstim.models.training import settings
from contstim.options import Help, Reads, Writes
from contstim.steps.fields import Prose, ReportFolder, Text, read_text
from contstim.steps.step import Outcome, Step, variant
from contstim.wording import quantity

if TYPE_CHECKING:
    from contstim.evaluation.folder import Findings
    from contstim.models.ngram.training import Estimate
    from contstim.models.training.loop import Progress
    from contstim.models.training.record import Training
    from contstim.reporter import Reporter
    from contstim.reporting.report import Table

Precision = Annotated[
    settings.TrainingPrecision,
    Help("Precision of the network; auto: bfloat16 on GPUs that support it."),
]
Device = Annotated[Literal["auto", "cpu", "cuda"], Help("Device of networks.")]


class TrainNgram(Step["Estimate"], name="train ngram", version=2):
    """Train an n-gram model (interpolated modified Kneser-Ney) and write it as an ARPA file.

    Also writes word counts and a record of the training.

    Example: `contstim train ngram --text corpus.txt --order 3 --out trigram.arpa`
    """

    text: Text
    out: Annotated[Path, Writes("The ARPA file.", beside=(".counts.csv", ".sentences.npy"))]
    order: Annotated[int, Help("Length of the longest n-grams.", at_least=1, at_most=6)] = 3
    prose: Prose = False

    def work(self, reporter: Reporter) -> Outcome[Estimate]:
        """Count n-grams, and write the model."""
        sentences = read_text(self.text, reporter, prose=self.prose)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DiscountWarning)
            trained = train_ngram(sentences, self.order, self.out, text=self.text)
        for warning in caught:
            reporter.warn(str(warning.message))
        sizes = (f"{len(table.keys):,}" for table in trained.tables.orders)
        reporter.say(f"{self.out}: {' + '.join(sizes)} n-grams of order 1 to {self.order}.")
        # `train_ngram` wrote a record, a JSON file about the model. Keep the facts of this record,
        # because the record of this step replaces the file
        record = Record.from_file(record_path(self.out))
        return Outcome(trained, {} if record is None else record.facts)


class TrainNetwork(Step["Training"], name="train"):
    """Train a network on a text.

    The folder contains the model, training.json (settings, versions, losses) and curve.png. A
    checkpoint is saved after every epoch, and every five minutes. If a training is interrupted,
    repeat the command: the training continues from the last checkpoint.
    """

    saved_results = "The last checkpoint of the training is saved."
    text: Text
    out: Annotated[Path, Writes("The folder of the model.")]
    network: settings.RecurrentSettings | settings.TransformerSettings
    training: settings.TrainingSettings
    prose: Prose = False
    device: Device = "auto"
    precision: Precision = "auto"

    def work(self, reporter: Reporter) -> Outcome[Training]:
        """Train the network, unless an earlier run has finished the training."""
        from contstim.models.training.record import RECORD, Training
        from contstim.models.training.run import train_network

        read = read_text(self.text, reporter, prose=self.prose)
        # Check this before the training, because the training writes the file
        already = (self.out / RECORD).is_file()
        train_network(
            [*read],
            self.out,
            self.network,
            self.training,
            device=self.device,
            precision=self.precision,
            on_progress=partial(tell_training, reporter, "training"),
        )
        done = Training.from_file(self.out)
        if already:
            reporter.say(f"{done.out} was trained before with this text and these settings.")
        best_epoch = done.curve.index(done.best) + 1
        reporter.say(
            f"{done.out}: validation perplexity {done.perplexity:,.2f} after epoch {best_epoch} of "
            f"{len(done.curve)}; {done.ended}. "
            f"Load it as {settings.trained_specification(self.network.kind, self.out)}."
        )
        return Outcome(done, {"kind": self.network.kind})


class TrainAcceptability(Step["Findings"], name="train acceptability"):
    """Fine-tune classifiers of acceptability; their confidence is the score of a sentence.

    Each restart trains one classifier and writes a folder (`restart-1`, …) with training.json and
    curve.png. Load a folder as `classifier:DIR`. All restarts use the same sentences. The first
    seed is --seed, and each further seed is larger by 1.

    The command evaluates each classifier by the Matthews correlation of its predictions with the
    labels. It writes the mean, standard deviation and maximum of these correlations, the
    correlation of the classifiers' majority vote, every prediction, and a page (report.html,
    report.md). An interrupted training continues if you repeat the command.

    Example: `contstim train acceptability --data in_domain_train.tsv --evaluate in_domain_dev.tsv
    --base bert-base-cased --restarts 20 --out cola`
    """

    saved_results = TrainNetwork.saved_results
    leave_out = frozenset({"weight_decay", "clip"})
    data: Annotated[Path, Reads("A .tsv file of CoLA, or a table with columns label and sentence.")]
    out: ReportFolder
    base: Annotated[str, Help("A folder, or a name on the Hugging Face Hub.")] = (
        settings.ClassifierSettings.base
    )
    restarts: Annotated[int, Help("Number of classifiers to train.", at_least=1)] = 1
    evaluate: Annotated[tuple[Path, ...], Reads("Labelled sentences for evaluation.")] = ()
    annotations: Annotated[
        Path | None, Reads("Labelled sentences for evaluation, with a column for each feature.")
    ] = None
    training: settings.TrainingSettings = settings.FINE_TUNING
    device: Device = "auto"
    precision: Precision = "auto"
    trust_remote_code: TrustRemoteCode = False

    def work(self, reporter: Reporter) -> Outcome[Findings]:
        """Train the classifiers, evaluate them, and write the results."""
        from contstim.models.classifier import load_classifier
        from contstim.models.training.acceptability import (
            read_annotations,
            read_cola,
            train_acceptability,
        )
        from contstim.models.training.run import split_sentences

        sentences = read_cola(self.data)
        files = [path for path in (self.data, *self.evaluate, self.annotations) if path is not None]
        to_judge: list[tuple[Any, ...]] = [(path.name, read_cola(path)) for path in self.evaluate]
        if not to_judge:
            to_judge = [("kept apart", split_sentences(sentences, self.training)[1])]
        if self.annotations is not None:
            to_judge.append((self.annotations.name, *read_annotations(self.annotations)))
        done = train_acceptability(
            sentences,
            self.out,
            self.restarts,
            settings.ClassifierSettings(base=self.base),
            self.training,
            device=self.device,
            precision=self.precision,
            trust_remote_code=self.trust_remote_code,
            on_progress=lambda number, now: tell_training(reporter, f"restart {number}", now),
        )
        # Evaluate the saved classifiers, because users will load these classifiers
        folders = [training.out for training in done]
        loading = Loading(device=self.device, trust_remote_code=self.trust_remote_code)
        models = [load_classifier(str(f), name=f"classifier:{f}", loading=loading) for f in folders]
        sets = [
            judge(name, sentences_of_set, models, *features)
            for name, sentences_of_set, *features in to_judge
        ]
        findings = restart_findings(sets, models)
        facts, written = write_findings(
            findings,
            self.out,
            models=models,
            data=files,
            data_files=[path.name for path in files],
            base=self.base,
            seeds=[training.facts["settings"]["seed"] for training in done],
        )
        left_out = {missing.sentence for judged in sets for missing in judged.left_out}
        if left_out:
            reporter.say(f"Too long: {quantity(len(left_out), 'sentence')}; see left_out.csv.")
        reporter.say(f"Load a classifier as {models[0].name}; read {self.out / 'report.html'}.")
        tables = (findings.tables[name] for name in ("summary", "features"))
        parts: list[str | Table] = ["Matthews correlation:"]
        parts += [page_table(table) for table in tables if table]
        return Outcome(findings, facts, writes=(*written, *folders), parts=parts)


def tell_training(reporter: Reporter, name: str, now: Progress) -> None:
    """Report the epoch, losses and perplexities of a training."""
    losses = f"loss {now.loss:.3f}, perplexity {exp(now.loss):,.1f}"
    if now.validation_loss is not None:
        losses += f" (validation {exp(now.validation_loss):,.1f})"
    reporter.progress(name, now.step, now.steps, f"epoch {now.epoch} of {now.epochs}, {losses}")


_NETWORKS = {
    "rnn": "an Elman recurrent network over words, with the sizes of the 2023 study",
    "lstm": "a long short-term memory over words, with the sizes of the 2023 study",
    "bilstm": "an LSTM that predicts each word from the words before and after it",
    "gpt2": "a small GPT-2 with its own byte-level BPE tokenizer",
    "bert": "a small BERT with its own WordPiece tokenizer",
}


def _training_of(kind: str) -> type[TrainNetwork]:
    network, training = settings.NETWORKS[kind]
    about = (TrainNetwork.__doc__ or "").partition("\n\n")[2].rstrip()
    return variant(
        TrainNetwork,
        f"train {kind}",
        f"Train {_NETWORKS[kind]}.\n\n{about}\n\n"
        f"    Example: `contstim train {kind} --text corpus.txt --out {kind} --epochs 4`\n",
        # GPT-2 predicts the next token, so settings of masks have no effect
        frozenset({"mask_share", "masking"}) if kind == "gpt2" else frozenset(),
        network=network,
        training=training,
    )


TRAININGS = {kind: _training_of(kind) for kind in _NETWORKS}
"""Kind of network → step that trains it, with the usual settings of this kind as defaults."""
