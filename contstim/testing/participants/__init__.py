"""Artificial participants who take part in a running study: a rehearsal from first page to code.

    contstim.experiments.design.artificial      who they are, and what each rates
          |                         |
          v                         v
    http     take_part          browser  take_part_in_browser
      |  many at once             |  one after another, in Chromium, on this machine
      v                           v
    client                      the exported page, with ?simulate=data
      |  tries again,             |
      |  keeps a journal          |
      v                           v
    +---------------------------------+
    |  a server: `contstim collect`   |
    +---------------------------------+

client    a participant's side of the protocol; Journal: what happened to everybody, in one file
http      RunSettings, take_part: needs httpx2 (`pip install 'contstim[collect]'`)
browser   take_part_in_browser: needs Playwright (`pip install 'contstim[browser]'`) and Chromium

    from contstim.testing.participants.http import RunSettings, take_part

    people = artificial_participants(trials, scores, "my model", seed=1)
    responses = take_part(people, RunSettings("http://127.0.0.1:8000", 20), Path("run.journal"))
"""
