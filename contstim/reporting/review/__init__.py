"""Page on which reviewers keep or reject each stimulus: one file, no network.

page     content of the page, and its HTML
form/    template, CSS and JavaScript of the page, without a build step
"""

from contstim.reporting.review.page import ReviewPage

__all__ = ["ReviewPage"]
