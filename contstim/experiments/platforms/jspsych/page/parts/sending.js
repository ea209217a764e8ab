"use strict";

/** A permanent error: the request is not retried. */
contstim.Refused = class extends Error {};

/** The page is opened outside of the platform for which it was exported. */
contstim.Misplaced = class extends contstim.Refused {};

/** A temporary error: the request is retried, after `seconds` if the backend names a time. */
contstim.Passing = class extends Error {
  constructor(message, seconds) {
    super(message);
    this.seconds = seconds;
  }
};

const PATIENCE = { first: 0.5, longest: 30, request: 20 }; // seconds

/** Send and receive JSON; throw Refused or Passing if the response is not a success. */
contstim.post = async (address, body, headers = {}) => {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), PATIENCE.request * 1000);
  const text = JSON.stringify(body);
  let answer;
  let content;
  try {
    answer = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: text,
      signal: stop.signal,
      keepalive: text.length < 50_000, // outlives a tab that closes; browsers allow 64 KiB
    });
    content = await answer.json().catch(() => ({}));
  } catch (error) {
    throw new contstim.Passing(String(error));
  } finally {
    clearTimeout(timer);
  }
  if (answer.ok) return content;
  const reason = content.message ?? content.error ?? `HTTP ${answer.status}`;
  if (answer.status === 429 || answer.status === 408 || answer.status >= 500) {
    throw new contstim.Passing(reason, Number(answer.headers.get("Retry-After")) || undefined);
  }
  throw Object.assign(new contstim.Refused(reason), { status: answer.status, content });
};

/** Retry until success or refusal, with increasing waits of up to half a minute. */
contstim.retrying = async (work, whileWaiting = () => {}) => {
  for (let failures = 0; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof contstim.Refused) throw error;
      whileWaiting(error);
      const usual = Math.min(PATIENCE.longest, PATIENCE.first * 2 ** failures);
      const seconds = error.seconds ?? usual * (0.75 + Math.random() / 2);
      await contstim.pause(seconds * 1000);
    }
  }
};

/** Wait for a time, or until the browser is online again. */
contstim.pause = (milliseconds) =>
  new Promise((resolve) => {
    const timer = setTimeout(finish, milliseconds);
    function finish() {
      clearTimeout(timer);
      removeEventListener("online", finish);
      resolve();
    }
    addEventListener("online", finish);
  });

/** The queue of answers for the backend. The local copy keeps answers until the backend has stored them. */
contstim.Outbox = class {
  constructor(backend, record, keep) {
    Object.assign(this, { backend, record, keep, problem: null, running: null });
  }

  get pending() {
    const saved = new Set(this.record.saved);
    return this.record.answers.filter((answer) => !saved.has(answer.trial_id));
  }

  get waiting() {
    return contstim.isUnsent(this.record);
  }

  add(answer) {
    if (this.record.withdrawn) return;
    this.record.answers.push(answer);
    this.keep.write(this.record);
    if (this.backend.asItHappens) this.send();
  }

  /** Store other data of the participant, which every request to the backend contains. */
  tell(known) {
    if (this.record.withdrawn) return;
    Object.assign(this.record, known);
    if (this.backend.asItHappens) this.record.told = (this.record.told ?? 0) + 1;
    this.keep.write(this.record);
    if (this.backend.asItHappens) this.send();
  }

  /** Send the unsent answers, unless sending has begun; the promise settles after the last request. */
  send(whileWaiting) {
    this.whileWaiting = whileWaiting ?? this.whileWaiting;
    this.running ??= this.drain().finally(() => (this.running = null));
    this.running.catch((problem) => {
      this.problem = problem;
      if (problem.content?.withdrawn) this.withdraw();
    });
    return this.running;
  }

  /** Delete the local copy of a participant who withdrew, and stop sending. */
  withdraw() {
    this.record.withdrawn = true;
    this.keep.remove();
    this.onWithdrawal?.();
  }

  async drain() {
    while (this.waiting) {
      const { told } = this.record; // may increase while a request runs
      const saved = await contstim.retrying(
        () => this.backend.save(this.record, this.pending),
        (error) => this.whileWaiting?.(error),
      );
      this.record.saved.push(...saved.filter((name) => !this.record.saved.includes(name)));
      this.record.heard = told;
      this.keep.write(this.record);
    }
  }
};
