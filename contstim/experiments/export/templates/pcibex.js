PennController.ResetPrefix(null);
DebugOff();

// The name that a link gives (…?participant=7 or Prolific's own), or one drawn here.
const participant = GetURLParameter("participant") || GetURLParameter("PROLIFIC_PID")
    || Date.now().toString(36) + Math.random().toString(36).slice(2, 10);

Sequence("instructions", randomize("trial"), "send", "end");

newTrial("instructions",
    newText("task", "You will read pairs of sentences. QUESTION There are no wrong answers.")
        .center().print(),
    newText("keys", "Click one of six buttons, or press a key from 1 (left) to 6 (right).")
        .center().print(),
    newButton("begin", "Begin").center().print().wait()
).log("participant", participant);

Template("trials.csv", row =>
    newTrial(row.label,
        newText("left", row.left_html).css("width", "22em").css("text-align", "center"),
        newText("right", row.right_html).css("width", "22em").css("text-align", "center"),
        newCanvas("pair", "56em", "8em")
            .add("center at 25%", "middle at 50%", getText("left"))
            .add("center at 75%", "middle at 50%", getText("right"))
            .center().print(),
        newText("question", "QUESTION").center().print(),
        newButton("1", "LABEL_1"), newButton("2", "LABEL_2"), newButton("3", "LABEL_3"),
        newButton("4", "LABEL_4"), newButton("5", "LABEL_5"), newButton("6", "LABEL_6"),
        newCanvas("scale", "56em", "4em")
            .add("center at 8%", "middle at 50%", getButton("1"))
            .add("center at 25%", "middle at 50%", getButton("2"))
            .add("center at 42%", "middle at 50%", getButton("3"))
            .add("center at 58%", "middle at 50%", getButton("4"))
            .add("center at 75%", "middle at 50%", getButton("5"))
            .add("center at 92%", "middle at 50%", getButton("6"))
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
