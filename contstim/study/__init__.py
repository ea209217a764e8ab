"""A study in one file: what it says, which stages follow, and what has been done.

    study.toml --> Study --> stages, in order --> each runs one step of `contstim.steps`
                                   |                        |
                                   |                  results/…, with the step's record
                                   +-- done, stale or missing: by checksums of what was read,
                                       options and the step's version, against the record

toml_lines     in which line of a TOML text a key stands
problems       what is wrong with a study file, all of it together
sections       what may stand in a study file, and its types
study          what a study is made of
study_file     reads a study file
stage          a stage: a step with its place in the study
stages         the stages of a study, in order, and what their steps are given
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
