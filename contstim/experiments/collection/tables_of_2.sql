-- What tables of layout 2 held, which knew Prolific's fields and ratings of six alone, into those of layout 3.
INSERT INTO participant SELECT *, NULL, NULL, 0 FROM participant_2;
INSERT INTO identity SELECT number,
    'PROLIFIC_PID' || char(31) || prolific_pid
    || iif(study_id = '', '', char(31) || 'STUDY_ID' || char(31) || study_id),
    json_object('PROLIFIC_PID', prolific_pid, 'STUDY_ID', study_id, 'SESSION_ID', session_id)
    FROM identity_2;
INSERT INTO response SELECT *, NULL, NULL, NULL FROM response_2;
DROP TABLE identity_2;
DROP TABLE response_2;
DROP TABLE participant_2;
PRAGMA user_version = 3;
