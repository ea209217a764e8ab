"use strict";

/** Decisions of the reviewer, with undo and storage. */
review.deciding = (() => {
  const { data, keeping } = review;
  const begun = () =>
    new Map(data.items.flatMap((item) => item.decision.map((decided) => [item.id, decided])));
  const isServed = Boolean(data.file);
  let reviewer = data.reviewer;
  // The storage has all decisions made in this browser. With a server, it has only unsaved decisions
  let decisions = new Map([...begun(), ...keeping.read(reviewer)]);
  let history = [];
  let listener = () => {};
  let state = isServed ? "saved" : "";
  let problem = "";
  let isDownloaded = true;

  let send = () => {};
  const tell = (next, sentence = "") => {
    [state, problem] = [next, sentence];
    listener();
  };
  if (isServed) send = review.saving(tell);

  const put = (id, decided) => {
    decisions.set(id, decided);
    keeping.put(reviewer, id, decided);
    isDownloaded = false;
    send();
    listener(id);
  };
  const NOTHING = ["", ""];
  return {
    of: (item) => decisions.get(item.id) ?? NOTHING,
    reviewer: () => reviewer,
    listen: (change) => { listener = change; },
    start: () => send(),
    set: (item, decision, reason = "") => {
      const before = decisions.get(item.id) ?? NOTHING;
      // Valid in tables: one line, no halves of surrogate pairs
      const plain = reason.replace(/[\s\p{Cc}\p{Cs}]+/gu, " ").trim().slice(0, 500);
      history.push([item, before]);
      put(item.id, [decision, plain]);
    },
    /** Undo the last decision; return its item, or undefined. */
    undo: () => {
      const [item, before] = history.pop() ?? [];
      if (item) put(item.id, before);
      return item;
    },
    /** Change the reviewer; decisions without a reviewer get the first name that is entered. */
    rename: (name) => {
      const next = name.replace(/[\s\p{Cc}\p{Cs}]+/gu, " ").trim().slice(0, 100);
      if (next === reviewer) return;
      const there = keeping.read(next);
      const moves = reviewer === "" && there.size === 0;
      const taken = moves ? keeping.read("") : there;
      if (moves) keeping.write("", new Map());
      else history = [];
      const own = next === data.reviewer || moves ? begun() : new Map();
      [reviewer, decisions] = [next, new Map([...own, ...taken])];
      keeping.write(reviewer, taken);
      listener();
    },
    /** Read decisions that another window with the same page has made. */
    reread: (name, text) => {
      if (name !== keeping.name(reviewer)) return;
      const now = keeping.read(reviewer);
      // The storage no longer has decisions that the server has saved in the meantime
      decisions = new Map([...decisions, ...keeping.parse(text), ...now]);
      if (isServed && !now.size) state = "saved";
      listener();
    },
    download: () => {
      const file = reviewer ? `review-${reviewer.replace(/[^\p{L}\p{N}-]+/gu, "_")}.csv` : "review.csv";
      review.offer(file, review.table(reviewer, decisions));
      isDownloaded = true;
    },
    counts: () => {
      const all = data.items.map((item) => (decisions.get(item.id) ?? NOTHING)[0]);
      return {
        decided: all.filter(Boolean).length,
        rejected: all.filter((decision) => decision === "reject").length,
      };
    },
    /** Return a sentence about where decisions are stored, and whether it is a warning. */
    whereabouts: () => {
      const kept = keeping.isAvailable();
      const unsaved = kept
        ? "They are saved in this browser and will be sent again."
        : "They are lost if you close this page now.";
      if (state === "saved") return [`Saved in ${data.file}.`, false];
      if (state === "saving") return ["Saving …", false];
      if (state === "waiting") {
        return [`Not saved: the server does not answer. ${unsaved}`, true];
      }
      if (state === "refused") return [`Not saved: ${problem}`, true];
      if (kept) return ["Saved in this browser. Download the review when you are done.", false];
      return ["This browser cannot save decisions. They are lost when you close or reload this "
        + "page, so download the review before.", true];
    },
    mayBeLost: () =>
      isServed ? keeping.read(reviewer).size > 0 : !keeping.isAvailable() && !isDownloaded,
  };
})();
