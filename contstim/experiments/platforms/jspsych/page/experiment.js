"use strict";

// The experiment from consent to completion code. contstim.study comes from study.js.

const stage = () => document.querySelector("#jspsych-content") ?? document.querySelector("#stage");

/** Return the stored record if it belongs to this study and this participant; else null. */
function recordToResume(keep, study, platform) {
  const record = keep.read();
  if (!record) return null;
  const differs = (name) => (platform?.[name] ?? null) !== (record.platform?.[name] ?? null);
  const other =
    record.study !== study.id ||
    study.identify.some((name) => !study.visit.includes(name) && differs(name)) ||
    contstim.query.has("fresh");
  if (!other) return record;
  keep.setAside(record);
  return null;
}

/** Let digits press the buttons, arrow keys move between buttons, and Enter confirm a slider. */
function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    const slid = document.querySelector("#jspsych-content.answered button.next");
    if (slid && event.key === "Enter" && !event.repeat && event.target.type === "range") {
      event.preventDefault(); // otherwise, the same key press would press a button of the next page
      slid.click();
    }
    const buttons = [...document.querySelectorAll("#jspsych-content button.confidence")];
    if (!buttons.length || event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const { length } = buttons;
    if (/^[1-9]$/.test(event.key)) buttons[Number(event.key) - 1]?.click();
    else if (step) {
      const at = buttons.indexOf(document.activeElement);
      const next = at < 0 ? (step > 0 ? 0 : length - 1) : (at + step + length) % length;
      buttons[next].focus();
    } else return;
    event.preventDefault();
  });
}

class Experiment {
  constructor(study, texts) {
    Object.assign(this, { study, texts, screens: contstim.screens(study, texts, stage) });
  }

  async run() {
    this.backend = await contstim.backends[this.study.save.to](this.study, this.screens);
    this.parameters = contstim.parametersOf(this.backend);
    this.platform = contstim.platformOf(this.parameters, this.study.identify);
    this.token = this.parameters.token ?? null;
    const simulation = contstim.simulationMode();
    this.simulated = Boolean(simulation);
    const { place, isPreview } = this.backend;
    if (isPreview) this.screens.banner("preview");
    this.keep = contstim.keeping(simulation && place !== null ? `${place}:simulated` : place);
    this.record = recordToResume(this.keep, this.study, this.platform);
    this.sendLeft();
    if (this.record?.done) return this.end();
    if (this.record?.failed) {
      new contstim.Outbox(this.backend, this.record, this.keep).send();
      return this.refuse("check_failed");
    }
    if (!this.record && !(await this.isOpen())) return this.refuse("full");
    const jsPsych = initJsPsych({
      display_element: "stage",
      show_progress_bar: true,
      auto_update_progress_bar: false,
      on_interaction_data_update: contstim.watch.interaction,
      message_progress_bar: () => this.progressText ?? "",
    });
    listenToKeys();
    this.jsPsych = jsPsych;
    this.timeline = [this.record ? this.welcome() : this.consent()];
    if (simulation) await jsPsych.simulate(this.timeline, simulation);
    else await jsPsych.run(this.timeline);
    if (this.record?.withdrawn) this.refuse("withdrawn");
    else if (this.record?.failed) this.refuse("check_failed");
    else if (this.record) await this.finish();
    else this.refuse("disagreed");
    return null;
  }

  /** Return false if the backend reports, before consent, that the study is full; else true. */
  async isOpen() {
    if (!this.backend.isOpen) return true;
    this.screens.waiting("connecting");
    const { platform, token, simulated } = this;
    const asked = await contstim.retrying(
      () => this.backend.isOpen({ platform, token, simulated, nonce: this.keep.nonce() }),
      this.screens.delayed,
    );
    stage().innerHTML = "";
    return asked;
  }

  refuse(why) {
    this.screens.refused(why, this.leave);
  }

  /** The consent page; no participant is sent to the backend before consent. */
  consent() {
    const { label, consent } = this.texts;
    const choices = [label("agree"), label("disagree")];
    const join = (data) => (data.response === 0 ? this.join() : null);
    const text = consent.replaceAll("{minutes}", this.study.minutes);
    return contstim.textTrial(this.screens, contstim.markdown(text), choices, "consent", join);
  }

  /** The page after a reload: the participant has agreed, and answered pairs are not shown again. */
  welcome() {
    const { label } = this.texts;
    const html = `<h1>${label("welcome_back")}</h1><p>${label("go_on")}</p>`;
    // An address with an identity belongs to one participant, so nobody else can begin there
    const choices = [label("next"), ...(this.platform ? [] : [label("somebody_else")])];
    const chosen = (data) => (data.response === 0 ? this.join() : this.beginWithAnother());
    return contstim.textTrial(this.screens, html, choices, "resume", chosen);
  }

  /** Begin with another participant: set the earlier record aside, and ask for consent again. */
  beginWithAnother() {
    this.keep.setAside(this.record);
    this.record = null;
    this.sendLeft();
    this.timeline.push(this.consent());
  }

  /** Send the unsent answers of participants who left, while another participant continues. */
  sendLeft() {
    for (const keep of this.keep.aside()) {
      new contstim.Outbox(this.backend, keep.read(), keep).send();
    }
  }

