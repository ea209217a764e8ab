"use strict";

/** The content of the page as HTML. All texts from files are escaped here. */
contstim.screens = (study, texts, stage) => {
  const { escape } = contstim;
  const { label } = texts;
  const sides = ["first", "second"];
  const scale = study.scale;
  /** Names of the buttons' labels, from left to right; a slider (0 to 100) has none. */
  const BUTTONS = {
    confidence: [
      "very_confident", "confident", "somewhat_confident",
      "somewhat_confident", "confident", "very_confident",
    ],
    choice: ["choose", "choose"],
    slider: [],
  }[scale];
  const sideOf = (at) => sides[at < BUTTONS.length / 2 ? 0 : 1];

  const sentence = (text, side) =>
    `<div class="sentence ${sides[side]}" dir="auto" role="group"` +
    ` aria-label="${label(`${sides[side]}_sentence`)}">${escape(text)}</div>`;

  /** The question, and below it both sentences from left to right. */
  const pair = (shown, state) => {
    const ordered = [shown.sentence_1, shown.sentence_2];
    if (shown.left === 2) ordered.reverse();
    const mark = state === "practice" ? `<strong class="mark">${label("practice")}</strong> ` : "";
    const tag = state ? "h1" : "p"; // an example has another heading
    return `<${tag} class="question">${mark}${label("question")}</${tag}>${ordered.map(sentence).join("")}`;
  };

  const slider = (value = 50, more = "") =>
    `<div class="track"><input type="range" min="0" max="100" value="${value}"` +
    ` aria-label="${label("question")}"${more}>` +
    `<span>${label("first_sentence")}</span><span>${label("second_sentence")}</span></div>`;

  const button = (choice, at) => {
    if (!BUTTONS.length) return `<button type="button" class="next">${label("next")}</button>`;
    const name = label(BUTTONS[at]);
    return (
      `<button type="button" class="confidence ${sideOf(at)}"` +
      ` aria-label="${label(`${sideOf(at)}_sentence`)}: ${name}">` +
      `${name}<kbd aria-hidden="true">${at + 1}</kbd></button>`
    );
  };

  /** An example: a pair with the marked answer and its explanation. */
  const example = (row, number) => {
    const marked = BUTTONS.map((name, at) => {
      const chosen = at + 1 === Number(row.rating) ? " chosen" : "";
      return `<span class="confidence ${sideOf(at)}${chosen}">${label(name)}</span>`;
    });
    if (!marked.length) marked.push(slider(Number(row.rating), " disabled"));
    return (
      `<h1 class="example">${label("example", { n: number })}</h1>` +
      `<div class="pair scale-${scale}">${pair({ ...row, left: 1 })}${marked.join("")}</div>` +
      `<p class="why">${escape(row.explanation ?? "")}</p>`
    );
  };

  const show = (html, state) => {
    document.body.dataset.state = state;
    stage().innerHTML = `<div class="page">${html}</div>`;
    stage().scrollIntoView();
  };

  return {
    scale,
    /** Number of answer buttons; 0 for a slider. */
    buttons: BUTTONS.length,
    deadline: study.deadline, // seconds
    breakEvery: study.break_every,
    checkAttempts: study.check_attempts,
    pair,
    slider,
    /** Return the sentence that a rating prefers: 1, 2, or 0 for neither. */
    preferred: (rating) => {
      const middle = BUTTONS.length ? (BUTTONS.length + 1) / 2 : 50;
      return rating === null || rating === middle ? 0 : rating < middle ? 1 : 2;
    },
    /** The expected sentence of a practice pair, and the explanation. */
    expected: (row) =>
      `<h1 class="plain">${label("practice_expected")}</h1>` +
      `<p class="sentence">${escape(row[`sentence_${row.expected}`])}</p>` +
      `<p class="why">${escape(row.explanation ?? "")}</p>`,
    button,
    example,
    show,
    page: (html) => `<div class="page">${html}</div>`,
    next: (choice) => `<button type="button" class="next">${choice}</button>`,
    keys: () => `<p class="keys">${label("keys")}</p>`,

    waiting: (name) =>
      show(
        `<div role="status"><h1 class="plain">${label(name)}</h1></div><p class="detail"></p>`,
        "waiting"
      ),

    /** Show the reason of a delay on the waiting screen. */
    delayed: (error, record) => {
      const detail = stage().querySelector(".detail");
      if (!detail) return;
      const copy = record?.answers.length
        ? `<button type="button" class="copy">${label("keep_copy")}</button>`
        : "";
      detail.innerHTML = `${label("retrying")} <small>(${escape(error.message)})</small> ${copy}`;
      detail.querySelector(".copy")?.addEventListener("click", () => copyOf(record));
    },

    /** Show a permanent problem; the participant can download the answers. */
    problem: (error, record) => {
      const copy = record?.answers.length
        ? `<p>${label("problem_answers")}</p><p><button type="button" class="copy">` +
          `${label("keep_copy")}</button></p>`
        : "";
      const heading = error instanceof contstim.Misplaced ? "" : `<h1>${label("problem")}</h1>`;
      const html = `${heading}<p class="reason">${escape(error.message)}</p>`;
      show(html + copy, "failed");
      stage().querySelector(".copy")?.addEventListener("click", () => copyOf(record));
    },

    /** Show why a person does not take part, and the link that leads back. */
    refused: (name, leave) => {
      const address = study.return_link;
      const back = address ? `<button class="next leave">${label("return")}</button>` : "";
      show(`<h1 class="plain">${label(name)}</h1><p>${back || label("close")}</p>`, "refused");
      stage().querySelector(".leave")?.addEventListener("click", () => leave(address));
    },

    /** A promise that resolves when the participant presses the button for the file. */
    download: (name) =>
      new Promise((resolve) => {
        const explained = `<h1 class="plain">${label("download", { file: name })}</h1>`;
        const button = `<button type="button" class="next">${label("get_file")}</button>`;
        show(explained + button, "file");
        stage().querySelector("button").addEventListener("click", resolve);
      }),

    /** Show a line above every screen. */
    banner: (name) => {
      const line = `<p class="banner" role="note">${label(name)}</p>`;
      document.querySelector("#stage").insertAdjacentHTML("beforebegin", line);
    },

    /** Show the end, after every answer is stored; a preview, which stores none, offers a copy. */
    end: ({ code, redirect }, leave, previewed) => {
      const parts = [contstim.markdown(texts.debrief)];
      if (code) parts.push(`<p>${label("code")}</p><p class="code">${escape(code)}</p>`);
      if (redirect) parts.push(`<p><button class="next leave">${label("finish")}</button></p>`);
      else parts.push(`<p class="keys">${label("close")}</p>`);
      if (previewed) parts.push(`<button class="next copy">${label("keep_copy")}</button>`);
      show(parts.join(""), "saved");
      stage().querySelector(".leave")?.addEventListener("click", () => leave(redirect));
      stage().querySelector(".copy")?.addEventListener("click", () => copyOf(previewed));
      if (redirect && !texts.debrief.trim()) leave(redirect);
    },
  };

  function copyOf(record) {
    const table = contstim.table(record);
    contstim.offer(`${record.participant}.csv`, table);
  }
};
