"""The page on which people look at stimuli and keep or reject each: one file, no network.

page     what it shows of each item, and the page
form/    the page as it is shipped: HTML, CSS and JavaScript without a build step
"""

from contstim.reporting.review.page import ReviewPage

__all__ = ["ReviewPage"]
