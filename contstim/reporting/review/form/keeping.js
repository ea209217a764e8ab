"use strict";

/**
 * Decisions in this browser's storage, under a name made of the items' content and the reviewer, so
 * that two tables or two persons never mix.
 *
 * They are [identifier, decision, reason]; a decision that was taken back is there as an empty one.
 * Beside a server only what it has not saved yet is here.
 */
review.keeping = (() => {
  const name = (reviewer) => `contstim-review:${review.data.fingerprint}:${reviewer}`;
  const identifiers = new Set(review.data.items.map((item) => item.id));
  const is_decision = (entry) =>
    Array.isArray(entry) && entry.length === 3 && identifiers.has(entry[0]) &&
    ["", "keep", "reject"].includes(entry[1]) && typeof entry[2] === "string";
  const parse = (text) => {
    try {
      const entries = JSON.parse(text) ?? [];
      return new Map(entries.filter(is_decision).map(([id, ...decided]) => [id, decided]));
    } catch {
      return new Map();
    }
  };
  let available = true;
  try {
    localStorage.setItem("contstim-review:test", "");
    localStorage.removeItem("contstim-review:test");
  } catch {
    available = false;
  }
  const here = new Map(); // by reviewer; stands in where the browser keeps nothing
  // Not what this window read before: other windows with the same page write there, too
  const read = (reviewer) => {
    try {
      if (available) return parse(localStorage.getItem(name(reviewer)));
    } catch {
      available = false; // forbidden meanwhile
    }
    return new Map(here.get(reviewer));
  };
  const write = (reviewer, decisions) => {
    here.set(reviewer, new Map(decisions));
    try {
      const entries = [...decisions].map(([id, decided]) => [id, ...decided]);
      if (entries.length) localStorage.setItem(name(reviewer), JSON.stringify(entries));
      else localStorage.removeItem(name(reviewer));
    } catch {
      available = false; // full, or forbidden meanwhile
    }
  };
  return {
    name,
    parse,
    isAvailable: () => available,
    read,
    write,
    /** Keep a decision, beside what other windows have kept. */
    put: (reviewer, id, decided) => write(reviewer, read(reviewer).set(id, decided)),
    /** Forget decisions, unless something else was decided about their items meanwhile. */
    forget: (reviewer, decisions) => {
      const now = read(reviewer);
      for (const [id, decided] of decisions) {
        if (now.get(id)?.join() === decided.join()) now.delete(id);
      }
      write(reviewer, now);
    },
  };
})();

/**
 * What a server beside the page has not saved yet, sent until it answers; of all windows, so that
 * nothing is lost with a window that is closed.
 *
 * `tell` hears how it stands: "saving", "saved", "waiting" (no answer: sent again) or "refused",
 * with the server's sentence.
 */
review.saving = (tell) => {
  const { keeping, data: { reviewer } } = review;
  let busy = false;
  const send = async () => {
    if (busy) return;
    const unsaved = keeping.read(reviewer);
    if (!unsaved.size) {
      tell("saved"); // perhaps by another window
      return;
    }
    busy = true;
    tell("saving");
    const sent = [...unsaved].slice(0, 200); // requests have a limit
    let again = 0;
    try {
      const answer = await fetch("decisions", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({
          fingerprint: review.data.fingerprint,
          decisions: sent.map(([item_id, [decision, reason]]) => ({ item_id, decision, reason })),
        }),
      });
      if (!answer.ok) {
        const { error } = await answer.json().catch(() => ({ error: `Status ${answer.status}.` }));
        tell("refused", error);
        again = answer.status >= 500 ? 3000 : 0;
      } else {
        keeping.forget(reviewer, sent);
        again = keeping.read(reviewer).size ? 1 : 0;
        if (!again) tell("saved"); // else it is still saving what was decided meanwhile
      }
    } catch {
      tell("waiting");
      again = 2000;
    }
    busy = false;
    if (again) setTimeout(send, again);
  };
  return send;
};
