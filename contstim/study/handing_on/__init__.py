"""Handing a study on: all of it in one folder or zip, with the texts that a publication needs.

    study.toml, inputs, results --> archive --> study.zip:  study.toml, inputs
                                                            archived-results/, archive.json
                                                            environment.json, constraints.txt
                                                            datasheet, methods, preregistration
                                                            psych-ds/, README.md
    contstim run, where study.zip was unpacked --> results/
    contstim verify                                         compared with archived-results/

archive          writes the whole, with the system, hardware and versions to install
inputs           the user's files that a study reads, and where they stand in an archive
manifest         archive.json: name, size and checksum of every file; what the receiver must supply
facts            what the study's records, certificates and tables say
texts            datasheet, methods, preregistration and README: templates that facts fill in
"""
