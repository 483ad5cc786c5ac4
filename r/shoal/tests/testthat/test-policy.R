test_that("the type of a column says how it is coarsened", {
  df <- people()
  own <- shoal_policy(df, quasi = c(QUASI, "born", "member"), k = 5)$attributes
  expect_equal(own$age.years$type, "number")
  expect_lte(own$age.years$domain[1], min(df$age.years))
  expect_gte(own$age.years$domain[2], max(df$age.years))
  expect_equal(unlist(own$grade$order), levels(df$grade))
  expect_equal(own$zip$hierarchy, list(prefix = 5L))
  expect_equal(own$born$hierarchy, list(dates = c("day", "month", "year")))
  expect_equal(own$member, list(role = "quasi"))
})

test_that("settings of a column go before its type", {
  own <- shoal_policy(people(), quasi = list(age.years = list(hierarchy = "ages.csv"),
                                             third = list(round = 5)), k = 5)$attributes
  expect_equal(own$age.years, list(role = "quasi", hierarchy = "ages.csv"))
  expect_equal(own$third[c("type", "round")], list(type = "number", round = 5))
})

test_that("numbers are written with as few digits as say them again", {
  set.seed(1)
  numbers <- c(0.1, 1 / 3, 1e-300, 123456789.123456789, -2^53, rnorm(1010) * 10^(-50:50))
  expect_equal(as.numeric(encode(numbers)), numbers, tolerance = 0)
  expect_equal(encode(c(0.1, 100000, NA)), c("0.1", "100000", ""))
  expect_equal(encode(c(100000L, NA)), c("100000", ""))
})
