"use strict";

// Order and sides depend only on a participant's seed:
// 1. Random numbers come from mulberry32, whose state starts with the seed (modulo 2^32).
// 2. Trials are sorted by trial_id. In each stratum (a numbered condition of the design), the sides
//    alternate, beginning with a random side, and are then shuffled. So sentence_1 is on the left in
//    half of the trials of each condition.
// 3. All trials, sorted by trial_id, are shuffled into the order of presentation.

contstim.randomNumbers = (seed) => {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
};

contstim.shuffled = (list, random) => {
  const mixed = [...list];
  for (let last = mixed.length - 1; last > 0; last -= 1) {
    const other = random(last + 1);
    [mixed[last], mixed[other]] = [mixed[other], mixed[last]];
  }
  return mixed;
};

/** Trials in a participant's order, each with `left` (1 or 2) and `position` (from 1). */
contstim.presentation = (trials, seed) => {
  const random = contstim.randomNumbers(seed);
  const sorted = [...trials].sort((one, two) => (one.trial_id < two.trial_id ? -1 : 1));
  const left = Object.create(null); // a trial_id may be any text, also __proto__
  for (const stratum of [...new Set(sorted.map((trial) => trial.stratum))].sort((a, b) => a - b)) {
    const members = sorted.filter((trial) => trial.stratum === stratum);
    const start = random(2);
    const sides = contstim.shuffled(members.map((_, place) => ((place + start) % 2) + 1), random);
    members.forEach((trial, place) => (left[trial.trial_id] = sides[place]));
  }
  return contstim.shuffled(sorted, random).map((trial, place) => ({
    ...trial,
    left: left[trial.trial_id],
    position: place + 1,
  }));
};
