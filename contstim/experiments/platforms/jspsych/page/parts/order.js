"use strict";

// Order and sides follow from a participant's seed alone:
// 1. numbers come from mulberry32, started with the seed (modulo 2^32);
// 2. trials are sorted by trial_id, new ones after a review by that of the trial they stand for; in
//    each stratum (a condition of the design, numbered), sides alternate, starting with a side that
//    is drawn, and are then shuffled, so that sentence_1 stands left in half of the trials of each
//    condition;
// 3. all trials, again so sorted, are shuffled into the order of presentation.

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

/** The trials as one participant sees them: each with `left` (1 or 2) and `position` (from 1). */
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
