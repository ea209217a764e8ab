"use strict";

/**
 * DataPipe (pipe.jspsych.org), which writes a file for each participant to a project of the OSF.
 *
 * The identity from a recruiting platform is written to a separate file, not to the file of answers.
 */
contstim.backends.datapipe = (study) => {
  const { experiment, address } = study.save;
  const write = async (filename, data) => {
    try {
      await contstim.post(`${address}data/`, { experimentID: experiment, filename, data });
    } catch (error) {
      // Names are random, so an existing file is from an earlier attempt whose response was lost.
      if (!/^(OSF_)?FILE_EXISTS$/.test(error.content?.error ?? "")) throw error;
    }
  };
  const nextCondition = async (groups) => {
    try {
      const answer = await contstim.post(`${address}condition/`, { experimentID: experiment });
      const { condition } = answer;
      return Number.isInteger(condition) ? [groups[condition % groups.length], "datapipe"] : null;
    } catch (error) {
      if (error instanceof contstim.Refused) return null; // condition assignment is not enabled
      throw error;
    }
  };
  return {
    place: location.pathname,
    asItHappens: false,
    join: (wish) => contstim.joinAlone(wish, nextCondition),

    async save(record, answers) {
      if (record.platform) {
        // These values come from the address, so anyone who opens the page can choose them.
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
