"""A study in one file: what it says, which stages follow, and what has been done.

    study.toml --> Study --> stages, in order --> each runs one step of `contstim.steps`
                                   |                        |
                                   |                  results/…, with the step's record
                                   +-- done, stale or missing: by checksums of what was read,
                                       options and the step's version, against the record

toml_lines     line of each key of a TOML text
problems       what is wrong with a study file, all of it together
sections       reads sections: each is a command, its keys are the options
study          what a study is made of: texts, models, stages
study_file     reads a study file
stages         makes stages of sections: each reads what others write
feasibility    checks all that is known before a run
owners         checks that each path is written by one stage
places         paths that belong to the study itself
states         what is done and what is stale, and why, by the records of steps
running        does what is stale
planning       what a run would do, whether it can work, what it can show
amounts        what the design comes to: items, trials, minutes
times          how long stages take: of earlier runs, or of a measured speed
page           the page of a study, `index.html`, which a person follows while it runs
page_sections  its tables and figures; what is said of them stands in page.md.jinja
verification   whether files are still what commands wrote
handing_on     all of a study in one zip or folder, and the same results from it elsewhere
"""
