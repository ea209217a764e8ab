"""A small server that shows an exported experiment and stores every answer, for pilots and labs.

The path of one answer (on the right: the HTTP status if a step refuses it):

    browser      POST /api/responses {participant, responses: [{trial_id, rating, left, ...}]}
       |  ^
       |  |      200 {saved: [trial_id]}: the page may delete its copy; otherwise the page retries
       v  |
    server       limits number and duration of connections               else closed, or 503
       v  |
    requests     checks type and range of every field               else 400, 408, 413, 415, 422
       v  |
    service      checks the participant's secret and the request rate    else 403, 429
       v  |
    database     one thread: all waiting requests become one commit      else 503, nothing saved
       v  |
    participants the first answer to each trial of the group is stored   else 422, nothing saved
       v  |
    SQLite       is on disk before the thread responds
       |
       v
    tables       responses.csv, by download or `contstim import collected`

database     tables, keys, and the server's only writer, which holds the lock
requests     request fields and their checks, rate limits, refusals
participants joining a group, resuming, answering, completing, withdrawing; addresses with tokens
service      the exported folder, and the functions that handle requests to each web address
server       the running server, its token, its log, and limits of its connections
tables       responses.csv and participants.csv; how `contstim import` reads the database
reviewing    a reviewer's page, whose decisions are saved in review.csv

Artificial participants who take part over HTTP are in `contstim.testing.participants`.
"""
