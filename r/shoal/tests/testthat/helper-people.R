# Invented people with a column of every kind that a data frame brings.
people <- function(n = 200) {
  set.seed(7)
  grades <- c("low", "mid", "h\u00f6ch,st \"A\"\nline")
  data.frame(
    age.years = sample(18:90, n, TRUE),
    sex = factor(sample(c("m", "f", NA), n, TRUE), levels = c("m", "f", "never seen")),
    grade = factor(sample(grades, n, TRUE), grades, ordered = TRUE),
    zip = sprintf("%05d", sample(1000:1030, n, TRUE)),
    born = as.Date("1990-01-01") + sample(c(0:9000, NA), n, TRUE),
    third = sample(c(1:n, NA), n) / 3,
    tiny.big = sample(c(1e-7, 1e20, 123456.789), n, TRUE),
    visits = sample(c(0L, 100000L, NA), n, TRUE),
    member = sample(c(TRUE, FALSE, NA), n, TRUE),
    "full name" = paste("p", seq_len(n)),
    check.names = FALSE
  )
}

QUASI <- c("age.years", "sex", "grade", "zip")
PLAIN <- c("born", "third", "tiny.big", "visits", "member")

published <- function(df, ..., k = 5) {
  suppressWarnings(shoal_publish(df, quasi = QUASI, plain = PLAIN, drop = "full name", k = k, ...))
}

smallest_class <- function(df, columns) min(table(do.call(paste, c(df[columns], sep = "\r"))))

# The rows of the original behind the rows that were published.
sources <- function(trace) {
  lines <- lapply(readLines(trace), jsonlite::fromJSON)
  rows <- vapply(lines, `[[`, 0L, "row")
  vapply(lines, `[[`, 0L, "seq")[order(rows)] + 1L
}
