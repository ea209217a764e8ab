"use strict";

contstim.query = new URLSearchParams(location.search);

/** Parameters of the address, without those left empty or unfilled by a platform ({{%…%}}). */
contstim.parametersOf = (backend) => {
  const own = Object.fromEntries(contstim.query);
  const all = Object.entries({ ...own, ...backend.parameters });
  return Object.fromEntries(all.filter(([, value]) => value && !/^\{\{.*\}\}$/.test(value)));
};

/** Who the person is on Prolific or another platform, if anybody. */
contstim.platformOf = (parameters, identify) => {
  const names = identify.filter((name) => parameters[name]);
  if (!names.length) return null;
  return Object.fromEntries(names.map((name) => [name, parameters[name]]));
};

/** How jsPsych is to run by itself, if at all; never on a page that others can reach. */
contstim.simulationMode = () => {
  const here = ["localhost", "127.0.0.1", "[::1]", ""].includes(location.hostname);
  if (!here || !contstim.query.has("simulate")) return null;
  return contstim.query.get("simulate") === "visual" ? "visual" : "data-only";
};
