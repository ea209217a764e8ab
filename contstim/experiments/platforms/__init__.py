"""Experiments that people can take part in, readers of their answers, and data sets for the public.

jspsych      a page for any browser, in a folder: sentences, texts to edit, and where answers go;
             the same page as a study archive for JATOS
pcibex       PCIbex Farm: a table and a PennController script; its results
psychopy     PsychoPy and Pavlovia: a script, a table of conditions for each list; their data
gorilla      Gorilla: spreadsheets after the user's template; its exports
qualtrics    Qualtrics: a survey in the advanced TXT format; its data
psych_ds     Psych-DS 1.5 data sets; psych_ds_rules: whether a folder is one
r            an analysis in R: a table of ratings, and a script that runs as it is

lists        what people see of a trial, and what each participant is shown where a platform
             cannot balance sides; the same as a table (csv), for any program
folder       an export on disk: files, a README that says what to click, a record; tables read
rows         rows of a platform's data, the unreadable ones by file, line and reason

platform     what a platform is: an exporter, a reader, or both; all by name, added ones included
"""
