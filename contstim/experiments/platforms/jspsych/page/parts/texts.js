"use strict";

/**
 * Load the texts and tables that the researcher edits.
 *
 * A page from a server reads the files, so that an edit needs no new export. A page that is opened from
 * disk cannot read them and uses the copies from the export.
 */
contstim.loadTexts = async (study) => {
  const texts = { ...study.texts };
  if (location.protocol !== "file:") {
    const read = async (name) => {
      const answer = await fetch(name, { cache: "no-store" });
      if (answer.ok) texts[name] = await answer.text();
    };
    await Promise.allSettled(Object.keys(texts).map(read));
  }
  const table = (name) => (name in texts ? contstim.readTable(texts[name], name) : []);
  const labels = Object.fromEntries(table("labels.csv").map((row) => [row.name, row.text]));
  return {
    consent: texts["consent.md"],
    instructions: texts["instructions.md"],
    debrief: texts["debrief.md"],
    examples: table("examples.csv"),
    practice: table("practice.csv"),
    questions: study.questions,
    label: contstim.labels(labels),
  };
};

/** Return a function that looks up a label, fills in its {numbers}, and escapes it for HTML. */
contstim.labels = (labels) => (name, numbers = {}) => {
  const text = labels[name] ?? name;
  return contstim.escape(text.replace(/\{(\w+)\}/g, (all, key) => numbers[key] ?? all));
};
