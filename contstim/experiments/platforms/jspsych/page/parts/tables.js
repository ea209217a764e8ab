"use strict";

/** Read the rows of a CSV text (commas or semicolons, doubled quotes) as objects by column. */
contstim.readTable = (text, name) => {
  const lines = contstim.readCells(text.replace(/^\uFEFF/, ""));
  const rows = lines.filter((cells) => cells.some((cell) => cell.trim()));
  const [header, ...body] = rows;
  if (!header) throw new Error(`${name} is empty.`);
  return body.map((cells, place) => {
    if (cells.length !== header.length) {
      throw new Error(`${name}, row ${place + 1}: ${cells.length} cells for ${header.length}.`);
    }
    return Object.fromEntries(header.map((column, at) => [column.trim(), cells[at]]));
  });
};

contstim.readCells = (text) => {
  const first = text.split("\n", 1)[0];
  const delimiter = first.split(";").length > first.split(",").length ? ";" : ",";
  const rows = [[""]];
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    const row = rows[rows.length - 1];
    if (quoted && sign === '"' && text[at + 1] === '"') {
      row[row.length - 1] += '"';
      at += 1;
    } else if (sign === '"') quoted = !quoted;
    else if (!quoted && sign === delimiter) row.push("");
    else if (!quoted && sign === "\n") rows.push([""]);
    else if (quoted || sign !== "\r") row[row.length - 1] += sign;
  }
  return rows;
};

/** Write rows as a CSV text; texts are quoted, numbers are not. */
contstim.writeTable = (columns, rows) => {
  const cell = (value) =>
    typeof value === "number" ? String(value) : `"${String(value ?? "").replaceAll('"', '""')}"`;
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return lines.map((cells) => `${cells.map(cell).join(",")}\n`).join("");
};

/** Prefix a text with an apostrophe if a spreadsheet would run it as a formula; see responses.csv. */
contstim.escapeFormula = (text) => {
  return /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
};
