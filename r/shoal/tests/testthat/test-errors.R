test_that("an error of the command is an R error with its line and status, and leaves no file", {
  before <- list.files(tempdir())
  failure <- expect_error(published(people(), k = 5000), class = "shoal_error")
  expect_match(conditionMessage(failure), "^shoal: promise 'k-anonymity': k = 5000 asked, 200 ")
  expect_equal(failure$status, 3)
  expect_equal(list.files(tempdir()), before)
})

test_that("an error names files as the caller knows them", {
  failure <- expect_error(shoal_publish(people(), list(version = 1, nonsense = 2)))
  expect_false(grepl(tempdir(), conditionMessage(failure), fixed = TRUE))
  expect_match(conditionMessage(failure), "policy, nonsense: is not a known key", fixed = TRUE)
  expect_false(grepl(".json", conditionMessage(failure), fixed = TRUE))
  own <- file.path(tempdir(), "policy.json")
  on.exit(unlink(own))
  writeLines('{"version": 1, "nonsense": 2}', own)
  expect_error(shoal_publish(people(), own), "policy '.+/policy.json', nonsense")
})

test_that("words without a promise are refused by the words that make one", {
  expect_error(shoal_publish(people(), quasi = "sex", other = "drop"), "no promise: give k, l, t,")
  policy <- shoal_policy(people(), quasi = "sex", other = "drop")
  expect_error(shoal_publish(people(), policy), "policy, promises: is empty")
})

test_that("columns that text can't bring back are refused together, and no cell is shown", {
  df <- data.frame(when = Sys.time(), x = c(1, Inf, NaN), day = .Date(c(1, 2, Inf)), text = c("", NA, "secret"))
  df$many <- list(1, 2, 3)
  df$wide <- matrix(1:6, 3)
  failure <- expect_error(shoal_publish(df, quasi = "x", k = 2, other = "drop"))
  for (name in names(df)) expect_match(conditionMessage(failure), paste0("'", name, "'"))
  expect_match(conditionMessage(failure), "2 values that are infinite or NaN")
  expect_false(grepl("secret", conditionMessage(failure)))
})

test_that("columns that are absent or named twice are refused together", {
  expect_error(shoal_policy(people(), quasi = c("sex", "nope"), sensitive = "sex", k = 2),
               "not in the data frame: 'nope'.*\n.*named twice: 'sex'")
})

test_that("words beside a policy are refused", {
  policy <- shoal_policy(people(), quasi = "sex", other = "drop", k = 5)
  expect_error(shoal_publish(people(), policy, quasi = "zip"), "leave out quasi")
  expect_error(shoal_publish(people(), c("sex", "zip"), k = 2), "named by quasi =")
})

test_that("a missing command is said with how to install and name it", {
  old <- options(shoal.command = "/nowhere/shoal")
  on.exit(options(old))
  expect_error(published(people()), "/nowhere/shoal.*pip install.*shoal.command.*SHOAL")
})

test_that("the option names a command with arguments of its own", {
  old <- options(shoal.command = c("echo", "--said"))
  on.exit(options(old))
  expect_equal(readLines(run_command(tempdir(), "profile")), "--said profile --json --quiet")
})
