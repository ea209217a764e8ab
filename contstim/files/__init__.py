"""Read and write text, JSON, TOML, tables and arrays; errors name the file.

`files` replaces files atomically and computes checksums. `documents` reads JSON and TOML. `records`
describes how outputs were made. `plugins` loads extensions from installed packages.
"""
