"use strict";

/** Add to each item its position, searchable text, sentence lengths and model pair. */
review.data.items.forEach((item, place) => {
  item.place = place;
  item.searched = [item.id, ...item.sentences].join("\n").toLowerCase();
  item.lengths = item.sentences.map((text) => text.split(" ").length);
  item.duel = item.models[0] && item.models.join("\n");
});

/** Filters: return whether an item matches a choice; `decided` returns its decision. */
review.FILTERS = {
  condition: (item, choice) => item.condition === choice,
  duel: (item, choice) => item.duel === choice,
  group: (item, choice) => item.group === Number(choice),
  length: (item, choice) => item.lengths.includes(Number(choice)),
  flag: (item, choice) => {
    if (choice === "any") return item.flags.length > 0;
    if (choice === "none") return item.flags.length === 0;
    return item.flags.some(([kind]) => kind === Number(choice));
  },
  decision: (item, choice, decided) => {
    const [decision] = decided(item);
    const all = new Set([decision, ...item.others.map(([, other]) => other)]);
    switch (choice) {
      case "open": return !decision;
      case "keep": return decision === "keep";
      case "reject": return decision === "reject";
      case "anybody": return all.has("reject");
      default: return all.has("keep") && all.has("reject"); // disagree
    }
  },
};

review.ORDERS = {
  table: (a, b) => a.place - b.place,
  most: (a, b) => (b.controversiality ?? -Infinity) - (a.controversiality ?? -Infinity),
  least: (a, b) => (a.controversiality ?? Infinity) - (b.controversiality ?? Infinity),
  unsure: (a, b) => (a.sureness ?? Infinity) - (b.sureness ?? Infinity),
  flags: (a, b) => b.flags.length - a.flags.length,
};

/** Return the items that pass every filter and contain the searched text, sorted. */
review.select = (choices, searched, order, decided) => {
  const filters = Object.entries(choices).filter(([, choice]) => choice !== "");
  const wanted = searched.trim().toLowerCase();
  return review.data.items
    .filter((item) => item.searched.includes(wanted))
    .filter((item) =>
      filters.every(([name, choice]) => review.FILTERS[name](item, choice, decided)))
    // `||`: the difference of infinite values is NaN; ties keep the table's order
    .sort((a, b) => review.ORDERS[order](a, b) || a.place - b.place);
};
