PennController.ResetPrefix(null);
DebugOff();

// The name that a link gives (…?participant=7 or Prolific's own), or one drawn here.
const participant = GetURLParameter("participant") || GetURLParameter("PROLIFIC_PID")
    || Date.now().toString(36) + Math.random().toString(36).slice(2, 10);

const sentence = (side, html) =>
    newText(side, `<div style="width: 24em; text-align: center">${html}</div>`);
const button = (number, label) => newButton(number, label).css("width", "8.5em");

Sequence("instructions", randomize("trial"), "send", "end");

newTrial("instructions",
    newText("task", "You will see pairs of sentences, one pair after the other. QUESTION"
        + " There are no right or wrong answers: we want to know what you think.")
        .center().print(),
    newText("keys", "Click one of six buttons, or press a key from 1 (left) to 6 (right).")
        .center().print(),
    newButton("begin", "Begin").center().print().wait()
).log("participant", participant);

Template("trials.csv", row =>
    newTrial(row.label,
        sentence("left", row.left_html),
        sentence("right", row.right_html),
        newCanvas("pair", "56em", "8em")
            .add("center at 25%", "middle at 50%", getText("left"))
            .add("center at 75%", "middle at 50%", getText("right"))
            .center().print(),
        newText("question", "QUESTION").center().print(),
        button("1", "LABEL_1"),
        button("2", "LABEL_2"),
        button("3", "LABEL_3"),
        button("4", "LABEL_4"),
        button("5", "LABEL_5"),
        button("6", "LABEL_6"),
        newCanvas("scale", "56em", "5em")
            .add("center at 9%", "middle at 50%", getButton("1"))
            .add("center at 25%", "middle at 50%", getButton("2"))
            .add("center at 41%", "middle at 50%", getButton("3"))
            .add("center at 59%", "middle at 50%", getButton("4"))
            .add("center at 75%", "middle at 50%", getButton("5"))
            .add("center at 91%", "middle at 50%", getButton("6"))
            .center().print(),
        newSelector("rating")
            .add(getButton("1"), getButton("2"), getButton("3"),
                 getButton("4"), getButton("5"), getButton("6"))
            .keys("1", "2", "3", "4", "5", "6")
            .log().once().wait()
    )
    .log("participant", participant)
    .log("trial_id", row.trial_id)
    .log("left", row.left)
    .log("list", row.group)
);

SendResults("send");

newTrial("end",
    newText("thanks", "Thank you. Your answers have been saved; you may close this page.")
        .center().print(),
    newButton("nothing", "").wait()
).setOption("countsForProgressBar", false);
