-- From layout 2, which knew Prolific's fields alone, to layout 3.
ALTER TABLE participant ADD COLUMN device TEXT;
ALTER TABLE participant ADD COLUMN viewport TEXT;
ALTER TABLE participant ADD COLUMN second_tabs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE response ADD COLUMN input TEXT;
ALTER TABLE response ADD COLUMN blurs INTEGER;
ALTER TABLE response ADD COLUMN away_ms REAL;
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
PRAGMA user_version = 3;
