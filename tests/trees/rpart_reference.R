# Writes tests/trees/rpart_reference.json: what rpart makes of tables that test_cart.py draws again, bit by bit.
#
#   Rscript tests/trees/rpart_reference.R tests/trees/rpart_reference.json 44 2024
#
# Needs R and rpart only. The numbers come from a Lehmer generator, whose products are exact in doubles, so that the
# file holds seeds and results but no tables. The arguments: where to write, how many tables, the first seed.

library(rpart)

state <- 1
uniform <- function(n) {
  out <- numeric(n)
  for (i in seq_len(n)) {
    state <<- (16807 * state) %% 2147483647
    out[i] <- state / 2147483647
  }
  out
}
whole <- function(least, most) least + floor(uniform(1) * (most - least + 1))
normal <- function(n) {
  u <- matrix(uniform(12 * n), nrow = 12)
  total <- numeric(n)
  for (k in 1:12) total <- total + u[k, ]
  total - 6
}

# One column of n0 original and n1 synthetic rows; shift moves the synthetic ones.
draw <- function(kind, n0, n1, shift) {
  n <- n0 + n1
  y <- c(rep(0, n0), rep(1, n1))
  z <- normal(n) + shift * y
  switch(kind,
    normal = z,
    ties = floor(2 * z),
    few = as.numeric(z > 1) + as.numeric(z > -0.5),
    mirror = list(-z, z),
    close = 1 + floor(1.5 * z + 8) * 2^-52,
    huge = floor(z * 4) * 1e307,
    constant = rep(3, n),
    logical = z > 0.3,
    date = as.Date("2020-02-27") + floor(10 * z),
    ordered5 = factor(pmin(5, pmax(1, floor(z + 3))), levels = 1:5, ordered = TRUE),
    factor3 = factor(pmin(3, pmax(1, floor(z + 2.5))), levels = 1:3),
    factor12 = factor(1 + (floor(3 * z) + 36) %% 12, levels = 1:12),
    factor40 = factor(1 + (floor(12 * z) + 400) %% 40, levels = 1:40)
  )
}
kinds <- c("normal", "ties", "few", "mirror", "close", "huge", "constant", "logical", "date", "ordered5", "factor3",
           "factor12", "factor40")

number <- function(x) paste0(ifelse(is.infinite(x), ifelse(x > 0, "Infinity", "-Infinity"), sprintf("%.17g", x)))
array <- function(x) paste0("[", paste(x, collapse = ","), "]")
text <- function(x) paste0('"', x, '"')

# The nodes as rpart keeps them: number, original and synthetic rows, complexity, and for a split the column, the
# improvement, and -1 or 1 for where smaller values go with the threshold, or the side of each level.
node_rows <- function(fit) {
  frame <- fit$frame
  at <- 0
  rows <- character(nrow(frame))
  for (i in seq_len(nrow(frame))) {
    counts <- frame$yval2[i, 2:3]
    row <- c(row.names(frame)[i], counts[1], counts[2], number(frame$complexity[i]))
    if (frame$var[i] != "<leaf>") {
      at <- at + 1
      split <- fit$splits[at, ]
      column <- as.integer(substring(as.character(frame$var[i]), 2))
      how <- if (abs(split["ncat"]) == 1) c(split["ncat"], number(split["index"])) else
        array(fit$csplit[split["index"], 1:split["ncat"]] - 2)
      row <- c(row, column, number(split["improve"]), how)
    }
    rows[i] <- array(row)
  }
  rows
}

fit_case <- function(n0, n1, chosen, shifts, cp, minsplit, minbucket, maxdepth) {
  seed <- state
  columns <- list()
  for (j in seq_along(chosen)) {
    drawn <- draw(chosen[j], n0, n1, shifts[j])
    columns <- c(columns, if (is.list(drawn)) drawn else list(drawn))
  }
  names(columns) <- paste0("x", seq_along(columns))
  data <- data.frame(columns)
  data$synthetic <- factor(c(rep(0, n0), rep(1, n1)))
  control <- rpart.control(cp = cp, minsplit = minsplit, minbucket = minbucket, maxdepth = maxdepth, xval = 0,
                           maxcompete = 0, maxsurrogate = 0)
  fit <- rpart(synthetic ~ ., data, method = "class", control = control)
  if (nrow(data) < 500) {  # competitors and surrogates change nothing where no value is missing
    usual <- rpart(synthetic ~ ., data, method = "class", cp = cp, minsplit = minsplit, minbucket = minbucket,
                   maxdepth = maxdepth, xval = 0)
    stopifnot(identical(usual$frame[c("var", "n", "dev", "complexity")], fit$frame[c("var", "n", "dev", "complexity")]))
  }
  share <- predict(fit)[, 2]
  pmse <- mean((share - n1 / (n0 + n1))^2)
  used <- fit$variable.importance
  paste0('{"seed":', sprintf("%.0f", seed), ',"original":', n0, ',"synthetic":', n1, ',"kinds":', array(text(chosen)), ',"shifts":',
         array(number(shifts)), ',"cp":', number(cp), ',"minsplit":', minsplit, ',"minbucket":', minbucket,
         ',"maxdepth":', maxdepth, ',"pmse":', number(pmse), ',"importance":{',
         if (length(used)) paste(text(names(used)), number(used), sep = ":", collapse = ","), '},\n "nodes":',
         array(node_rows(fit)), "}")
}

random_case <- function(seed) {
  state <<- seed
  uniform(10)
  n0 <- whole(1, 140)
  n1 <- if (uniform(1) < 0.5) n0 else whole(1, 140)
  chosen <- kinds[1 + floor(uniform(whole(1, 4)) * length(kinds))]
  shifts <- floor(uniform(length(chosen)) * 4) / 4
  minsplit <- c(2, 5, 20, 20)[whole(1, 4)]
  minbucket <- c(1, 2, 7, 7)[whole(1, 4)]
  cp <- c(0, 0.001, 0.01, 0.03)[whole(1, 4)]
  maxdepth <- c(30, 30, 3, 1)[whole(1, 4)]
  fit_case(n0, n1, chosen, shifts, cp, minsplit, minbucket, maxdepth)
}

# Two samples of the same bivariate normal law, of the size of the paper's simulation.
large_case <- function(seed, n0, n1, cp) {
  state <<- seed
  fit_case(n0, n1, c("normal", "ties", "normal"), c(0, 0, 0), cp, 20, 7, 30)
}

arguments <- commandArgs(trailingOnly = TRUE)
seeds <- as.integer(arguments[3]) + seq_len(as.integer(arguments[2])) - 1
cases <- vapply(seeds, random_case, "")
if (length(arguments) == 3) {
  cases <- c(cases, large_case(7, 3000, 3000, 0.001), large_case(8, 1500, 4000, 0.002))
}
versions <- paste0(R.version.string, ", rpart ", packageVersion("rpart"))
writeLines(paste0('{"made_with":', text(versions), ',"cases":[\n', paste(cases, collapse = ",\n"), "\n]}"),
           arguments[1])
