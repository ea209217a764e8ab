"use strict";

/** `contstim collect`: every answer is kept as it comes, and the server fills up the groups. */
contstim.backends.server = () => {
  const AT_ONCE = 50; // answers in a request
  const authorised = (record) => ({ Authorization: `Bearer ${record.secret}` });
  const told = (record) => {
    const { participant, questions, second_tabs, failed } = record;
    return { participant, questions, second_tabs, failed };
  };
  return {
    place: location.pathname,
    asItHappens: true,

    async isOpen(platform) {
      if (location.protocol === "file:") {
        throw new contstim.Misplaced("This page saves to a server: start it with contstim collect.");
      }
      return (await contstim.post("api/open", { platform })).open;
    },

    async join({ record, group, ...about }) {
      if (record) {
        const { participant, secret } = record;
        try {
          return await contstim.post("api/resume", { participant, secret });
        } catch (error) {
          if (error.status !== 403) throw error; // unknown there: join anew
        }
      }
      const { platform, nonce, simulated, device, viewport } = about;
      const wish = { group, platform, nonce, simulated, device, viewport };
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
        record.saved = []; // the server lacks answers that it once had: send all of them again
        throw new contstim.Passing(error.message);
      }
    },
  };
};
