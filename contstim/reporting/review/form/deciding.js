"use strict";

/** What the reviewer decided, how it is undone, and where it is kept. */
review.deciding = (() => {
  const { data, keeping } = review;
  const begun = () =>
    new Map(data.items.flatMap((item) => item.decision.map((decided) => [item.id, decided])));
  const isServed = Boolean(data.file);
  let reviewer = data.reviewer;
  // In the storage is everything that was decided here or, with a server, is not saved yet
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
      // Texts that tables can hold: one line, no halves of surrogate pairs
      const plain = reason.replace(/[\s\p{Cc}\p{Cs}]+/gu, " ").trim().slice(0, 500);
      history.push([item, before]);
      put(item.id, [decision, plain]);
    },
    /** The item whose last decision was taken back, or nothing. */
    undo: () => {
      const [item, before] = history.pop() ?? [];
      if (item) put(item.id, before);
      return item;
    },
    /** Another reviewer; decisions that nobody's name stood on get the first name that is given. */
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
    /** Take over what another window with the same page has decided. */
    reread: (name, text) => {
      if (name !== keeping.name(reviewer)) return;
      const now = keeping.read(reviewer);
      // What that window wrote may be saved and gone again by now
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
    /** Where decisions are, in a sentence, and whether that is a cause for worry. */
    whereabouts: () => {
      const kept = keeping.isAvailable();
      const unsaved = kept
        ? "They are kept in this browser and sent again."
        : "They are lost if this page is closed now.";
      if (state === "saved") return [`Saved in ${data.file}.`, false];
      if (state === "saving") return ["Saving …", false];
      if (state === "waiting") {
        return [`Not saved: the server does not answer. ${unsaved}`, true];
      }
      if (state === "refused") return [`Not saved: ${problem}`, true];
      if (kept) return ["Kept in this browser. Download when you are done.", false];
      return ["This browser keeps nothing for this page: decisions are lost when it is closed or "
        + "reloaded. Download them before.", true];
    },
    mayBeLost: () =>
      isServed ? keeping.read(reviewer).size > 0 : !keeping.isAvailable() && !isDownloaded,
  };
})();
