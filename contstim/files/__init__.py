"""Read and write text, JSON, TOML, tables and arrays; errors name the file.

`files` replaces files atomically, and computes checksums. `documents` reads JSON and TOML, `tables`
reads and writes tables, and `arrays` reads NumPy arrays. `records` writes the record of an output.
`plugins` loads extensions from installed packages.
"""
