"""PsychoPy and Pavlovia.

export    a conditions file for each list; cells: what PsychoPy makes of a cell
reading   their data
"""
