"use strict";

/**
 * Decisions in this browser's storage. The key depends on the items' content and the reviewer, to
 * separate tables and reviewers.
 *
 * Entries are [identifier, decision, reason]; a cleared decision is stored as an empty one. With a
 * server, only unsaved decisions are here.
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
  const here = new Map(); // by reviewer; used if the browser has no storage
  // Read again each time, since other windows with the same page also write
  const read = (reviewer) => {
    try {
      if (available) return parse(localStorage.getItem(name(reviewer)));
    } catch {
      available = false; // now forbidden
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
      available = false; // full, or now forbidden
    }
  };
  return {
    name,
    parse,
    isAvailable: () => available,
    read,
    write,
    /** Store a decision in addition to those of other windows. */
    put: (reviewer, id, decided) => write(reviewer, read(reviewer).set(id, decided)),
    /** Remove decisions that have not changed in the meantime. */
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
 * Send unsaved decisions of all windows to the server until it responds, so that closing a window
 * loses nothing.
 *
 * `tell` receives the state: "saving", "saved", "waiting" (no response, will retry) or "refused",
 * with the server's message.
 */
review.saving = (tell) => {
  const { keeping, data: { reviewer } } = review;
  let busy = false;
  const send = async () => {
    if (busy) return;
    const unsaved = keeping.read(reviewer);
    if (!unsaved.size) {
      tell("saved"); // perhaps another window has saved the decisions
      return;
    }
    busy = true;
    tell("saving");
    const sent = [...unsaved].slice(0, 200); // limit of a request
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
        if (!again) tell("saved"); // otherwise newer decisions are still unsaved
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
