"""Exports of experiments to platforms, readers of platforms' data, and formats for sharing.

jspsych      a web page in a folder, with sentences, editable texts, and the destination of answers;
             the same page as a study archive for JATOS
pcibex       PCIbex Farm: a table and a PennController script; its results
psychopy     PsychoPy and Pavlovia: a script, a table of conditions for each list; their data
gorilla      Gorilla: spreadsheets based on the user's template; its exports
qualtrics    Qualtrics: a survey in the advanced TXT format; its data
psych_ds     Psych-DS 1.5 data sets, and the check of a folder
r            an analysis in R: a table of ratings and a complete script

lists        displayed sentences of trials; presentation lists for platforms that cannot show each
             sentence equally often on the left; export of lists as a table (csv) for any program
folder       an export on disk: its files, a README with instructions, and a record of the export;
             templates of files
rows         rows of a platform's data; an error with file, line and reason for each unreadable row

platform     interface of a platform (exporter, reader, or both), and the list of platforms
"""
