# Analysis in R: which models predict people's choices.
#
#     Rscript analysis.R                  everything; mixed models take a minute or two each
#     Rscript analysis.R gpt2 roberta     mixed models of these language models only
#     Rscript analysis.R none             no mixed models
#
# Reads ratings.csv, with a row for each rating (dictionary.csv describes its columns), and contstim's
# results for comparison, accuracies.csv and mixed.csv. Writes accuracy.pdf and comparison.csv.
# The figure needs no packages. Mixed models need ordinal and lme4; brms is used if it is installed.

# ---- data -------------------------------------------------------------------------------------

read_utf8 <- function(file) {
  # All columns are read as text, so that identifiers such as 001 are unchanged
  table <- read.csv(file, colClasses = "character", check.names = FALSE, encoding = "UTF-8",
                    na.strings = character(0))
  Encoding(names(table)) <- "UTF-8"
  table
}
ratings <- read_utf8("ratings.csv")
accuracies <- read_utf8("accuracies.csv")
mixed <- read_utf8("mixed.csv")

ratio_columns <- names(ratings)[startsWith(names(ratings), "log_ratio ")]
models <- substring(ratio_columns, nchar("log_ratio ") + 1)
ratings$rating <- as.numeric(ratings$rating)
ratings[ratio_columns] <- lapply(ratings[ratio_columns], as.numeric)  # nats; may be infinite
numbers <- function(table, columns) {
  table[columns] <- lapply(table[columns], function(x) as.numeric(ifelse(x == "", NA, x)))
  table
}
accuracies <- numbers(accuracies, c("accuracy", "lower_ceiling", "upper_ceiling"))
mixed <- numbers(mixed, c("log_likelihood", "estimate", "standard_error"))

middle <- 3.5  # middle of the scale; higher ratings prefer sentence_2
degrees <- NA  # degrees on each side into which mixed models group a slider's answers
ratings$chosen <- sign(ratings$rating - middle)  # 1 for sentence_2, -1 for sentence_1
ratings$chosen[is.na(ratings$chosen)] <- 0  # a missing answer prefers neither
of_first <- ratings$kind_1 == "synthetic_1" | ratings$kind_2 == "synthetic_1"
ratings$accepts <- ifelse(of_first, ratings$model_2, ratings$model_1)
ratings$rejects <- ifelse(of_first, ratings$model_1, ratings$model_2)
artificial <- any(ratings$simulated == "true")

# ---- accuracy and its noise ceilings -----------------------------------------------------------

# Rows that evaluate a model; in controversial conditions, these are the trials that target the model
evaluates <- function(scope, model) {
  with(ratings, switch(scope,
    "random-natural" = condition == scope,
    "natural-controversial" = ,
    "minimal-pair" = ,
    "synthetic-synthetic" = condition == scope & (model_1 == model | model_2 == model),
    "natural-synthetic-accept" = condition == "natural-synthetic" & accepts == model,
    "natural-synthetic-reject" = condition == "natural-synthetic" & rejects == model
  ))
}

# Means over the trials of each participant, then over the participants of each group
of_groups <- function(values, rows) {
  of_people <- tapply(values, rows$participant, mean)
  group <- tapply(rows$group, rows$participant, function(x) x[1])
  tapply(of_people, group, mean)
}

accuracy_of <- function(scope, model) {
  rows <- ratings[evaluates(scope, model), ]
  if (nrow(rows) == 0) return(NULL)
  votes <- ave(rows$chosen, rows$trial_id, FUN = sum)
  # A tie of the model or of the participants counts one half
  agreement <- function(side) (1 + sign(side) * rows$chosen) / 2
  groups <- of_groups(agreement(rows[[ratio_columns[match(model, models)]]]), rows)
  lower <- of_groups(agreement(votes - rows$chosen), rows)
  upper <- of_groups(agreement(votes), rows)
  sizes <- tapply(rows$participant, rows$group, function(x) length(unique(x)))
  alone <- sizes[names(groups)] < 2  # there are no other participants who could predict this one
  lower[alone] <- upper[alone] <- NA
  list(scope = scope, model = model, groups = groups, accuracy = mean(groups),
       lower = mean(lower, na.rm = TRUE), upper = mean(upper, na.rm = TRUE))
}

# Accepting and rejecting: the model accepts or rejects the synthetic sentence
scopes <- c("random-natural" = "random natural pairs",
            "natural-controversial" = "natural controversial pairs",
            "synthetic-synthetic" = "synthetic controversial pairs",
            "minimal-pair" = "controversial minimal pairs",
            "natural-synthetic-accept" = "natural vs. synthetic, accepting",
            "natural-synthetic-reject" = "natural vs. synthetic, rejecting")
