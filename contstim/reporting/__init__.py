"""Figures, tables and pages that show results; independent of experiments.

report         headings, paragraphs, tables and figures as a self-contained HTML page (template:
               report.html.jinja) or a Markdown page; short names of models
templates      reports from a Markdown template and values; the bibliography

canvas         sizes and fonts of figures, heat maps, and saving as PDF and PNG
stimuli_page   page of stimuli with highlighted changes
review/        page on which reviewers keep or reject each stimulus
"""
