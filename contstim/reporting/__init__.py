"""Figures, tables and pages that show results. Knows nothing of experiments.

report         a report: headings, paragraphs, tables and figures; as an HTML page that stands
               alone (report.html.jinja is its form), or
markdown       as a Markdown page
templates      a report from a Markdown template and values to fill in

canvas         sizes and type of figures, and saving as PDF and PNG
heat_map       a number for each row and column, as a map of coloured cells
names          short names of models
stimuli_page   a page of stimuli to look at, changed words highlighted
review/        a page on which people keep or reject each stimulus
"""
