-- From layout 2, which knew Prolific's fields and ratings of six alone, to layout 3.
ALTER TABLE participant ADD COLUMN device TEXT;
ALTER TABLE participant ADD COLUMN viewport TEXT;
ALTER TABLE participant ADD COLUMN second_tabs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE identity RENAME TO identity_2;
CREATE TABLE identity (
    number INTEGER PRIMARY KEY REFERENCES participant (number),
    person TEXT NOT NULL UNIQUE,
    fields TEXT NOT NULL
) STRICT;
INSERT INTO identity SELECT number,
    'PROLIFIC_PID' || char(31) || prolific_pid
    || iif(study_id = '', '', char(31) || 'STUDY_ID' || char(31) || study_id),
    json_object('PROLIFIC_PID', prolific_pid, 'STUDY_ID', study_id, 'SESSION_ID', session_id)
    FROM identity_2;
DROP TABLE identity_2;
ALTER TABLE response RENAME TO response_2;
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
INSERT INTO response SELECT *, NULL, NULL, NULL FROM response_2;
DROP TABLE response_2;
CREATE TABLE questionnaire (
    number INTEGER PRIMARY KEY REFERENCES participant (number) ON DELETE CASCADE,
    answers TEXT NOT NULL
) STRICT;
PRAGMA user_version = 3;
