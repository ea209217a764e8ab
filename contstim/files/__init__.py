"""Files: reading and writing text, JSON, TOML, tables and arrays; errors name the file.

`files` opens and replaces files, `documents` parses JSON and TOML, `tables` reads and writes tables
of all formats, `arrays` reads arrays, `records` writes the record of an output, and `plugins` finds
extensions in installed packages.
"""
