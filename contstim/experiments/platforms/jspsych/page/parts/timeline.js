"use strict";

const GUARD_MS = 250; // the second half of a double click must not answer the next pair

/** A jsPsych trial that shows a pair; `answered` receives the response. */
contstim.pairTrial = (screens, shown, state, answered, seconds = 0) => {
  const plan = window.contstimSimulation ?? {};
  const planned = Object.hasOwn(plan, shown.trial_id) ? plan[shown.trial_id] : null;
  const n = screens.buttons;
  // Answers go from sentence_1 to sentence_2, buttons and slider from left to right
  const turned = (answer) => (shown.left === 1 ? answer : (n ? n + 1 : 100) - answer);
  let slid = planned === null ? Math.floor(Math.random() * 101) : turned(planned);
  const answerOf = (response) =>
    response === null ? null : turned(n ? response + 1 : slid); // null if the time is over
  return {
    type: jsPsychHtmlButtonResponse,
    trial_duration: seconds ? seconds * 1000 : null,
    stimulus: screens.pair(shown, state) + (n ? "" : screens.slider()),
    choices: Array(n || 1).fill(""),
    button_html: (_, at) => screens.button(null, at),
    button_layout: "none",
    prompt: screens.keys(),
    css_classes: ["pair", `scale-${screens.scale}`],
    enable_button_after: GUARD_MS,
    simulation_options:
      planned === null ? {} : { data: { response: n ? turned(planned) - 1 : 0 } },
    on_load: () => {
      contstim.watch.begin();
      document.body.dataset.state = state;
      contstim.listenToSlider((value) => (slid = value));
    },
    on_finish: (data) => {
      const { trial_id, left, position } = shown;
      const rating = answerOf(data.response);
      answered({ trial_id, rating, left, position, rt_ms: data.rt, ...contstim.watch.end() });
    },
  };
};

/** Follow the slider; its button is shown after the first touch, even if the value is unchanged. */
contstim.listenToSlider = (moved) => {
  const slider = document.querySelector("#jspsych-content .track input");
  if (!slider) return;
  const pair = slider.closest(".pair");
  pair.classList.remove("answered"); // all pairs share this element
  pair.dataset.prefers = "";
  const touched = (event) => {
    if (event.type === "keydown" && !/^(Arrow|Page|Home|End| )/.test(event.key)) return;
    const value = Number(slider.value);
    moved(value);
    pair.classList.add("answered");
    pair.dataset.prefers = ["first", "", "second"][Math.sign(value - 50) + 1];
  };
  ["pointerdown", "keydown", "input"].forEach((name) => slider.addEventListener(name, touched));
  slider.focus({ preventScroll: true });
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

/** A sequence of pages with buttons that lead to the next and to the previous page. */
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
  const more = () => at < pages.length || Boolean((at = 0)); // if shown again, begin with the first page
  return { timeline: [page], loop_function: more };
};

contstim.instructionPages = (screens, texts, pairs) => {
  const text = texts.instructions
    .replaceAll("{pairs}", pairs)
    .replaceAll("{seconds}", screens.deadline);
  const pages = text.split(/^---+\s*$/m).map((part) => ({ html: contstim.markdown(part) }));
  const examples = texts.examples.map((row, at) => ({ html: screens.example(row, at + 1) }));
  const button = texts.practice.length ? texts.label("start_practice") : texts.label("start");
  const all = [...pages.filter((page) => page.html), ...examples];
  return all.map((page, at) => (at === all.length - 1 ? { ...page, button } : page));
};

/** Everything between consent and the last pair. */
contstim.mainTimeline = ({ screens, texts, trials, answered, given, progress, told, missed }) => {
  const { label } = texts;
  const remaining = trials.filter((shown) => !answered.has(shown.trial_id));
  const { deadline, breakEvery } = screens;
  const pairs = remaining.flatMap((shown) => {
    const pair = contstim.pairTrial(screens, shown, "trials", progress, deadline);
    const n = shown.position;
    if (!breakEvery || n % breakEvery || n === trials.length) return [pair];
    const text = `<h1>${label("break")}</h1><p>${label("break_text", { n, total: trials.length })}</p>`;
    return [pair, contstim.pagesTimeline(screens, label, [{ html: text }], "break")];
  });
  const ask = (when) =>
    texts.questions.filter((row) => row.when === when && !Object.hasOwn(given, row.name));
  const asked = (when) => {
    const rows = ask(when);
    return rows.length ? [contstim.questionTrial(screens, label, rows, when, told)] : [];
  };
  if (answered.size) return [...pairs, ...asked("after")];
  const introduction = contstim.instructionPages(screens, texts, trials.length);
  const practised = texts.practice.flatMap((row, at) => {
    const shown = { ...row, left: 1 + (at % 2) };
    let rating = null;
    const keep = (answer) => (rating = answer.rating);
    const pair = contstim.pairTrial(screens, shown, "practice", keep, deadline);
    const feedback = contstim.pagesTimeline(screens, label, [{ html: screens.expected(row) }], "expected");
    const differs = () => row.expected && screens.preferred(rating) !== Number(row.expected);
    return [pair, { timeline: [feedback], conditional_function: differs }];
  });
  if (practised.length) {
    const ready = { html: `<h1>${label("practice_done")}</h1>`, button: label("start") };
    practised.push(contstim.pagesTimeline(screens, label, [ready], "ready"));
  }
  const read = contstim.pagesTimeline(screens, label, introduction, "instructions");
  const checks = ask("check");
  const start = checks.length ? contstim.checked(screens, label, read, checks, missed) : read;
  return [...asked("before"), start, ...practised, ...pairs, ...asked("after")];
};