results <- list()
for (scope in names(scopes)) for (model in models) {
  results <- c(results, list(accuracy_of(scope, model)))
}
results <- Filter(Negate(is.null), results)
in_r <- do.call(rbind, lapply(results, function(each) {
  data.frame(scope = each$scope, model = each$model, accuracy = each$accuracy,
             lower_ceiling = each$lower, upper_ceiling = each$upper)
}))

both <- merge(accuracies, in_r, by = c("scope", "model"), suffixes = c(" contstim", " R"))
largest <- function(name) {
  differences <- abs(both[[paste(name, "contstim")]] - both[[paste(name, "R")]])
  max(0, differences, na.rm = TRUE)
}
order_of <- function(table, scope) {
  rows <- table[table$scope == scope, ]
  rows$model[order(-round(rows$accuracy, 9), rows$model)]
}
shown <- intersect(names(scopes), in_r$scope)
for (scope in shown) {
  cat("\n", scopes[[scope]], "\n", sep = "")
  rows <- both[both$scope == scope, ]
  rows <- rows[order(-rows[["accuracy R"]]), c("model", "accuracy contstim", "accuracy R",
                                               "lower_ceiling R", "upper_ceiling R")]
  print(rows, digits = 6, row.names = FALSE)
}
same <- vapply(shown, function(scope) {
  identical(order_of(accuracies, scope), order_of(in_r, scope))
}, logical(1))
cat(sprintf("\naccuracy: the same order of models in %d of %d scopes\n", sum(same), length(same)))
cat(sprintf("accuracy: largest difference %.2g; of ceilings %.2g\n", largest("accuracy"),
            max(largest("lower_ceiling"), largest("upper_ceiling"))))

# ---- figure: dots are groups, lines are means, grey bands are noise ceilings --------------------

device <- if (capabilities("cairo")) cairo_pdf else pdf  # cairo can write all scripts
device("accuracy.pdf", width = 3.2 * length(shown), height = 1.6 + 0.35 * length(models))
layout(matrix(seq_along(shown), nrow = 1))
par(mar = c(4.5, max(4, 0.55 * max(nchar(models))), 3, 1), las = 1)
for (scope in shown) {
  plot(NULL, xlim = c(0, 1), ylim = c(length(models), 1) + c(0.5, -0.5), yaxt = "n", ylab = "",
       xlab = "share of choices predicted", main = scopes[[scope]], cex.main = 0.9)
  axis(2, at = seq_along(models), labels = models, tick = FALSE)
  abline(v = 0.5, lty = 3)
  for (each in Filter(function(each) each$scope == scope, results)) {
    y <- match(each$model, models)
    if (is.finite(each$lower)) {
      rect(each$lower, y - 0.4, each$upper, y + 0.4, col = "grey85", border = "grey85")
    }
    points(each$groups, rep(y, length(each$groups)), pch = 21, bg = "white", col = "grey40",
           cex = 0.8)
    segments(each$accuracy, y - 0.4, each$accuracy, y + 0.4, lwd = 3)
  }
}
who <- if (all(ratings$simulated == "true")) "Artificial participants, no people" else "Some artificial participants"
if (artificial) mtext(who, outer = TRUE, line = -1.2, col = "red")
invisible(dev.off())

# ---- mixed models of ratings -------------------------------------------------------------------

wanted <- commandArgs(trailingOnly = TRUE)
fitted <- mixed[mixed$note == "", ]
if (length(wanted) > 0) fitted <- fitted[fitted$model %in% wanted, ]
for (row in which(mixed$note != "")) {
  cat("no mixed model of ", mixed$model[row], ": ", mixed$note[row], "\n", sep = "")
}
# Catch trials do not evaluate models
tested <- ratings[ratings$condition != "catch" & !is.na(ratings$rating), ]
if (!is.na(degrees)) {
  degree <- ceiling(abs(tested$rating - middle) * degrees / middle)
  tested$rating <- middle + tested$chosen * floor(degree * middle / degrees)
}
# Results must not depend on which sentence is sentence_1. So the bias of participants is a bias towards
# a side of the screen: 1 if sentence_2 was on the left, -1 if sentence_1 was, 0 if it was not recorded.
tested$side <- c("1" = -1, "2" = 1)[tested$left]
tested$side[is.na(tested$side)] <- 0

# Ratios divided by their root mean square; infinite ones are replaced by the largest finite one
predictor <- function(model) {
  x <- tested[[ratio_columns[match(model, models)]]]
  cap <- max(abs(x[is.finite(x)]))
  x <- pmax(pmin(x, cap), -cap)
  # Each trial counts once, whatever its number of ratings
  x / sqrt(mean(x[!duplicated(tested$trial_id)]^2))
}
# Thresholds are symmetric, so clmm needs both ratings of each pair 1 and 6, 2 and 5, 3 and 4. If one of
# them does not occur, a row with a negligible weight is added for it.
never <- setdiff(2 * middle - tested$rating, tested$rating)
weights <- rep(c(1, 1e-9), c(nrow(tested), length(never)))
with_never <- function(rows) {
  rows <- rows[c(seq_len(nrow(rows)), rep(1, length(never))), ]
  rows$rating[weights < 1] <- never
  rows$ordered <- factor(rows$rating, ordered = TRUE)
  rows
}

