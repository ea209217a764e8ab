"use strict";

const GUARD_MS = 250; // the second half of a double click must not answer the next pair

/** A jsPsych trial that shows a pair; `answered` receives the response. */
contstim.pairTrial = (screens, shown, answered, more = {}) => {
  const plan = window.contstimSimulation ?? {};
  const planned = Object.hasOwn(plan, shown.trial_id) ? plan[shown.trial_id] : null;
  const buttonOf = (rating) => (shown.left === 1 ? rating - 1 : 6 - rating);
  return {
    type: jsPsychHtmlButtonResponse,
    stimulus: screens.pair(shown),
    choices: screens.CONFIDENCE,
    button_html: (_, at) => screens.button(null, at),
    button_layout: "none",
    prompt: screens.keys(),
    css_classes: ["pair"],
    enable_button_after: GUARD_MS,
    simulation_options: planned ? { data: { response: buttonOf(planned) } } : {},
    ...more,
    on_load: () => {
      contstim.watch.begin();
      more.on_load?.();
    },
    on_finish: (data) => {
      const rating = shown.left === 1 ? data.response + 1 : 6 - data.response;
      const { trial_id, left, position } = shown;
      answered({ trial_id, rating, left, position, rt_ms: data.rt, ...contstim.watch.end() });
    },
  };
};

/** A page of text with buttons; `chosen` receives jsPsych's data. */
contstim.textTrial = (screens, html, choices, state, chosen) => {
  return {
    type: jsPsychHtmlButtonResponse,
    stimulus: screens.page(html),
    choices,
    button_html: (choice) => screens.next(choice),
    button_layout: "none",
    css_classes: ["text"],
    simulation_options: { data: { response: 0 } },
    on_load: () => (document.body.dataset.state = state),
    on_finish: chosen,
  };
};

/** Pages with a button each, one after the other, forwards and backwards. */
contstim.pagesTimeline = (screens, label, pages, state) => {
  let at = 0;
  const page = {
    type: jsPsychHtmlButtonResponse,
    stimulus: () => screens.page(pages[at].html),
    choices: () => [...(at > 0 ? [label("back")] : []), pages[at].button ?? label("next")],
    button_html: (choice) => screens.next(choice),
    button_layout: "none",
    css_classes: ["text"],
    simulation_options: { data: { response: () => (at > 0 ? 1 : 0) } },
    on_load: () => {
      document.body.dataset.state = state;
      [...document.querySelectorAll("#jspsych-content button.next")].at(-1)?.focus();
    },
    on_finish: (data) => (at += data.response === (at > 0 ? 1 : 0) ? 1 : -1),
  };
  return { timeline: [page], loop_function: () => at < pages.length };
};

contstim.instructionPages = (screens, texts, pairs) => {
  const text = texts.instructions.replaceAll("{pairs}", pairs);
  const pages = text.split(/^---+\s*$/m).map((part) => ({ html: contstim.markdown(part) }));
  const examples = texts.examples.map((row, at) => ({ html: screens.example(row, at + 1) }));
  const button = texts.practice.length ? texts.label("start_practice") : texts.label("start");
  const all = [...pages.filter((page) => page.html), ...examples];
  return all.map((page, at) => (at === all.length - 1 ? { ...page, button } : page));
};

/** Everything between consent and the last pair. */
contstim.mainTimeline = ({ screens, texts, trials, answered, progress }) => {
  const { label } = texts;
  const remaining = trials.filter((shown) => !answered.has(shown.trial_id));
  const state = (name) => ({ on_load: () => (document.body.dataset.state = name) });
  const pairs = remaining.map((shown) =>
    contstim.pairTrial(screens, shown, progress, state("trials")),
  );
  if (answered.size) return pairs;
  const introduction = contstim.instructionPages(screens, texts, trials.length);
  const practised = texts.practice.map((row, at) =>
    contstim.pairTrial(screens, { ...row, left: 1 + (at % 2) }, () => {}, state("practice")),
  );
  if (practised.length) {
    const ready = { html: `<h1>${label("practice_done")}</h1>`, button: label("start") };
    practised.push(contstim.pagesTimeline(screens, label, [ready], "ready"));
  }
  const read = contstim.pagesTimeline(screens, label, introduction, "instructions");
  return [read, ...practised, ...pairs];
};
