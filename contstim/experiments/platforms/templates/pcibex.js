PennController.ResetPrefix(null);
DebugOff();

// The participant's name from the link (?participant=7, or Prolific's ID), or a random name.
const participant = GetURLParameter("participant") || GetURLParameter("PROLIFIC_PID")
    || Date.now().toString(36) + Math.random().toString(36).slice(2, 10);

const sentence = (side, html) =>
    newText(side, `<div style="width: 24em; text-align: center">${html}</div>`);
// Buttons are named 1, 2, …, from left to right.
const labels = LABELS;
const numbers = labels.map((_, at) => String(at + 1));

Sequence("instructions", randomize("trial"), "send", "end");

newTrial("instructions",
    newText("task", TASK).center().print(),
    newText("keys", PRESS).center().print(),
    newButton("begin", BEGIN).center().print().wait()
).log("participant", participant);

Template("trials.csv", row =>
    newTrial(row.label,
        sentence("left", row.left_html),
        sentence("right", row.right_html),
        newCanvas("pair", "56em", "8em")
            .add("center at 25%", "middle at 50%", getText("left"))
            .add("center at 75%", "middle at 50%", getText("right"))
            .center().print(),
        newText("question", QUESTION).center().print(),
        ...numbers.map((number, at) => newButton(number, labels[at]).css("width", "8.5em")),
        numbers.reduce((canvas, number, at) => canvas.add(
            `center at ${Math.round(100 * (at + 0.5) / labels.length)}%`, "middle at 50%", getButton(number)
        ), newCanvas("scale", "56em", "5em")).center().print(),
        newSelector("rating")
            .add(...numbers.map(number => getButton(number)))
            .keys(...numbers)
            .log().once().wait()
    )
    .log("participant", participant)
    .log("trial_id", row.trial_id)
    .log("left", row.left)
    .log("list", row.group)
);

SendResults("send");

newTrial("end",
    newText("thanks", THANKS).center().print(),
    newButton("nothing", "").wait()
).setOption("countsForProgressBar", false);
