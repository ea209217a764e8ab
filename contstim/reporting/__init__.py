"""What results look like: figures, tables and pages. Knows nothing of experiments.

canvas         sizes and type of figures, and saving as PDF and PNG
matrices       a number for each pair of models, as a heat map
names          short names of models
markdown       tables as Markdown
html           pieces of an HTML page that stands alone
stimuli_page   a page of stimuli to look at, changed words highlighted
"""
