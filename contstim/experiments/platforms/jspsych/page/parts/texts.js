"use strict";

/**
 * The texts and tables that the researcher edits, by file name.
 *
 * Where the page is served, the files are read as they stand, so that an edit needs no new export;
 * a page opened from disk may not read them and takes the copies made when it was exported.
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

/** A function that looks a label up, fills in its {numbers}, and makes it safe to show. */
contstim.labels = (labels) => (name, numbers = {}) => {
  const text = labels[name] ?? name;
  return contstim.escape(text.replace(/\{(\w+)\}/g, (all, key) => numbers[key] ?? all));
};
