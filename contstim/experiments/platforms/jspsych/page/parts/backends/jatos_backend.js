"use strict";

// Registered at once, because JATOS calls only listeners that exist when it becomes ready.
const jatosIsReady =
  typeof jatos === "undefined" ? null : new Promise((resolve) => jatos.onLoad(resolve));

/**
 * JATOS: each answer is sent at once, as part of a JSON list for each load of the page.
 *
 * JATOS stores the identity from Prolific separately from the answers. Groups are filled evenly, by
 * counts of starts in the batch session, unless the link or the batch's JSON input names a group.
 */
contstim.backends.jatos = async (study) => {
  if (typeof jatos === "undefined") {
    throw new contstim.Misplaced("This page was made for JATOS: import its .jzip file there.");
  }
  await jatosIsReady;
  const earlier = new Set(); // answers that an earlier load of the page has sent
  const rows = new Map(); // participant → rows that this load of the page sends
  const passing = (error) => {
    throw new contstim.Passing(String(error?.responseText ?? error));
  };
  // Older versions of JATOS have the names batchJsonInput and componentJsonInput.
  const input = (of) => (jatos[`${of}Input`] ?? jatos[`${of}JsonInput`])?.group;
  /** Suffix that distinguishes a participant from earlier participants in the same result. */
  const further = () => {
    try {
      const key = `contstim:jatos:${jatos.studyResultId}:people`;
      const n = 1 + Number(localStorage.getItem(key));
      localStorage.setItem(key, n);
      return n > 1 ? `-${n}` : "";
    } catch {
      return ""; // without local storage, no participant can resume either
    }
  };
  const leastFilled = async (groups) => {
    const counts = jatos.batchSession.get("contstim_started") ?? {};
    const least = Math.min(...groups.map((group) => counts[group] ?? 0));
    const candidates = groups.filter((group) => (counts[group] ?? 0) === least);
    const chosen = candidates[contstim.drawn(candidates.length)];
    const updated = { ...counts, [chosen]: least + 1 };
    // JATOS refuses a change that is based on an outdated state; then the whole step is retried.
    await Promise.resolve(jatos.batchSession.set("contstim_started", updated)).catch(passing);
    return [chosen, "jatos"];
  };
  return {
    place: `jatos:${jatos.studyResultId}`,
    asItHappens: true,
    parameters: jatos.urlQueryParameters ?? {},
    group: input("batch") ?? input("component"),

    async join(wish) {
      const joined = await contstim.joinAlone(wish, leastFilled);
      if (wish.record) {
        wish.record.saved.forEach((name) => earlier.add(`${joined.participant} ${name}`));
        return joined;
      }
      const name = `${wish.simulated ? "simulated-" : ""}jatos-${jatos.studyResultId}${further()}`;
      return { ...joined, participant: name };
    },

    async save(record, answers) {
      const { participant } = record;
      const isHere = (answer) => !earlier.has(`${participant} ${answer.trial_id}`);
      rows.set(participant, contstim.rows(record, record.answers.filter(isHere)));
      const data = JSON.stringify([...rows.values()].flat());
      await Promise.resolve(jatos.submitResultData(data)).catch(passing);
      return answers.map((answer) => answer.trial_id);
    },

    async complete(record) {
      await this.save(record, []); // with the answers to questions after the last trial
      const end = jatos.endStudyWithoutRedirect ?? jatos.endStudyAjax; // the older name
      await Promise.resolve(end(true)).catch(console.error); // the answers are stored in any case
      return study.completion;
    },
  };
};
