"use strict";

/** The kind of device, told by the browser's name of itself; an iPad calls itself a Macintosh. */
contstim.deviceOf = ({ userAgent, maxTouchPoints }) => {
  if (/iPad|Tablet|Silk|Android(?!.*Mobile)/.test(userAgent)) return "tablet";
  if (/Macintosh/.test(userAgent) && maxTouchPoints > 1) return "tablet";
  return /Mobi|iPhone/.test(userAgent) ? "phone" : "computer";
};

/** What happens while a pair is shown: by what it is answered, and when the page is left. */
contstim.watch = (() => {
  let input, blurs, away, left = null;
  addEventListener("keydown", () => (input = "key"), true);
  addEventListener(
    "pointerdown",
    ({ pointerType }) => (input = pointerType === "mouse" ? "mouse" : "touch"),
    true,
  );
  const addAway = () => {
    if (left !== null) away += performance.now() - left;
  };
  return {
    begin: () => {
      [input, blurs, away] = [null, 0, 0];
      if (left !== null) left = performance.now();
    },
    /** Take what jsPsych says of blur and focus. */
    interaction: ({ event }) => {
      if (event === "blur") [blurs, left] = [blurs + 1, performance.now()];
      if (event === "focus") {
        addAway();
        left = null;
      }
    },
    end: () => {
      addAway();
      return { input, blurs, away_ms: Math.round(away) };
    },
  };
})();

/** Count, in every tab alike, the further tabs that are opened beside one of the same participant. */
contstim.countTabs = (outbox) => {
  const { record } = outbox;
  if (typeof BroadcastChannel === "undefined") return;
  const channel = new BroadcastChannel(`contstim:${record.participant}`);
  const counted = () => record.second_tabs ?? 0;
  channel.onmessage = ({ data }) => {
    if (data <= counted()) return;
    outbox.tell({ second_tabs: data });
    channel.postMessage(data); // to the new tab, which does not know that there are others
  };
  channel.postMessage(counted() + 1);
};
