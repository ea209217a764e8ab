"use strict";

// The part of Markdown that consent forms need: headings (#, ##, ###), paragraphs, lists (- or 1.),
// **bold**, *italic*, `code` and [links](https://…). HTML is shown as plain text. A paragraph or list
// item may begin with a mark, which restricts when it is shown (style.css): {wide} requires that the
// sentences are side by side, {narrow} that they are one above the other. {keyboard} and {touch} require
// that participants answer in this way.

/** Convert a Markdown text to HTML. */
contstim.markdown = (text) =>
  text
    .replace(/\r\n?/g, "\n")
    .split(/\n\s*\n/)
    .filter((block) => block.trim())
    .map(contstim.markdownBlock)
    .join("\n");

contstim.markdownBlock = (block) => {
  const lines = block.trim().split("\n");
  const heading = /^(#{1,3})\s+(.*)$/.exec(lines[0]);
  if (heading) {
    const level = heading[1].length;
    const rest = lines.slice(1).join("\n");
    return `<h${level}>${contstim.markdownInline(heading[2])}</h${level}>\n${
      rest.trim() ? contstim.markdownBlock(rest) : ""
    }`;
  }
  for (const [tag, mark] of [["ul", /^\s*[-*]\s+/], ["ol", /^\s*\d+[.)]\s+/]]) {
    if (mark.test(lines[0])) return contstim.markdownList(lines, tag, mark);
  }
  return contstim.markdownMarked("p", lines.join(" "));
};

const MARKS = /^(?:\{(?:wide|narrow|keyboard|touch)\}\s*)+/;

/** Create an element with a text, whose marks become classes. */
contstim.markdownMarked = (tag, text) => {
  const marks = MARKS.exec(text)?.[0] ?? "";
  const kinds = [...marks.matchAll(/\w+/g)].map(([name]) => `only-${name}`);
  const shown = kinds.length ? ` class="${kinds.join(" ")}"` : "";
  return `<${tag}${shown}>${contstim.markdownInline(text.slice(marks.length))}</${tag}>`;
};

contstim.markdownList = (lines, tag, mark) => {
  const items = [];
  for (const line of lines) {
    if (mark.test(line)) items.push(line.replace(mark, ""));
    else items[items.length - 1] += ` ${line.trim()}`;
  }
  const inside = items.map((item) => contstim.markdownMarked("li", item)).join("");
  return `<${tag}>${inside}</${tag}>`;
};

contstim.markdownInline = (text) =>
  contstim
    .escape(text)
    .split(/(`[^`]+`)/)
    .map((piece) =>
      /^`[^`]+`$/.test(piece)
        ? `<code>${piece.slice(1, -1)}</code>`
        : piece
            .replace(/\*\*(.+?)\*\*/g, "<strong>$1</strong>")
            .replace(/\*(.+?)\*/g, "<em>$1</em>")
            .replace(
              /\[([^\]]+)\]\(((?:https?:\/\/|mailto:)[^\s)]+)\)/g,
              '<a href="$2" target="_blank" rel="noopener noreferrer">$1</a>',
            ),
    )
    .join("");
