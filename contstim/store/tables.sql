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

CREATE TABLE result (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    model_1 TEXT NOT NULL,
    model_2 TEXT NOT NULL,
    natural TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('found', 'inadmissible')),
    reason TEXT NOT NULL,
    triplet TEXT,
    rows INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    searches INTEGER NOT NULL,
    trails TEXT NOT NULL
) STRICT;

CREATE TABLE floor (
    model TEXT NOT NULL,
    words TEXT NOT NULL,
    quantile REAL NOT NULL,
    n_words INTEGER NOT NULL,
    log_prob REAL NOT NULL,
    PRIMARY KEY (model, words, quantile, n_words)
) STRICT, WITHOUT ROWID;

CREATE TABLE panel (
    fingerprint TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
