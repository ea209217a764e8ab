"""Archives of studies: one folder or zip, with the texts that a publication needs.

    study.toml, inputs, results --> archive --> study.zip:  study.toml, inputs
                                                            archived-results/, archive.json
                                                            environment.json, constraints.txt
                                                            datasheet, methods, preregistration
                                                            psych-ds/, README.md
    contstim run, in the unpacked study.zip -----> results/
    contstim verify                                         compared with archived-results/

archive          writes the archive, with the versions to install, and the system and hardware used
manifest         archive.json: name, size and checksum of every file; files to supply; inputs of a
                 study, and their paths in an archive
facts            facts of texts, models, sentences, items, reviews, trials, participants and
                 analysis, from records and tables
texts            datasheet, methods, preregistration and README: templates filled with facts
"""
