"""A store of triplets for a study that has changed: what may differ, and what is done again.

    what differs               what is done again                 what stays
    a further model            searches and floor of its pairs    all others
    a model left out           nothing                            its results too, until it is back
    a model that changed       searches and floor of its pairs    its pairs' natural sentences
    natural sentences          searches from those that are gone  all others; floors
    vocabulary, or the judge   every search, every floor          natural sentences of pairs

A pair keeps its natural sentences, in their places, also where it is searched again; only where one
is not among those given any more, or has a word that a model does not know, the next free one takes
its place. No sentence that a pair has, left out or not, is given to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.optimization.jobs.plan import floor_settings, stored_floors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.optimization.jobs.plan import SynthesisPlan

_LEFT_OUT = "left out"


@dataclass(frozen=True, kw_only=True)
class AllowedChanges:
    """Differences allowed from the study that a store was made for; all else is refused.

    What does not differ is not done again. So a job that was killed goes on if it is started again
    with the same changes allowed.

    Attributes:
        models: further models, fewer, or those again that were left out.
        sentences: other natural sentences.
        vocabulary: other words; then everything is searched again.
        renew: specifications of models that may have changed, whose pairs are then searched again;
            of a model that judges all sentences, every pair.
    """

    models: bool = False
    sentences: bool = False
    vocabulary: bool = False
    renew: frozenset[str] = frozenset()


NO_CHANGES = AllowedChanges()


class StoreChange:
    """Differences of a study from the one that its store was made for, as far as they are allowed.

    Args:
        plan: of the study, its models in the store's order.
        stored: the settings of the store; none if it is new.
        models: those of the store, in its order, with those that were left out.
        given: the plan's settings, without floors, its models numbered as in `order`.
        order: the models of the store and, behind them, the new ones of the plan.
        allowed: what may differ.

    Attributes:
        renewed: models whose pairs are searched again.
        any: whether anything differs.
    """

    def __init__(
        self,
        plan: SynthesisPlan,
        stored: Mapping[str, str],
        models: Sequence[str],
        given: Mapping[str, str],
        order: Sequence[str],
        allowed: AllowedChanges,
    ) -> None:
        self._stored = stored
        roles = {model: f"model {number}" for number, model in enumerate(order, start=1)}
        marks = {model: f"{role} {_LEFT_OUT}" for model, role in roles.items()}
        marked = [model for model in models if marks[model] in stored]
        absent = [model for model in models if model not in plan.models]
        self._left_out = absent if allowed.models else [m for m in absent if m in marked]
        added = [m for m in plan.models if stored and allowed.models and m not in models]
        returning = [m for m in plan.models if allowed.models and m in marked]

        def differs(name: str) -> bool:
            return bool(stored) and stored.get(name) != given.get(name)

        def model_differs(role: str) -> bool:
            aspects = {*_aspects(stored, role), *_aspects(given, role)} - {f"{role} {_LEFT_OUT}"}
            return any(map(differs, aspects))

        self._vocabulary = allowed.vocabulary and differs("vocabulary")
        self._judge = plan.judge in allowed.renew and model_differs("judge")
        changed = [m for m in plan.models if m in allowed.renew and model_differs(roles[m])]
        changed = [m for m in changed if m in models]
        all_again = self._vocabulary or self._judge
        self.renewed = frozenset(order if all_again else changed)
        # What a model was that was left out is forgotten when all is searched again without it.
        forgotten = [m for m in returning if f"{roles[m]} fingerprint" not in stored]
        self._sentences = allowed.sentences and differs("sentences")
        left_now = [model for model in self._left_out if model not in marked]
        self.any = bool(added or returning or left_now or self.renewed or self._sentences)

        # The settings that may differ: of the models, what they are or whether they are left out;
        # floors follow in `may_change`.
        free = {marks[model] for model in (*returning, *left_now)}
        for role in [roles[m] for m in (*added, *forgotten, *changed)] + ["judge"] * self._judge:
            free |= {role, *_aspects(stored, role), *_aspects(given, role)} - {
                f"{role} {_LEFT_OUT}"
            }
        if self._vocabulary:
            free |= {"vocabulary", "judge words", *(f"{role} words" for role in roles.values())}
        if self._sentences:
            free.add("sentences")
        self._new = frozenset((*added, *forgotten))

        # What is kept of models that were left out; when all is searched again, just their names.
        self._carried: dict[str, str] = {}
        for model in self._left_out:
            self._carried |= {roles[model]: model, marks[model]: "true"}
            if not self._vocabulary:
                self._carried |= _aspects(stored, roles[model])
                self._carried |= floor_settings(model, stored_floors(stored, model))
            else:
                free |= {*_aspects(stored, roles[model])}
        self._free = frozenset(free)

    def is_renewed(self, pair: tuple[str, str]) -> bool:
        """True if a pair of models is searched again."""
        return not self.renewed.isdisjoint(pair)

    def floors(self, model: str) -> dict[int, float]:
        """The floors that a model keeps, nats, by the number of words."""
        if self._vocabulary or self._judge or model in self.renewed:
            return {}
        return stored_floors(self._stored, model)

    def lacks_floor(self, n_words: int, floors: Mapping[int, float]) -> bool:
        """True if a model with the given floors needs another, of a number of words."""
        # A length at which a model could score no sentence has no floor, and gets none before there
        # are other sentences.
        return not floors or (self._sentences and n_words not in floors)

    def settings(self, given: Mapping[str, str]) -> dict[str, str]:
        """The settings of the store from now on: those of the plan, and of models left out."""
        return {**self._carried, **given}

    def may_change(self, settings: Iterable[str]) -> frozenset[str]:
        """The names of settings that may differ from the stored ones, of all names by now."""
        free = set(self._free)
        for name in {*settings, *self._stored}:
            if name.startswith("floor of "):
                model = name.removeprefix("floor of ").rpartition(", ")[0]
                again = self._vocabulary or self._judge or model in self.renewed | self._new
                if again or (self._sentences and name not in self._stored):
                    free.add(name)
        return frozenset(free)


def _aspects(settings: Mapping[str, str], role: str) -> dict[str, str]:
    """The settings that say what a model is, by its role: model 1, model 2, …, or judge."""
    return {
        name: value
        for name, value in settings.items()
        if name == role or name.startswith(f"{role} ")
    }
