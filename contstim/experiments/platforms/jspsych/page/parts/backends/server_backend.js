"use strict";

/** Preview of a page that is opened from disk, without a server; it stores no answers. */
contstim.preview = () => ({
  place: null,
  isPreview: true,
  asItHappens: false,
  join: (wish) => contstim.joinAlone(wish),
  save: async (_record, answers) => answers.map((answer) => answer.trial_id),
  complete: async () => ({ code: null, redirect: null }),
});

/** `contstim collect`: each answer is sent at once, and the server assigns the groups. */
contstim.backends.server = () => {
  if (location.protocol === "file:") return contstim.preview();
  const AT_ONCE = 50; // answers in a request
  const authorised = (record) => ({ Authorization: `Bearer ${record.secret}` });
  const told = (record) => {
    const { participant, questions, second_tabs, failed } = record;
    return { participant, questions, second_tabs, failed };
  };
  return {
    place: location.pathname,
    asItHappens: true,

    async isOpen({ platform, token, nonce, simulated }) {
      return (await contstim.post("api/open", { platform, token, nonce, simulated })).open;
    },

    async join({ record, group, ...about }) {
      if (record) {
        const { participant, secret } = record;
        try {
          return await contstim.post("api/resume", { participant, secret });
        } catch (error) {
          if (error.status !== 403) throw error; // the server does not know the participant: join again
        }
      }
      const { platform, token, nonce, simulated, device, viewport } = about;
      const wish = { group, platform, token, nonce, simulated, device, viewport };
      const joined = await contstim.post("api/participants", wish);
      return { ...joined, assigned_by: group === null ? "server" : "address" };
    },

    async save(record, answers) {
      const body = { ...told(record), responses: answers.slice(0, AT_ONCE) };
      return (await contstim.post("api/responses", body, authorised(record))).saved;
    },

    async complete(record) {
      try {
        return await contstim.post("api/complete", told(record), authorised(record));
      } catch (error) {
        if (error.status !== 409) throw error;
        record.saved = []; // the server has lost answers: send all of them again
        throw new contstim.Passing(error.message);
      }
    },
  };
};
