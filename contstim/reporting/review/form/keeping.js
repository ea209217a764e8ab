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
  let available = true;
  try {
    localStorage.setItem("contstim-review:test", "");
    localStorage.removeItem("contstim-review:test");
  } catch {
    available = false;
  }
  return {
    name,
    isAvailable: () => available,
    read: (reviewer) => {
      try {
        const entries = JSON.parse(localStorage.getItem(name(reviewer))) ?? [];
        return new Map(entries.filter(is_decision).map(([id, ...decided]) => [id, decided]));
      } catch {
        return new Map();
      }
    },
    write: (reviewer, decisions) => {
      try {
        const entries = [...decisions].map(([id, decided]) => [id, ...decided]);
        if (entries.length) localStorage.setItem(name(reviewer), JSON.stringify(entries));
        else localStorage.removeItem(name(reviewer));
      } catch {
        available = false; // full, or forbidden meanwhile
      }
    },
  };
})();

/**
 * What a server beside the page has not saved yet, sent until it answers.
 *
 * `tell` hears how it stands: "saving", "saved", "waiting" (no answer: sent again) or "refused",
 * with the server's sentence.
 */
review.saving = (unsaved, tell) => {
  let busy = false;
  const send = async () => {
    if (busy || !unsaved.size) return;
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
        // What was decided again meanwhile is another pair, and stays to be sent
        for (const [id, decided] of sent) if (unsaved.get(id) === decided) unsaved.delete(id);
        review.keeping.write(review.data.reviewer, unsaved);
        tell("saved");
        again = unsaved.size ? 1 : 0;
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
