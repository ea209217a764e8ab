-- Values of the whole database: keys, the fingerprint of the trials, the server that uses it, and
-- withdrawals.
CREATE TABLE study (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT: no participant gets the number of a deleted one. Times are seconds since 1970, UTC.
-- questions: JSON object, name of a question other than the trials -> answer.
CREATE TABLE participant (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    participant TEXT NOT NULL UNIQUE,
    study_group TEXT NOT NULL,
    seed INTEGER NOT NULL,
    joined REAL NOT NULL,
    seen REAL NOT NULL,
    completed REAL,
    simulated INTEGER NOT NULL DEFAULT 0,
    device TEXT,
    viewport TEXT,
    second_tabs INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    questions TEXT NOT NULL DEFAULT '{}'
) STRICT;

-- The identity on a recruiting platform is in a separate table, so that it can be deleted alone.
-- fields: all fields as JSON; person: a text of the fields that are equal in all visits of a person.
CREATE TABLE identity (
    number INTEGER PRIMARY KEY REFERENCES participant (number),
    person TEXT NOT NULL UNIQUE,
    fields TEXT NOT NULL
) STRICT;

CREATE TABLE response (
    number INTEGER NOT NULL REFERENCES participant (number),
    trial_id TEXT NOT NULL,
    rating INTEGER CHECK (rating BETWEEN 0 AND 100),
    left_sentence INTEGER NOT NULL CHECK (left_sentence IN (1, 2)),
    position INTEGER NOT NULL CHECK (position >= 1),
    rt_ms REAL,
    received REAL NOT NULL,
    input TEXT,
    blurs INTEGER,
    away_ms REAL,
    PRIMARY KEY (number, trial_id)
) STRICT, WITHOUT ROWID;
