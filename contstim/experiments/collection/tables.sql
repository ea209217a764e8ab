-- What holds for the whole database: keys, the fingerprint of what is asked, and its server.
CREATE TABLE study (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Nobody is given the number of somebody who is gone. Times are seconds since 1970, UTC; questions are what people answered beside the trials, as JSON by
-- the questions' names.
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

-- Who somebody is on a recruiting platform stands apart, so that it can be deleted by itself: all
-- fields as JSON, and those as a text that are the same whenever the person comes.
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
