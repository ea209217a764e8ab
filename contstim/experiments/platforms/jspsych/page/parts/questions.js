"use strict";

/** The form of questions as HTML. */
contstim.questionForm = (rows) => {
  const { escape } = contstim;
  const field = (row) => {
    const named = `name="${escape(row.name)}"${row.optional ? "" : " required"}`;
    if (row.kind === "choice") {
      const option = (text, at) =>
        `<label><input type="radio" ${named} value="${escape(text)}"> ${escape(row.shown[at] ?? text)}</label>`;
      return row.choices.map(option).join("");
    }
    const range = `min="${row.lowest}" max="${row.highest}"`;
    const limits = row.kind === "number" ? range : 'maxlength="1000"';
    return `<input type="${row.kind}" ${named} ${limits} aria-label="${escape(row.question)}">`;
  };
  const set = (row) => `<fieldset><legend>${escape(row.question)}</legend>${field(row)}</fieldset>`;
  return `<form class="questions">${rows.map(set).join("")}</form>`;
};

/**
 * A page of questions. Its button is enabled when all required answers are given. `done` receives the
 * answers.
 */
contstim.questionTrial = (screens, label, rows, state, done) => {
  let given = {};
  const listen = () => {
    const form = document.querySelector("#jspsych-content form");
    const heard = () => {
      given = Object.fromEntries(new FormData(form));
      document.querySelector("#jspsych-content .next").disabled = !form.checkValidity();
    };
    form?.addEventListener("input", heard);
    form?.addEventListener("submit", (event) => event.preventDefault());
    if (form && !contstim.simulationMode()) heard();
    document.body.dataset.state = state;
  };
  const html = `<h1>${contstim.escape(document.title)}</h1>${contstim.questionForm(rows)}`;
  const page = contstim.textTrial(screens, html, [label("next")], state, () => done(given));
  return { ...page, on_load: listen };
};

/** Instructions and check, repeated while an answer is wrong and `missed` allows another attempt. */
contstim.checked = (screens, label, read, rows, missed) => {
  let again = false;
  const check = contstim.questionTrial(screens, label, rows, "check", (given) => {
    const right = rows.every((row) => given[row.name] === row.right);
    again = !right && !contstim.simulationMode() && missed();
  });
  return { timeline: [read, check], loop_function: () => again };
};
