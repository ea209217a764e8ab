"""What people see of a trial: two sentences without end marks and six buttons."""

from __future__ import annotations

QUESTION = (
    "Which of these two sentences are you more likely to come across in the world, spoken or "
    "written?"
)
BUTTONS = (
    "very confident: left",
    "confident: left",
    "somewhat confident: left",
    "somewhat confident: right",
    "confident: right",
    "very confident: right",
)
"""From left (1) to right (6)."""

BUTTON_LIST = "\n".join(f"   {n}. {label}" for n, label in enumerate(BUTTONS, start=1))
"""Markdown, indented so that it stands inside an item of another list."""
