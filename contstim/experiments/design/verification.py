"""An independent check of a design: reads the finished trials, believes nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from contstim.errors import VerificationError
from contstim.reviews import ItemKind
from contstim.stimuli import Condition, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.experiments.design.certificate import DesignCertificate
    from contstim.reviews import Review
    from contstim.sentence import Sentence
    from contstim.stimuli import Pair, Trial, Triplet

_FILLERS = (Condition.RANDOM_NATURAL, Condition.CATCH)


def verify_design(
    trials: Sequence[Trial],
    pairs: Sequence[Pair],
    triplets: Sequence[Triplet],
    natural: Iterable[Sentence],
    *,
    groups: int,
    random_per_group: int,
    catch_per_group: int,
) -> None:
    """Check the trials of a design against the stimuli that it was made of.

    Args:
        trials: what `build_design` returned, or what was read back from trials.csv.
        pairs: as in `build_design`.
        triplets: as in `build_design`.
        natural: as in `build_design`.
        groups: as in `build_design`.
        random_per_group: as in `build_design`.
        catch_per_group: as in `build_design`.

    Raises:
        VerificationError: says what is wrong, and with which trial, sentence or group.
    """
    for trial_id, times in Counter(trial.trial_id for trial in trials).items():
        _require(times == 1, f"{trial_id} names {times} trials")
    for trial in trials:
        _require(1 <= trial.group <= groups, f"{trial.trial_id} is in group {trial.group}")
    _check_stimuli(trials, pairs, triplets)
    _check_fillers(trials, natural)
    # Groups are alike: as many trials of every condition, model pair and role, and no text twice.
    shares: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(groups)]
    seen: list[Counter[str]] = [Counter() for _ in range(groups)]
    for trial in trials:
        share = (trial.condition, trial.model_1, trial.model_2, trial.kind_1, trial.kind_2)
        shares[trial.group - 1][share] += 1
        seen[trial.group - 1].update(_shown(trial))
    for number, (share_of, texts) in enumerate(zip(shares, seen, strict=True), start=1):
        _require(share_of == shares[0], f"groups 1 and {number} have different shares of trials")
        for text, times in texts.items():
            _require(times == 1, f"group {number} sees {text!r} {times} times")
        for condition, needs in zip(_FILLERS, (random_per_group, catch_per_group), strict=True):
            has = sum(n for share, n in share_of.items() if share[0] == condition)
            _require(has == needs, f"group {number} has {has} {condition} trials, not {needs}")


def verify_review(
    trials: Sequence[Trial],
    natural: Iterable[Sentence],
    review: Review,
    certificate: DesignCertificate,
    *,
    groups: int,
    random_per_group: int,
    catch_per_group: int,
) -> None:
    """Check what a design keeps of an earlier one, and that what was rejected is gone.

    How many of the trials of pairs and triplets can stay is the solver's own account where not all
    of them do; that all random and catch trials stay that can is counted here.

    Args:
        trials: what `build_design` returned, or what was read back from trials.csv.
        natural: as in `build_design`.
        review: as in `build_design`.
        certificate: what it states is compared with what is counted.
        groups: as in `build_design`.
        random_per_group: as in `build_design`.
        catch_per_group: as in `build_design`.

    Raises:
        VerificationError: says what is wrong, and with which trial or group.
    """
    rejected = review.rejected
    stood = {item.item_id: item for item in review.decisions if item.kind is ItemKind.TRIAL}
    stays = {i: t for i, t in stood.items() if not review.rejects(t)}
    # Of a rejected trial of a triplet, the sentences of the whole triplet
    gone = {s.words for t in review.decisions if review.rejects(t) for s in t.sentences}
    uses = Counter(text for trial in trials for text in _shown(trial))
    natural_texts = {sentence.bare for sentence in natural}
    kept: Counter[tuple[str, int]] = Counter()  # (condition, group): trials that stayed
    for trial in trials:
        name = trial.trial_id
        _require(not rejected & {name, trial.source_id}, f"{name} was rejected")
        item = stays.get(name)
        same = item is not None and item.sentences == (trial.sentence_1, trial.sentence_2)
        if item is not None and same and item.group == trial.group:
            kept[trial.condition, trial.group] += 1
        elif trial.condition in _FILLERS:
            again = [s.text for s in (trial.sentence_1, trial.sentence_2) if s.words in gone]
            _require(not again, f"{name} has a sentence of a rejected item: {again}")
    # A random or catch trial can stay if its sentences still are natural, and are used elsewhere
    # in no trial; its own use is not another.
    here = {trial.trial_id for trial in trials}
    able: Counter[tuple[str, int]] = Counter()
    for name, item in stays.items():
        drawn = item.sentences[: 1 if item.condition == Condition.CATCH else 2]
        free = all(uses[s.bare] == (name in here) for s in item.sentences)
        if free and item.group <= groups and all(s.bare in natural_texts for s in drawn):
            able[item.condition, item.group] += 1
    for condition, needs in zip(_FILLERS, (random_per_group, catch_per_group), strict=True):
        for group in range(1, groups + 1):
            has, can = kept[condition, group], min(needs, able[condition, group])
            _require(has >= can, f"group {group} keeps {has} {condition} trials, and could {can}")
    still = sum(trial.trial_id in stays for trial in trials)
    for what, claimed, counted in (
        ("reviewed", certificate.reviewed, len(stood)),
        ("rejected", certificate.rejected, len(stood) - len(stays)),
        ("kept", certificate.kept, kept.total()),
    ):
        _require(claimed == counted, f"its certificate says {what} {claimed}, counted {counted}")
    _require(
        certificate.kept <= certificate.kept_bound <= still,
        f"the bound {certificate.kept_bound} on trials that stay is below {certificate.kept}, or "
        f"above {still}",
    )


def _require(holds: bool, failure: str) -> None:
    if not holds:
        raise VerificationError(f"The design fails its check, do not use it: {failure}.")


def _check_stimuli(
    trials: Iterable[Trial], pairs: Iterable[Pair], triplets: Iterable[Triplet]
) -> None:
    """Every comparison that the stimuli give is made once, and no other."""
    # Written out from the stimuli, not by the functions that make trials, so that a mistake in
    # those is seen. Texts keep their end marks here, unlike what participants see.
    wanted: Counter[tuple[str, ...]] = Counter()
    for pair in pairs:
        texts = [str(pair.sentence_1), str(pair.sentence_2)]
        wanted["natural-controversial", pair.trial_id, pair.model_1, pair.model_2, *texts] += 1
    for triplet in triplets:
        n, s1, s2 = map(str, (triplet.natural, triplet.synthetic_1, triplet.synthetic_2))
        whose = (triplet.triplet_id, triplet.model_1, triplet.model_2)
        wanted["natural-synthetic", *whose, n, s1] += 1
        wanted["natural-synthetic", *whose, n, s2] += 1
        wanted["synthetic-synthetic", *whose, s1, s2] += 1
    compared: Counter[tuple[str, ...]] = Counter(
        (t.condition.value, t.source_id, t.model_1, t.model_2, t.sentence_1.text, t.sentence_2.text)
        for t in trials
        if t.condition not in _FILLERS
    )
    for comparison in set(compared) | set(wanted):
        has, needs = compared[comparison], wanted[comparison]
        _require(has == needs, f"{' | '.join(comparison)} is compared {has} times, not {needs}")


def _check_fillers(trials: Sequence[Trial], natural: Iterable[Sentence]) -> None:
    natural_texts = {sentence.bare for sentence in natural}
    uses = Counter(text for trial in trials for text in _shown(trial))
    for trial in trials:
        if trial.condition not in _FILLERS:
            continue
        first, second = _shown(trial)
        _require(trial.model_1 == trial.model_2 == "", f"{trial.trial_id} names models")
        # Both sentences of a random pair are natural, of a catch trial only the first.
        drawn = (first,) if trial.condition == Condition.CATCH else (first, second)
        for text in drawn:
            _require(text in natural_texts, f"{text!r} is not among the natural sentences")
        for text in (first, second):
            _require(uses[text] == 1, f"{text!r} is used in {uses[text]} places")
        if trial.condition == Condition.CATCH:
            _require(trial.kind_2 == Kind.SHUFFLED, f"{trial.trial_id} is not shuffled")
            _require(
                first.lower() != second.lower()
                and sorted(first.lower().split(" ")) == sorted(second.lower().split(" ")),
                f"{second!r} is not a new order of the words of {first!r}",
            )
            _require(
                not (first[0].isupper() and second[0].islower()),
                f"{second!r} begins without the capital that {first!r} has",
            )


def _shown(trial: Trial) -> tuple[str, str]:
    return trial.sentence_1.bare, trial.sentence_2.bare
