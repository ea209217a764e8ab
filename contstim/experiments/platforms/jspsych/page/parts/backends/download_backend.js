"use strict";

/** Without a server: at the end the participant downloads a file and sends it to the researcher. */
contstim.backends.download = (study, screens) => ({
  place: location.pathname,
  asItHappens: false,
  join: (wish) => contstim.joinAlone(wish),

  async save(record, answers) {
    const name = `${record.participant}.csv`;
    if (!record.left) await screens.download(name); // a participant who left presses no button
    contstim.offer(name, contstim.table(record));
    return answers.map((answer) => answer.trial_id);
  },

  complete: async () => study.completion,
});
