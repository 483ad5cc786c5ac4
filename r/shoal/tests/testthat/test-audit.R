test_that("an audit counts people of any data frame, whoever released it", {
  df <- people()[c("sex", "member")]
  smallest <- smallest_class(df, "sex")
  audit <- function(k) {
    suppressWarnings(shoal_audit(df, quasi = "sex", plain = "member", k = k))
  }
  expect_true(audit(smallest)$holds)
  expect_false(audit(smallest + 1)$holds)
  expect_equal(audit(2)$measured, smallest)
})

test_that("an audit with original and trace covers every cell, and finds one that was changed", {
  df <- people()
  trace <- tempfile()
  policy <- shoal_policy(df, quasi = QUASI, other = "drop", k = 5)
  released <- suppressWarnings(shoal_publish(df, policy, trace = trace))
  faults <- function(data) {
    audited <- suppressWarnings(shoal_audit(data, policy, original = df, trace = trace))
    attr(audited, "certificate")$faults$uncovered
  }
  expect_equal(faults(released), 0)
  released$age.years[1] <- "[1, 2]"
  expect_gt(faults(released), 0)
})

test_that("diversity and closeness are promised of every sensitive column", {
  df <- people()
  released <- suppressWarnings(
    shoal_publish(df, quasi = "age.years", sensitive = c("member", "visits"), other = "drop",
                  k = 5, l = 2, t = 0.5)
  )
  found <- split(as.character(released$member), released$age.years)
  expect_gte(min(lengths(lapply(found, unique))), 2)
  models <- vapply(attr(released, "certificate")$promises, `[[`, "", "model")
  expect_equal(sort(models), rep(c("k-anonymity", "l-diversity", "t-closeness"), c(1, 2, 2)))
})

test_that("an audit that can't be made is an error", {
  expect_error(shoal_audit(people(), tempfile()), class = "shoal_error")
})
