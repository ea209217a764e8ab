"""Layouts of a study's database, each of which adds tables to the one before."""

APPLICATION_ID = 0x636F6E74  # "cont", so that another program's database is not mistaken for ours

_SCORES = """
CREATE TABLE model (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    convention TEXT NOT NULL
) STRICT;
CREATE TABLE score (
    model INTEGER NOT NULL REFERENCES model (id),
    sentence TEXT NOT NULL,
    log_prob REAL NOT NULL,
    PRIMARY KEY (model, sentence)
) STRICT, WITHOUT ROWID;
"""

_TRIPLETS = """
CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE job (
    id INTEGER PRIMARY KEY,
    model_1 TEXT NOT NULL,
    model_2 TEXT NOT NULL,
    place INTEGER NOT NULL,
    natural TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('found', 'inadmissible', 'failed')),
    reason TEXT NOT NULL,
    UNIQUE (model_1, model_2, place),
    UNIQUE (natural)
) STRICT;
CREATE TABLE triplet (
    job INTEGER PRIMARY KEY REFERENCES job (id),
    triplet_id TEXT NOT NULL,
    synthetic_1 TEXT NOT NULL,
    synthetic_2 TEXT NOT NULL,
    log_prob_natural_model_1 REAL NOT NULL,
    log_prob_natural_model_2 REAL NOT NULL,
    log_prob_synthetic_1_model_1 REAL NOT NULL,
    log_prob_synthetic_1_model_2 REAL NOT NULL,
    log_prob_synthetic_2_model_1 REAL NOT NULL,
    log_prob_synthetic_2_model_2 REAL NOT NULL,
    controversiality REAL NOT NULL
) STRICT;
CREATE TABLE search (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL REFERENCES job (id),
    accept TEXT NOT NULL,
    reject TEXT NOT NULL,
    visits INTEGER NOT NULL,
    ending TEXT NOT NULL,
    UNIQUE (job, reject)
) STRICT;
CREATE TABLE cost (
    search INTEGER NOT NULL REFERENCES search (id),
    model TEXT NOT NULL,
    rows INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    PRIMARY KEY (search, model)
) STRICT, WITHOUT ROWID;
CREATE TABLE step (
    search INTEGER NOT NULL REFERENCES search (id),
    number INTEGER NOT NULL,
    round INTEGER NOT NULL,
    visit INTEGER NOT NULL,
    position INTEGER NOT NULL,
    old TEXT NOT NULL,
    new TEXT NOT NULL,
    sentence TEXT NOT NULL,
    log_prob_accept REAL,
    log_prob_reject REAL,
    PRIMARY KEY (search, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE evaluation (
    search INTEGER NOT NULL REFERENCES search (id),
    number INTEGER NOT NULL,
    visit INTEGER NOT NULL,
    position INTEGER NOT NULL,
    word TEXT NOT NULL,
    sentence TEXT NOT NULL,
    log_prob_accept REAL,
    log_prob_reject REAL,
    PRIMARY KEY (search, number)
) STRICT, WITHOUT ROWID;
"""

_RESTARTS = """
CREATE TABLE restart (
    search INTEGER NOT NULL REFERENCES search (id),
    number INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    loss REAL NOT NULL,
    gain REAL NOT NULL,
    visits INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (search, number)
) STRICT, WITHOUT ROWID;
"""

_DECISIONS = """
CREATE TABLE accepted (
    job INTEGER PRIMARY KEY REFERENCES job (id)
) STRICT;
CREATE TABLE refused (
    model_1 TEXT NOT NULL,
    model_2 TEXT NOT NULL,
    place INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    excluded TEXT NOT NULL,
    synthetic_1 TEXT NOT NULL,
    synthetic_2 TEXT NOT NULL,
    PRIMARY KEY (model_1, model_2, place, attempt)
) STRICT, WITHOUT ROWID;
CREATE TABLE wave (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    end INTEGER NOT NULL
) STRICT;
"""

_GONE = """
CREATE TABLE gone (
    triplet_id TEXT PRIMARY KEY,
    model_1 TEXT NOT NULL,
    model_2 TEXT NOT NULL,
    natural TEXT NOT NULL,
    synthetic_1 TEXT NOT NULL,
    synthetic_2 TEXT NOT NULL,
    log_prob_natural_model_1 REAL NOT NULL,
    log_prob_natural_model_2 REAL NOT NULL,
    log_prob_synthetic_1_model_1 REAL NOT NULL,
    log_prob_synthetic_1_model_2 REAL NOT NULL,
    log_prob_synthetic_2_model_1 REAL NOT NULL,
    log_prob_synthetic_2_model_2 REAL NOT NULL,
    controversiality REAL NOT NULL
) STRICT, WITHOUT ROWID;
"""

_ASSIGNMENTS = """
CREATE TABLE assignment (
    model_1 TEXT NOT NULL,
    model_2 TEXT NOT NULL,
    place INTEGER NOT NULL,
    sentence TEXT NOT NULL UNIQUE,
    PRIMARY KEY (model_1, model_2, place)
) STRICT, WITHOUT ROWID;
"""

# user_version says how many of these a file has. Never change one that was released: add another
LAYOUTS = tuple(
    tuple(filter(str.strip, layout.split(";")))
    for layout in (_SCORES, _TRIPLETS, _RESTARTS, _DECISIONS, _GONE, _ASSIGNMENTS)
)
