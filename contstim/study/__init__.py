"""A study in one file: its content, its stages, and their states.

    study.toml --> Study --> stages, in order --> each runs one step of `contstim.steps`
                                   |                        |
                                   |                  results/…, with the step's record
                                   +-- done, stale or missing: checksums of inputs, options
                                       and the step's version, compared with the record

A record is a JSON file next to an output. It describes how a step wrote the output.

problems       all problems of a study file in one message, with line numbers
study          content of a study: texts, models, stages; paths that belong to the study itself
study_file     reads a study file: each section is a command, its keys are the options
stages         makes stages of sections and connects their inputs and outputs
feasibility    checks before a run, such as that each path is written by one stage
states         state of each stage and the reason for it, from the records of steps
running        runs the stages that are not up to date
planning       plan of a run: work of the stages, durations, and effects that tests can detect
amounts        numbers of items, and the natural sentences that a study needs and has
times          durations of stages, estimated from earlier runs or measured speeds
page           the page of a study, `index.html`, updated during a run
page_sections  tables and figures of the page; their text is in page.md.jinja
verification   finds files that changed since commands wrote them
handing_on     archive of a study, from which others reproduce its results
"""
