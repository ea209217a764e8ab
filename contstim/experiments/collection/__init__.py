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
    recorder     one thread: all requests that wait become one commit    else 503, nothing saved
       v  |
    participants the first answer to each trial of the group stands      else 422, undone alone
       v  |
    SQLite       on disk before the thread says so
       |
       v
    exports      responses.csv, by download or `contstim import collected`

study        what is asked: groups and trials of an exported folder
database     its tables, how it is opened, and the lock that one server has
recorder     the database's one writer
keys         secrets of participants, the administrator's token, and how identities are hashed
requests     what may be asked, field by field; refusals
participants who joins which group, comes back, answers and completes
limits       request rate limits; messages to the log at a limited rate
connections  how many at once, and how long each may be silent
pages        files of the exported folder, and no others
service      addresses, and what answers at each
server       the running server
exports      responses.csv and participants.csv
platform     how `contstim import` reads what the server kept
reviewing    a reviewer's page, and review.csv kept up to date as they decide

Artificial participants who take part over HTTP are in `contstim.testing.participants`.
"""
