"""Figures, tables and pages that show results; independent of experiments.

report         report of headings, paragraphs, tables and figures, as a self-contained HTML page
               (template: report.html.jinja) or a Markdown page
templates      report from a Markdown template and values

canvas         sizes and fonts of figures, and saving as PDF and PNG
heat_map       heat map of a number for each row and column
names          short names of models
stimuli_page   page of stimuli with highlighted changes
review/        page on which reviewers keep or reject each stimulus
"""
