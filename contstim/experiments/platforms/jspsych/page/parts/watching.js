"use strict";

/** Derive the kind of device from the browser's user agent. An iPad's user agent names a Macintosh. */
contstim.deviceOf = ({ userAgent, maxTouchPoints }) => {
  if (/iPad|Tablet|Silk|Android(?!.*Mobile)/.test(userAgent)) return "tablet";
  if (/Macintosh/.test(userAgent) && maxTouchPoints > 1) return "tablet";
  return /Mobi|iPhone/.test(userAgent) ? "phone" : "computer";
};

/** Recorder of the input device, and of the time without focus, while a pair is shown. */
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
    /** Receive jsPsych's events of losing and regaining the focus. */
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

/** Count further tabs of the same participant; all tabs have the same count. */
contstim.countTabs = (outbox) => {
  const { record } = outbox;
  if (typeof BroadcastChannel === "undefined") return;
  const channel = new BroadcastChannel(`contstim:${record.participant}`);
  const counted = () => record.second_tabs ?? 0;
  channel.onmessage = ({ data }) => {
    if (data <= counted()) return;
    outbox.tell({ second_tabs: data });
    channel.postMessage(data); // to the new tab, which has not counted the earlier tabs
  };
  channel.postMessage(counted() + 1);
};
