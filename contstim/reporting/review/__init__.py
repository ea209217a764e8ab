"""The page on which people look at stimuli and keep or reject each: one file, no network.

items    what the page shows of each item
page     the page
form/    the page as it is shipped: HTML, CSS and JavaScript without a build step
"""

from contstim.reporting.review.items import ItemAnswers
from contstim.reporting.review.page import PageContent, review_page

__all__ = ["ItemAnswers", "PageContent", "review_page"]
