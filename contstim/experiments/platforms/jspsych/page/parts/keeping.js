"use strict";

/**
 * The local copy: who takes part here, and every answer, kept in the browser until it is done.
 *
 * A record has participant, secret, group, seed, assigned_by, platform, device, viewport, answers, saved (the
 * trial_ids whose answers are safe elsewhere), questions, second_tabs, missed (how often the check of
 * the instructions was wrong), failed (too often), told and heard (how often something beside the
 * answers was to be sent, and what of it was) and, at the end, done, or left where somebody else took
 * this person's place. Where the browser keeps nothing, and where the place is null, the record lives
 * as long as the page.
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
    /** The random text of a request to join that was not answered yet, also before a reload. */
    nonce: () => attempt(() => localStorage.getItem(`${key}:nonce`)),
    writeNonce: (text) => attempt(() => localStorage.setItem(`${key}:nonce`, text)),
    /** Make room for somebody else; a record with answers that are nowhere else stays aside. */
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
    /** The copies of people who left before all of their answers were safe. */
    aside: () =>
      (attempt(() => Object.keys(localStorage)) ?? [])
        .filter((name) => name.startsWith(`${key}:`))
        .map((name) => ({ name, copy: contstim.keeping(name.slice("contstim:".length)) }))
        .filter(({ name, copy }) => {
          const record = copy.read();
          const own = name === `${key}:${record?.participant}`; // not that of a simulation
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
 * The answers of a record as rows of responses.csv, with the seed and how the group was found; those
 * that the page gave by itself say so.
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

/** The rows as a CSV text; only a record of an artificial participant has the column simulated. */
contstim.table = (record) => {
  const questions = record.questions ? ["question", "answer"] : [];
  const columns = [...contstim.COLUMNS, ...(record.simulated ? ["simulated"] : []), ...questions];
  return contstim.writeTable(columns, contstim.rows(record));
};

/** True if the backend lacks an answer, or was not told what is known beside them. */
contstim.isUnsent = ({ answers, saved, told = 0, heard = 0, withdrawn = false }) =>
  !withdrawn && (answers.length > saved.length || told > heard);

/** Hand the person a file. */
contstim.offer = (name, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};
