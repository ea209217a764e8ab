"use strict";

// Functions of all backends except `contstim collect`: the page itself selects the group and draws the
// seed, and the study contains the completion code.

contstim.drawn = (below) => {
  const numbers = crypto.getRandomValues(new Uint32Array(1));
  return Math.floor((numbers[0] / 2 ** 32) * below);
};

/** Draw a name; the name of an artificial participant has a prefix, in case a column is lost. */
contstim.newParticipant = (simulated) => {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return `${simulated ? "simulated-" : "p"}${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
};

/** Derive the group from a Prolific ID, so that a participant always gets the same group. */
contstim.groupOfPlatform = (platform, groups) => {
  let sum = 0;
  for (const sign of platform.PROLIFIC_PID) sum = (sum * 31 + sign.codePointAt(0)) % 1_000_003;
  return groups[sum % groups.length];
};

/** Join without a server: resume the record, or begin with the group that `choose` returns. */
contstim.joinAlone = async (wish, choose = async () => null) => {
  const { record, group, platform, groups, simulated } = wish;
  if (record) return { ...record, answered: record.answers, saved: record.saved };
  const found = async () => {
    if (group !== null) return [group, "address"];
    if (groups.length === 1) return [groups[0], "only"];
    const chosen = await choose(groups);
    if (chosen) return chosen;
    if (platform?.PROLIFIC_PID) return [contstim.groupOfPlatform(platform, groups), "platform"];
    return [groups[contstim.drawn(groups.length)], "chance"];
  };
  const [own, assigned_by] = await found();
  return {
    participant: contstim.newParticipant(simulated),
    secret: null,
    group: own,
    seed: contstim.drawn(2 ** 31),
    assigned_by,
    answered: [],
  };
};
