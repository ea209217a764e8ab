"use strict";

/** Create an element; strings among its children become text nodes, never HTML. */
review.element = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

/** Create an element with the short name of a model, and the full name as tooltip. */
review.model = (name, tag = "span") =>
  review.element(tag, { title: name, class: "model" }, review.data.short_names[name] ?? name);

/** Mark the changed words of a sentence, with descriptions as tooltips; the end mark stays
 * unmarked. */
review.sentence = (text, changed) => {
  const words = text.slice(0, -1).split(" ");
  const parts = words.flatMap((word, place) => [
    place ? " " : "",
    place in changed ? review.element("mark", { title: changed[place] }, word) : word,
  ]);
  return [...parts, text.slice(-1)];
};

/** Create the content of an item's card; `data-act` is the action of a button on its card. */
review.card = (item) => {
  const { element, model } = review;
  const { models, flags } = review.data;
  const head = element("p", { class: "facts", id: `facts-${item.place}` });
  const facts = [element("b", {}, `${item.place + 1}`)];
  if (item.condition) facts.push(item.condition);
  if (item.duel) facts.push([model(item.models[0]), " against ", model(item.models[1])]);
  if (item.group) facts.push(`group ${item.group}`);
  if (item.measure) facts.push(item.measure);
  if (item.answers) facts.push(item.answers);
  facts.push(element("span", { class: "id" }, item.id));
  facts.forEach((fact, place) => head.append(place ? " · " : "", ...[fact].flat()));

  const table = element("table", { class: "sentences" });
  if (item.columns.length) {
    const names = item.columns.map((place) => {
      const cell = model(models[place], "th");
      cell.scope = "col";
      if (item.models.includes(models[place])) cell.classList.add("own");
      return cell;
    });
    table.append(element("thead", {}, element("tr", {},
      element("td", {}), element("td", {}), ...names)));
  }
  const body = element("tbody");
  item.sentences.forEach((text, row) => {
    const [kind, rejecting] = item.labels[row];
    const label = element("th", { scope: "row", class: "label" }, kind);
    if (rejecting) label.append(element("small", {}, model(rejecting), " rejects"));
    const numbers = (item.log_probs[row] ?? []).map((number, column) => element("td", {
      class: "number", "data-model": review.data.short_names[models[item.columns[column]]],
    }, item.preferred[row][column] ? element("b", {}, number) : number));
    const sentence = review.sentence(text, item.changed[row]);
    body.append(element("tr", {},
      label, element("td", { class: "sentence", dir: "auto" }, ...sentence), ...numbers));
  });
  table.append(body);

  const parts = [head, element("div", { class: "wide" }, table)];
  if (item.flags.length) {
    parts.push(element("ul", { class: "flags", "aria-label": "Flags" },
      ...item.flags.map(([kind, detail]) =>
        element("li", {}, element("b", { title: flags[kind][1] }, flags[kind][0]), " ", detail))));
  }
  if (item.others.length) {
    const VERBS = { keep: "keeps", reject: "rejects" };
    parts.push(element("ul", { class: "others", "aria-label": "Other reviewers" },
      ...item.others.map(([reviewer, decision, reason]) => element("li", { class: decision },
        element("b", {}, reviewer), ` ${VERBS[decision]}${reason ? `: ${reason}` : ""}`))));
  }
  const button = (act, text, key) =>
    element("button", { type: "button", "data-act": act }, text, " ", element("kbd", {}, key));
  parts.push(element("div", { class: "decide" },
    button("keep", "Keep", "a"), button("reject", "Reject …", "r"), button("clear", "Clear", "c"),
    element("span", { class: "decision" })));
  return parts;
};

/** Update a card to the decision about its item. */
review.showDecision = (card, [decision, reason]) => {
  card.dataset.decision = decision;
  const line = card.querySelector(".decision");
  if (!line) return;
  const WORDS = { keep: "✓ kept", reject: "✗ rejected" };
  line.textContent = decision ? WORDS[decision] + (reason ? `: ${reason}` : "") : "";
  for (const button of card.querySelectorAll("[data-act]")) {
    const act = button.dataset.act;
    if (act === "clear") button.hidden = !decision;
    else button.setAttribute("aria-pressed", String(act === decision));
  }
};

/** Create a row of reasons to select or type; call `choose` with the reason, or `cancel`. */
review.reasons = (before, choose, cancel) => {
  const { element } = review;
  const input = element("input", {
    type: "text", maxlength: "500", "aria-label": "Reason: a digit, or type and press Enter",
    placeholder: "or type a reason, then Enter", autocomplete: "off",
  });
  input.value = before;
  const buttons = review.data.reasons.map((reason, place) => {
    const button = element("button", { type: "button" }, element("kbd", {}, `${place + 1}`),
      ` ${reason}`);
    button.addEventListener("click", () => choose(reason));
    return button;
  });
  const done = element("button", { type: "button", class: "main" }, "Reject");
  done.addEventListener("click", () => choose(input.value));
  const away = element("button", { type: "button" }, "Cancel");
  away.addEventListener("click", cancel);
  const panel = element("div", { class: "reasons", role: "group", "aria-label": "Reject, because" },
    element("span", {}, "Reject, because"), ...buttons, input, done, away);
  panel.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.isComposing) return;
    if (event.key === "Escape") cancel();
    else if (event.target === input && event.key === "Enter") choose(input.value);
    else if (!event.ctrlKey && !event.metaKey && !event.altKey) {
      // A digit selects a reason only in an empty field, since a reason may be "2 typos"
      const isFresh = input.value.length === input.selectionEnd - input.selectionStart;
      const picked = /^[1-9]$/.test(event.key) && review.data.reasons[Number(event.key) - 1];
      if (!picked || !isFresh) return;
      choose(picked);
    } else return;
    event.preventDefault();
  });
  return { panel, input };
};
