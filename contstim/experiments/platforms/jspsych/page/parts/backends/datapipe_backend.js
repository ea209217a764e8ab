"use strict";

/**
 * DataPipe (pipe.jspsych.org), which writes a file for each participant to a project of the OSF.
 *
 * What Prolific says of the person goes into a file of its own, so that the answers name nobody.
 */
contstim.backends.datapipe = (study) => {
  const { experiment, address } = study.save;
  const write = async (filename, data) => {
    try {
      await contstim.post(`${address}data/`, { experimentID: experiment, filename, data });
    } catch (error) {
      // Names are drawn at random: a file that exists is the one of a try whose answer was lost.
      if (!/^(OSF_)?FILE_EXISTS$/.test(error.content?.error ?? "")) throw error;
    }
  };
  const nextCondition = async (groups) => {
    try {
      const answer = await contstim.post(`${address}condition/`, { experimentID: experiment });
      const { condition } = answer;
      return Number.isInteger(condition) ? [groups[condition % groups.length], "datapipe"] : null;
    } catch (error) {
      if (error instanceof contstim.Refused) return null; // not switched on for this experiment
      throw error;
    }
  };
  return {
    place: location.pathname,
    asItHappens: false,
    join: (wish) => contstim.joinAlone(wish, nextCondition),

    async save(record, answers) {
      if (record.platform) {
        // These come from the address, so whoever opens it chooses them.
        const column = (name) => (name === "participant" ? "participant_plain" : name);
        const ids = Object.entries(record.platform).map(([name, value]) => [
          column(name),
          contstim.escapeFormula(value),
        ]);
        const row = { participant: record.participant, ...Object.fromEntries(ids) };
        const columns = Object.keys(row);
        await write(`identity-${record.participant}.csv`, contstim.writeTable(columns, [row]));
      }
      const table = contstim.table(record);
      await write(`${record.participant}.csv`, table);
      return answers.map((answer) => answer.trial_id);
    },

    complete: async () => study.completion,
  };
};
