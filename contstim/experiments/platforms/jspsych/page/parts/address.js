"use strict";

contstim.query = new URLSearchParams(location.search);

/** Parameters of the address, except empty ones and placeholders ({{%…%}}) that no platform filled. */
contstim.parametersOf = (backend) => {
  const own = Object.fromEntries(contstim.query);
  const all = Object.entries({ ...own, ...backend.parameters });
  return Object.fromEntries(all.filter(([, value]) => value && !/^\{\{.*\}\}$/.test(value)));
};

/** Identity of the participant on Prolific or another platform; null without one. */
contstim.platformOf = (parameters, identify) => {
  const names = identify.filter((name) => parameters[name]);
  if (!names.length) return null;
  return Object.fromEntries(names.map((name) => [name, parameters[name]]));
};

/** Mode in which jsPsych simulates a participant, only on this computer; else null. */
contstim.simulationMode = () => {
  const here = ["localhost", "127.0.0.1", "[::1]", ""].includes(location.hostname);
  if (!here || !contstim.query.has("simulate")) return null;
  return contstim.query.get("simulate") === "visual" ? "visual" : "data-only";
};