# For choices, and for ratings with one degree of confidence, the middle is the only threshold. These
# models are logistic, because for a logit, but not for a probit, lme4 approximates the likelihood in
# the same way as contstim.
two_answers <- length(unique(abs(tested$rating - middle))) == 1
tested$second <- ifelse(tested$chosen == 0, NA, as.integer(tested$chosen > 0))
package <- if (two_answers) "lme4" else "ordinal"

fit_choices <- function(rows) {
  lme4::glmer(update(formula, second ~ 0 + .), data = rows, family = binomial,
              control = lme4::glmerControl(optimizer = "bobyqa"))
}

comparison <- data.frame()
if (nrow(fitted) > 0 && !requireNamespace(package, quietly = TRUE)) {
  cat('no mixed models: install.packages("', package, '")\n', sep = "")
} else if (nrow(fitted) > 0) {
  # Participants differ in their bias towards a side and in how closely they follow the model
  formula <- ordered ~ x + (0 + side | participant) + (0 + x | participant) + (1 | trial_id)
  unsided <- sum(tested$side == 0)
  if (unsided == nrow(tested)) formula <- ordered ~ x + (0 + x | participant) + (1 | trial_id)
  if (unsided > 0) {
    cat(sprintf("\n%d of %d ratings have no side (column left): no bias of participants towards a side",
                unsided, nrow(tested)), "is estimated there\n")
  }
  for (row in seq_len(nrow(fitted))) {
    ours <- fitted[row, ]
    tested$x <- predictor(ours$model)
    model <- try(suppressMessages(suppressWarnings(if (two_answers) {
      fit_choices(tested)
    } else {
      ordinal::clmm(formula, data = with_never(tested), weights = weights, link = "probit",
                    threshold = "symmetric2")
    })), silent = TRUE)
    if (inherits(model, "try-error")) {
      cat("R could not fit ", ours$model, ": ", model, "\n", sep = "")
      next
    }
    errors <- suppressWarnings(try(sqrt(vcov(model)["x", "x"]), silent = TRUE))
    comparison <- rbind(comparison, data.frame(
      model = ours$model, log_likelihood_contstim = ours$log_likelihood,
      log_likelihood_R = as.numeric(logLik(model)), estimate_contstim = ours$estimate,
      estimate_R = if (two_answers) lme4::fixef(model)[["x"]] else coef(model)[["x"]],
      standard_error_contstim = ours$standard_error,
      standard_error_R = if (inherits(errors, "try-error")) NA else errors))
  }
}
if (nrow(comparison) > 0) {
  comparison <- comparison[order(-comparison$log_likelihood_R), ]
  cat("\nmixed models (", if (two_answers) "logit" else "probit",
      "), the effect of a ratio of typical size\n", sep = "")
  print(comparison, digits = 6, row.names = FALSE)
  by_contstim <- comparison$model[order(-comparison$log_likelihood_contstim)]
  cat(sprintf("\nmixed models: %s order of models\n",
              if (identical(by_contstim, comparison$model)) "the same" else "another"))
  gap <- abs(comparison$log_likelihood_contstim - comparison$log_likelihood_R)
  cat(sprintf("mixed models: largest difference of log-likelihoods %.2g\n", max(gap)))
  write.csv(comparison, "comparison.csv", row.names = FALSE)

  # The best model again: a fit to the choices alone, and a Bayesian fit to the ratings
  best <- comparison$model[1]
  tested$x <- predictor(best)
  if (requireNamespace("lme4", quietly = TRUE) && !two_answers) {
    choices <- try(suppressMessages(suppressWarnings(fit_choices(tested))), silent = TRUE)
    cat("\nchoices on the ratios of ", best, " (lme4::glmer, log odds)\n", sep = "")
    if (inherits(choices, "try-error")) cat(choices) else print(summary(choices)$coefficients)
  }
  if (requireNamespace("brms", quietly = TRUE) && !two_answers) {
    # The thresholds of brms are flexible, so they depend on which sentence is sentence_1
    tested$ordered <- factor(tested$rating, ordered = TRUE)
    bayes <- brms::brm(formula, data = tested, family = brms::cumulative("probit"), seed = 1)
    print(bayes)
  }
}
cat("\naccuracy.pdf holds the figure", if (nrow(comparison) > 0) ", comparison.csv the mixed models",
    ".\n", sep = "")
