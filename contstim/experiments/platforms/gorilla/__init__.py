"""Gorilla: spreadsheets for its task builders, and what it exports.

export      a spreadsheet for each list, in the columns of the user's own task
reading     ratings from its exports; columns: which column holds what
trials      trials from an export, where there is no table of them; describing: their cells in words
"""
