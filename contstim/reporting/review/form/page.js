"use strict";

(() => {
  const { data, deciding, element } = review;
  const by = (id) => document.getElementById(id);
  const feed = by("items");

  // Filters: a filter is shown only if its values differ between items

  const unique = (values) => [...new Set(values)];
  const options = {
    condition: unique(data.items.map((item) => item.condition)).map((name) => [name, name]),
    duel: unique(data.items.map((item) => item.duel)).filter(Boolean)
      .map((duel) => [duel, duel.split("\n").map((name) => data.short_names[name]).join(" – ")]),
    group: unique(data.items.map((item) => item.group)).sort((a, b) => a - b)
      .map((group) => [group, `group ${group}`]),
    length: unique(data.items.flatMap((item) => item.lengths)).sort((a, b) => a - b)
      .map((n) => [n, n === 1 ? "1 word" : `${n} words`]),
  };
  for (const [name, choices] of Object.entries(options)) {
    if (choices.length < 2) by(name).parentElement.hidden = true;
    for (const [value, text] of choices) by(name).append(element("option", { value }, text));
  }
  const count = (test) => data.items.filter(test).length;
  by("flag").append(
    element("option", { value: "any" }, `any (${count((item) => item.flags.length)})`),
    element("option", { value: "none" }, `none (${count((item) => !item.flags.length)})`));
  data.flags.forEach(([kind, explanation], place) => {
    const n = count((item) => item.flags.some(([other]) => other === place));
    if (n) by("flag").append(element("option", { value: place }, `${kind} (${n})`));
    by("flag-kinds").append(element("dt", {}, `${kind} (${n})`), element("dd", {}, explanation));
  });
  if (!data.items.some((item) => item.others.length)) {
    for (const option of by("decision").querySelectorAll(".several")) option.remove();
  }
  if (!data.items.some((item) => item.controversiality !== null)) {
    for (const option of by("order").querySelectorAll(".measured")) option.remove();
  }
  if (!data.items.some((item) => item.sureness !== null)) {
    for (const option of by("order").querySelectorAll(".answered")) option.remove();
  }

  // Cards are filled when they come near the viewport, so that large pages open at once

  const cards = new Map(data.items.map((item) => {
    const card = element("article", {
      class: "item empty", tabindex: "-1", "aria-labelledby": `facts-${item.place}`,
    });
    card.dataset.place = item.place;
    return [item, card];
  }));
  const itemOf = (card) => data.items[Number(card.dataset.place)];
  const fill = (card) => {
    if (!card.classList.contains("empty")) return;
    card.classList.remove("empty");
    card.append(...review.card(itemOf(card)));
    review.showDecision(card, deciding.of(itemOf(card)));
  };
  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      fill(target);
      near.unobserve(target);
    }
  }, { rootMargin: "1200px" });
  for (const card of cards.values()) near.observe(card);
  addEventListener("beforeprint", () => [...feed.children].forEach(fill));

  // The list of filtered items; it does not change while decisions are made

  let list = [];
  let current = null;
  const choose = (item, { focus = true } = {}) => {
    if (current) {
      cards.get(current).tabIndex = -1;
      cards.get(current).classList.remove("current");
    }
    current = item ?? null;
    if (!item) return;
    const card = cards.get(item);
    const place = list.indexOf(item);
    for (const beside of list.slice(Math.max(0, place - 2), place + 3)) fill(cards.get(beside));
    card.tabIndex = 0;
    card.classList.add("current");
    if (focus) {
      card.focus({ preventScroll: true });
      card.scrollIntoView({ block: "nearest" });
    }
  };
  const choices = () => Object.fromEntries(
    Object.keys(review.FILTERS).map((name) => [name, by(name).value]));
  const selected = () =>
    review.select(choices(), by("search").value, by("order").value, deciding.of);
  const refresh = () => {
    list = selected();
    feed.replaceChildren(...list.map((item) => cards.get(item)));
    list.forEach((item, place) => {
      cards.get(item).setAttribute("aria-posinset", place + 1);
      cards.get(item).setAttribute("aria-setsize", list.length);
    });
    by("nothing").hidden = list.length > 0;
    choose(list.includes(current) ? current : list[0], { focus: false });
    report();
  };
  const report = () => {
    const n = data.items.length;
    const { decided, rejected } = deciding.counts();
    const [of, some, no, here] = [n, decided, rejected, list.length].map((number) =>
      number.toLocaleString("en"));
    by("count").textContent = `${some} of ${of} decided, ${no} rejected`;
    by("progress").value = decided;
    by("shown").textContent = list.length < n ? `· ${here} shown` : "";
    const [sentence, worries] = deciding.whereabouts();
    by("kept").textContent = sentence;
    by("kept").classList.toggle("worry", worries);
  };
  // The list is stale if decisions have changed the result of the filters
  const reportStale = () => {
    const now = by("decision").value ? new Set(selected()) : new Set(list);
    const gone = list.filter((item) => !now.has(item)).length;
    by("stale").hidden = gone === 0;
    by("stale").textContent = `Hide ${gone} that no longer ${gone === 1 ? "matches" : "match"}`;
  };

  // Decisions

  const act = (card, name, { advance }) => {
    const item = itemOf(card);
    choose(item, { focus: advance });
    const done = () => {
      if (!advance) return;
      const next = list[list.indexOf(item) + 1];
      choose(next ?? item);
    };
    if (name === "reject") {
      openReasons(card, done);
    } else {
      closeReasons();
      deciding.set(item, name === "clear" ? "" : name);
      if (name !== "clear") done();
    }
  };
  let panel = null;
  const closeReasons = () => {
    panel?.remove();
    panel = null;
  };
  const openReasons = (card, done) => {
    closeReasons();
    const item = itemOf(card);
    const reasons = review.reasons(
      deciding.of(item)[1],
      (reason) => {
        closeReasons();
        deciding.set(item, "reject", reason);
        card.focus({ preventScroll: true });
        done();
      },
      () => {
        closeReasons();
        card.focus({ preventScroll: true });
      },
    );
    panel = reasons.panel;
    card.append(panel);
    // On a touch screen, the keyboard would cover the reasons
    if (!matchMedia("(pointer: coarse)").matches) {
      reasons.input.focus({ preventScroll: true });
      reasons.input.select();
    }
    panel.scrollIntoView({ block: "nearest" });
  };
  feed.addEventListener("click", (event) => {
    const card = event.target.closest(".item");
    const button = event.target.closest("[data-act]");
    if (button) act(card, button.dataset.act, { advance: false });
    else if (card && itemOf(card) !== current) choose(itemOf(card), { focus: false });
  });
  feed.addEventListener("focusin", (event) => {
    const card = event.target.closest(".item");
    if (itemOf(card) !== current) choose(itemOf(card), { focus: false });
  });

  const step = (by) => {
    if (!list.length) return;
    const isThere = feed.contains(document.activeElement);
    // The first key only focuses the current item
    const place = list.indexOf(current) + (isThere ? by : 0);
    choose(list[Math.min(Math.max(place, 0), list.length - 1)]);
  };
  const KEYS = {
    j: () => step(1),
    ArrowDown: () => step(1),
    k: () => step(-1),
    ArrowUp: () => step(-1),
    a: () => current && act(cards.get(current), "keep", { advance: true }),
    r: () => current && act(cards.get(current), "reject", { advance: true }),
    c: () => current && act(cards.get(current), "clear", { advance: true }),
    u: () => undo(),
    "/": () => { by("search").focus(); by("search").select(); },
    "?": () => by("help").showModal(),
  };
  const undo = () => {
    closeReasons();
    const item = deciding.undo();
    if (item && list.includes(item)) choose(item);
  };
  addEventListener("keydown", (event) => {
    const isTyped = event.target.matches("input, select, textarea");
    if (event.key === "Escape" && event.target === by("search")) step(0);
    if (isTyped || event.ctrlKey || event.metaKey || event.altKey || by("help").open) return;
    const does = KEYS[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  });

  // The rest of the page

  deciding.listen((id) => {
    for (const [item, card] of cards) {
      if (id === undefined || item.id === id) review.showDecision(card, deciding.of(item));
    }
    report();
    reportStale();
  });
  for (const name of [...Object.keys(review.FILTERS), "order"]) {
    by(name).addEventListener("change", () => { refresh(); reportStale(); });
  }
  by("search").addEventListener("input", refresh);
  by("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") step(0);
  });
  by("stale").addEventListener("click", () => { refresh(); reportStale(); });
  by("download").addEventListener("click", deciding.download);
  by("undo").addEventListener("click", undo);
  by("keys").addEventListener("click", () => by("help").showModal());
  by("name").value = deciding.reviewer();
  by("name").addEventListener("change", () => {
    deciding.rename(by("name").value);
    by("name").value = deciding.reviewer();
  });
  addEventListener("storage", (event) => deciding.reread(event.key, event.newValue));
  addEventListener("beforeunload", (event) => { if (deciding.mayBeLost()) event.preventDefault(); });
  const bar = by("bar");
  new ResizeObserver(() => {
    document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`);
  }).observe(bar);

  by("progress").max = data.items.length;
  refresh();
  deciding.start();
  document.body.dataset.ready = "true";
})();
