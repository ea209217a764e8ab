"""Faults of the values of a server, each with a name and a sentence."""

from __future__ import annotations

from enum import Enum

from contstim.errors import ModelError


class ServerFault(Enum):
    """A reason to refuse a server; the value is the sentence that the user reads."""

    GENERATED_ONLY = "it gives values of tokens that it generated, not of those that it was sent"
    RETOKENISED = "it reads other tokens than those that it was sent"
    BEGINNING_ADDED = "it puts a token of its own before those that it was sent"
    BEGINNING_IGNORED = "it does not read the token that begins a text"
    TRUNCATED = "it reads a part of the tokens only"
    INCOMPLETE = "its answer lacks a part of what was asked"
    TOO_LARGE = "its answer is larger than any that can be meant"
    MISSING_VALUE = "it gives no value for a token"
    NOT_A_NUMBER = "it gives a value that is not a number"
    POSITIVE = "it gives a log-probability above 0"
    IMPOSSIBLE = "it says that a token is impossible"
    ROUNDED = "its values are rounded"
    SHIFTED = "its values are shifted by one token"
    OTHER_VALUES = "its values are not the log-probabilities by which it generates"
    INVENTED = "its values of unlikely tokens are made up"
    UNSTABLE = "its values depend on the order or the number of requests"
    UNTESTABLE = "it tells too little when it generates for its values to be checked"
    OTHER_TOKENIZER = "its tokens stand for other texts than those of the tokenizer"
    UNKNOWN_MODEL = "it has no model of that name"
    CHANGED = "the model behind the address, or what it says, is another than before"


class ServerFaultError(ModelError):
    """A server is refused.

    Attributes:
        fault: why.
    """

    def __init__(self, address: str, fault: ServerFault, detail: str) -> None:
        self.fault = fault
        super().__init__(f"{address} cannot be used: {fault.value}. {detail}")
