"""A small server for pilots and labs: it hands out an exported experiment and keeps every answer.

The path of one answer:

    browser      POST /api/responses {participant, responses: [{trial_id, rating, left, ...}]}
       |  ^
       |  |      200 {saved: [trial_id]}: the page may forget the answer; otherwise it asks again
       v  |
    connections  room for the connection, and time for its request       else closed, or 503
       v  |
    requests     every field of its type and range                       else 400, 413, 415, 422
       v  |
    service      the participant's secret, and not too many requests     else 403, 429
       v  |
    database     one thread: all requests that wait become one commit    else 503, nothing saved
       v  |
    participants the first answer to each trial of the group stands      else 422, undone alone
       v  |
    SQLite       on disk before the thread says so
       |
       v
    tables       responses.csv, by download or `contstim import collected`

database     tables, keys, and the one writer, which has the lock
requests     what may be asked, field by field, and how often; refusals
participants who joins which group, comes back, answers and completes
links        participants' addresses with their tokens, and files that hold secrets
connections  how many at once, and how long each may be silent
service      the exported folder, addresses, and what answers at each
server       the running server, its token and its log
tables       responses.csv and participants.csv; how `contstim import` reads what was kept
withdrawal   whose a name or completion code is, and how somebody's rows are deleted
reviewing    a reviewer's page, and review.csv kept up to date as they decide

Artificial participants who take part over HTTP are in `contstim.testing.participants`.
"""
