"""Published results, and ours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedClaim:
    """A published claim and our own finding, in the same words.

    Attributes:
        about: what both are about.
        published: the claim.
        ours: what we find in the published data.
    """

    about: str
    published: str
    ours: str

    @property
    def holds(self) -> bool:
        """True if we find what was published."""
        return self.published == self.ours
