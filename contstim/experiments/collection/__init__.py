"""A small server for pilots and labs: it hands out an exported experiment and keeps every answer.

study       what is asked: groups and trials of an exported folder
layout      tables of the database
recorder    the database's one writer, which commits many requests at once
keys        secrets of participants, tokens, and how identities are hashed
messages    requests, checked field by field; refusals
people      who joins which group, and comes back
answers     ratings as they come, and completion
limits      how often, how much and how long
connections how many at once, and how long each may be silent (descriptors: what the system allows)
logs        messages at a limited rate
pages       files of the exported folder, and no others
answering   what every address shares: bodies, refusals
service     addresses, and what answers at each
serving     the running server
exports     responses.csv and participants.csv
client      a participant's side: tries again, and keeps a copy
volunteers  artificial participants, over the protocol
browsers    artificial participants, through the page
"""
