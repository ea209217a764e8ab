"use strict";

// Asked for at once, because JATOS tells only those who have asked when it is ready.
const jatosIsReady =
  typeof jatos === "undefined" ? null : new Promise((resolve) => jatos.onLoad(resolve));

/**
 * JATOS: answers are sent as they come, as a JSON list for each time the page is loaded.
 *
 * JATOS itself keeps what Prolific says of the person, apart from the answers. Groups are filled up
 * evenly by a count of starts in the batch session, unless the link or the batch's JSON input
 * names one.
 */
contstim.backends.jatos = async (study) => {
  if (typeof jatos === "undefined") {
    throw new contstim.Misplaced("This page was made for JATOS: import its .jzip file there.");
  }
  await jatosIsReady;
  const earlier = new Set(); // answers that an earlier load of the page has sent
  const rows = new Map(); // of each person, what this load sends
  const passing = (error) => {
    throw new contstim.Passing(String(error?.responseText ?? error));
  };
  // Older versions call it batchJsonInput, and so on.
  const input = (of) => (jatos[`${of}Input`] ?? jatos[`${of}JsonInput`])?.group;
  /** What tells a person from those who began before in the same result. */
  const further = () => {
    try {
      const key = `contstim:jatos:${jatos.studyResultId}:people`;
      const n = 1 + Number(localStorage.getItem(key));
      localStorage.setItem(key, n);
      return n > 1 ? `-${n}` : "";
    } catch {
      return ""; // where nothing is kept, nobody is welcomed back either
    }
  };
  const leastFilled = async (groups) => {
    const counts = jatos.batchSession.get("contstim_started") ?? {};
    const least = Math.min(...groups.map((group) => counts[group] ?? 0));
    const candidates = groups.filter((group) => (counts[group] ?? 0) === least);
    const chosen = candidates[contstim.drawn(candidates.length)];
    const updated = { ...counts, [chosen]: least + 1 };
    // JATOS refuses a change that was made from an older state: then everything is tried again.
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
      await this.save(record, []); // with what was asked after the last trial
      const end = jatos.endStudyWithoutRedirect ?? jatos.endStudyAjax; // the older name
      await Promise.resolve(end(true)).catch(console.error); // the answers are safe either way
      return study.completion;
    },
  };
};
