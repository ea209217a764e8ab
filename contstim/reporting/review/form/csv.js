"use strict";

// All parts of the page are in this object, since a page opened from disk cannot use modules.
const review = { data: JSON.parse(document.getElementById("data").textContent) };

/** Format rows as contstim writes CSV: quoted texts, unquoted numbers, lines ended by LF. */
review.csv = (columns, rows) => {
  const cell = (value) =>
    typeof value === "number" ? String(value) : `"${value.replaceAll('"', '""')}"`;
  return [columns, ...rows].map((cells) => `${cells.map(cell).join(",")}\n`).join("");
};

/** Format review.csv: every item with its decision, in the order of the table. */
review.table = (reviewer, decisions) => {
  const { columns, items, kind } = review.data;
  const rows = items.map((item) => {
    const [decision, reason] = decisions.get(item.id) ?? ["", ""];
    const cells = {
      reviewer, item_id: item.id, kind, source_id: item.source, condition: item.condition,
      group: item.group, model_1: item.models[0], model_2: item.models[1],
      sentence_1: item.sentences[0], sentence_2: item.sentences[1],
      sentence_3: item.sentences[2] ?? "", decision, reason,
    };
    return columns.map((column) => cells[column]);
  });
  return review.csv(columns, rows);
};

/** Download a file. */
review.offer = (name, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};