  async join() {
    const { study, screens } = this;
    const groups = Object.keys(study.groups);
    const group = this.parameters.group ?? this.backend.group ?? null;
    if (group !== null && !groups.includes(String(group))) {
      throw new contstim.Refused(`There is no group ${group} in this study.`);
    }
    screens.waiting("connecting");
    // Repeated requests, also after a reload, have the same nonce
    const nonce = this.keep.nonce() ?? contstim.newParticipant(false);
    this.keep.writeNonce(nonce);
    const wish = {
      record: this.record,
      nonce,
      token: this.token,
      device: contstim.deviceOf(navigator),
      viewport: `${innerWidth}x${innerHeight}`,
      group: group === null ? null : String(group),
      platform: this.platform,
      simulated: this.simulated,
      groups,
    };
    const joined = await contstim.retrying(() => this.backend.join(wish), screens.delayed);
    // The group is in a later wave, which the server has read and this page has not
    if (!this.study.groups[joined.group]) return location.reload();
    this.record = this.merged(joined, wish);
    this.keep.write(this.record);
    this.outbox = new contstim.Outbox(this.backend, this.record, this.keep);
    this.outbox.onWithdrawal = () => this.jsPsych.abortExperiment();
    if (this.backend.asItHappens) this.outbox.send();
    contstim.countTabs(this.outbox);
    stage().innerHTML = "";
    this.addTrials();
  }

  /** Combine the backend's data of a participant with this browser's record of the participant. */
  merged({ answered = [], saved, ...who }, { device, viewport }) {
    const same = this.record?.participant === who.participant;
    if (this.record && !same) this.keep.setAside(this.record);
    const answers = same ? this.record.answers : [];
    const known = new Set(answers.map((answer) => answer.trial_id));
    return {
      device,
      viewport,
      ...(same ? this.record : {}),
      ...who,
      group: String(who.group),
      platform: this.platform,
      simulated: this.simulated,
      study: this.study.id,
      answers: [...answers, ...answered.filter((answer) => !known.has(answer.trial_id))],
      saved: saved ?? answered.map((answer) => answer.trial_id),
    };
  }

  addTrials() {
    const { record, texts, screens, outbox } = this;
    const trials = contstim.presentation(this.study.groups[record.group], record.seed);
    const answered = new Set(record.answers.map((answer) => answer.trial_id));
    const shown = () => {
      const n = record.answers.length;
      this.progressText = texts.label("progress", { n, total: trials.length });
      this.jsPsych.progressBar.progress = Math.min(1, n / trials.length);
      const bar = document.querySelector("#jspsych-progressbar-outer");
      const heard = { "aria-label": this.progressText, "aria-valuenow": n, "aria-valuemax": trials.length };
      for (const [name, value] of Object.entries({ role: "progressbar", ...heard }))
        bar?.setAttribute(name, value);
    };
    const progress = (answer) => {
      outbox.add(answer);
      shown();
    };
    const told = (given) => outbox.tell({ questions: { ...record.questions, ...given } });
    const missed = () => {
      const n = (record.missed ?? 0) + 1;
      outbox.tell({ missed: n, failed: n >= screens.checkAttempts });
      if (record.failed) this.jsPsych.abortExperiment();
      return !record.failed;
    };
    shown();
    const given = record.questions ?? {};
    const main = { screens, texts, trials, answered, given, progress, told, missed };
    this.timeline.push(...contstim.mainTimeline(main));
  }

  /** Wait until the backend has stored every answer; only then is the study complete. */
  async finish() {
    const { screens, record, outbox, backend } = this;
    outbox.onWithdrawal = null;
    screens.waiting("saving");
    addEventListener("beforeunload", this.warn);
    const delayed = (error) => screens.delayed(error, record);
    record.done = await contstim.retrying(async () => {
      while (outbox.waiting) await outbox.send(delayed);
      return backend.complete(record);
    }, delayed);
    removeEventListener("beforeunload", this.warn);
    this.keep.write(record);
    this.end();
  }

  warn = (event) => event.preventDefault();

  withdrawn() {
    removeEventListener("beforeunload", this.warn);
    this.keep.remove();
    this.refuse("withdrawn");
  }

  /** Open an address, in which {sona_id} and similar fields become this participant's values. */
  leave = (address) => {
    if (!/^https?:\/\//i.test(address)) throw new Error(`${address} is not a web address.`);
    const own = (all, name) => encodeURIComponent(this.platform?.[name] ?? all);
    location.assign(address.replace(/\{(\w+)\}/g, own));
  };

  end() {
    this.screens.end(this.record.done, this.leave, this.backend.isPreview ? this.record : null);
  }
}

(async () => {
  const { study } = contstim;
  let experiment;
  try {
    experiment = new Experiment(study, await contstim.loadTexts(study));
    if (typeof initJsPsych === "undefined" || typeof jsPsychHtmlButtonResponse === "undefined") {
      const remedy = "Export it with --vendor (in a study: vendor = true under [export.jspsych]).";
      throw new Error(`jsPsych could not be loaded. This page needs the internet. ${remedy}`);
    }
    await experiment.run();
  } catch (error) {
    if (error.content?.full) return experiment.refuse("full"); // became full after consent
    if (error.content?.withdrawn) return experiment.withdrawn();
    console.error(error);
    const texts = experiment?.texts ?? { label: contstim.labels({}) };
    contstim.screens(study, texts, stage).problem(error, experiment?.record);
  }
  return null;
})();
