"""Handing a study on: all of it in one folder or zip, with the texts that a publication needs.

    study.toml, inputs, results --> archive --> study.zip:  study.toml, inputs
                                                            archived-results/, archive.json
                                                            environment.json, constraints.txt
                                                            datasheet, methods, preregistration
                                                            psych-ds/, README.md
    contstim run, where study.zip was unpacked --> results/ --> compared with archived-results/

archive          writes the whole
inputs           the user's files that a study reads, and where they stand in an archive
manifest         archive.json: name, size and checksum of every file; what the receiver must supply
environment      system, hardware, and the versions to install
comparison       results made anew against the archived ones
facts            what the study's records, certificates and tables say
datasheet        the materials: how items were made, chosen, left out and shared out
methods          a methods section to paste
preregistration  a draft with the fields of OSF's standard template
model_texts      how models score and were trained, in sentences
references       the works that these texts cite
readme           what an archive says of itself
"""
