"use strict";

/**
 * The local copy: the participant and all answers, stored in the browser until the study is complete.
 *
 * A record has participant, secret, group, seed, assigned_by, platform, device, viewport, answers, saved
 * (the trial_ids whose answers the backend has stored), questions, second_tabs, missed (number of failed
 * attempts at the check of the instructions), failed (whether all attempts failed), told and heard. For
 * data other than answers, told is the number of changes, and heard is the number of changes that the
 * backend has stored. A finished record also has done. If another participant began in this browser, the
 * earlier record also has left. `place` names the record in the browser's storage. If the browser stores
 * nothing, or `place` is null, closing the page deletes the record.
 */
contstim.keeping = (place) => {
  const key = `contstim:${place}`;
  let memory = null;
  const attempt = (work) => {
    if (place === null) return null;
    try {
      return work();
    } catch {
      return null;
    }
  };
  return {
    read: () => attempt(() => JSON.parse(localStorage.getItem(key))) ?? memory,
    write: (record) => {
      memory = record;
      attempt(() => localStorage.setItem(key, JSON.stringify(record)));
      attempt(() => localStorage.removeItem(`${key}:nonce`));
    },
    remove: () => {
      memory = null;
      [key, `${key}:nonce`].forEach((name) => attempt(() => localStorage.removeItem(name)));
    },
    /** Nonce of a request to join that has no response yet; a reload keeps it. */
    nonce: () => attempt(() => localStorage.getItem(`${key}:nonce`)),
    writeNonce: (text) => attempt(() => localStorage.setItem(`${key}:nonce`, text)),
    /** Remove a record for another participant; if it has unsent answers, store it under another key. */
    setAside: (record) => {
      memory = null;
      attempt(() => {
        localStorage.removeItem(key);
        if (contstim.isUnsent(record)) {
          const left = JSON.stringify({ ...record, left: true });
          localStorage.setItem(`${key}:${record.participant}`, left);
        }
      });
    },
    /** Local copies of participants who left before all of their answers were sent. */
    aside: () =>
      (attempt(() => Object.keys(localStorage)) ?? [])
        .filter((name) => name.startsWith(`${key}:`))
        .map((name) => ({ name, copy: contstim.keeping(name.slice("contstim:".length)) }))
        .filter(({ name, copy }) => {
          const record = copy.read();
          const own = name === `${key}:${record?.participant}`; // not the record of a simulation
          return own && contstim.isUnsent(record);
        })
        .map(({ copy }) => copy),
  };
};

contstim.COLUMNS = [
  "participant", "group", "trial_id", "rating", "left", "position", "rt_ms", "seed", "assigned_by",
  "input", "blurs", "away_ms", "device", "viewport",
];

/**
 * The answers of a record as rows of responses.csv, with the seed and the method that assigned the
 * group. Simulated answers are marked.
 */
contstim.rows = (record, answers = record.answers) => {
  const { participant, seed, assigned_by, device, viewport } = record;
  const group = Number(record.group);
  const simulated = record.simulated ? { simulated: "true" } : {};
  const more = { seed, assigned_by, device, viewport, ...simulated };
  const rows = answers.map((each) => ({ participant, group, ...each, ...more }));
  const told = ([question, text]) => ({ participant, question, answer: contstim.escapeFormula(text) });
  return [...rows, ...Object.entries(record.questions ?? {}).map(told)];
};

/** The rows as a CSV text; only the table of an artificial participant has the column simulated. */
contstim.table = (record) => {
  const questions = record.questions ? ["question", "answer"] : [];
  const columns = [...contstim.COLUMNS, ...(record.simulated ? ["simulated"] : []), ...questions];
  return contstim.writeTable(columns, contstim.rows(record));
};

/** Return true if the backend lacks an answer, or a change of other data of the record. */
contstim.isUnsent = ({ answers, saved, told = 0, heard = 0, withdrawn = false }) =>
  !withdrawn && (answers.length > saved.length || told > heard);

/** Download a file to the participant's computer. */
contstim.offer = (name, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};
