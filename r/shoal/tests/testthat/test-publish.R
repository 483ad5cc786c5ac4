test_that("columns that are not coarsened come back exactly, row by row", {
  df <- people()
  trace <- tempfile()
  released <- published(df, trace = trace)
  expected <- df[sources(trace), PLAIN]
  rownames(expected) <- NULL
  expect_identical(data.frame(lapply(released[PLAIN], identity)), expected)
})

test_that("every published combination belongs to k people", {
  released <- published(people(), k = 7)
  expect_gte(smallest_class(released, QUASI), 7)
  expect_equal(attr(released, "certificate")$classes$min, smallest_class(released, QUASI))
  expect_equal(names(released), c(QUASI, PLAIN))
})

test_that("a coarsened factor is a factor with its order, and has no level that is not published", {
  df <- people()
  df$sex[1] <- "never seen" # nobody else, so nobody may read it
  released <- published(df)
  expect_s3_class(released$sex, "factor")
  expect_setequal(levels(released$sex), unique(as.character(released$sex[!is.na(released$sex)])))
  expect_false("never seen" %in% levels(released$sex))
  expect_equal(intersect(levels(released$sex), c("m", "f")), c("m", "f"))
})

test_that("what no cell says is not handed on: names of cells, times of days, levels' contrasts", {
  df <- data.frame(sex = rep(c("f", "m"), each = 20))
  df$score <- setNames(rep(1:4, 10), paste("person", 1:40))
  df$day <- .Date(19000.75) + rep(0:1, 20)
  df$town <- factor(rep("a", 40), c("a", "hidden"))
  contrasts(df$town) <- contr.sum(2)
  released <- suppressWarnings(
    shoal_publish(df, quasi = c("sex", "town"), plain = c("score", "day"), k = 10)
  )
  expect_null(names(released$score))
  expect_setequal(unclass(released$day), c(19000, 19001))
  expect_equal(attributes(released$town), list(levels = "a", class = "factor"))
})

test_that("a level that is NA is a missing value", {
  df <- data.frame(sex = addNA(factor(rep(c("f", NA), each = 20))), id = 1)
  released <- suppressWarnings(shoal_publish(df, quasi = "sex", plain = "id", k = 10))
  expect_equal(sum(is.na(released$sex)), 20)
})

test_that("a column of which every class shows one value keeps its type", {
  df <- data.frame(year.of = rep(c(2001L, 2002L), each = 30),
                   day = rep(as.Date(c("2024-01-01", "2024-02-29")), each = 30),
                   grade = factor(rep(c("b", "a"), each = 30), c("b", "a"), ordered = TRUE))
  released <- suppressWarnings(shoal_publish(df, quasi = names(df), k = 10))
  expect_identical(lapply(released, class), lapply(df, class))
  expect_setequal(released$day, df$day)
  expect_identical(levels(released$grade), c("b", "a"))
})

test_that("rows without any value are nobody, and a warning says so", {
  df <- data.frame(sex = rep(c("f", NA), each = 20))
  warned <- capture_warnings(released <- shoal_publish(df, quasi = "sex", k = 10))
  expect_match(warned, "20 rows have no value and are left out", all = FALSE)
  expect_equal(nrow(released), 20)
})

test_that("numbers that the policy adds are numbers", {
  policy <- shoal_policy(people(), quasi = "age.years", other = "drop", k = 5)
  policy$write <- list(numbers = list("lo", "mid"))
  released <- suppressWarnings(shoal_publish(people(), policy))
  expect_type(released$age.years_mid, "double")
  expect_true(all(released$age.years_lo <= released$age.years_mid))
})

test_that("a policy's file may say how other files are written", {
  path <- tempfile(fileext = ".yaml")
  writeLines(c("version: 1", "attributes: {third: {role: quasi, type: number}}", "other: drop",
               "promises: [{model: k-anonymity, k: 4}]", "read: {decimal: ',', delimiter: ;}",
               "write: {encoding: cp1252, delimiter: ;}"), path)
  released <- suppressWarnings(shoal_publish(people(), path, k = 6, method = "mondrian", seed = 3))
  certificate <- attr(released, "certificate")
  expect_gte(smallest_class(released, "third"), 6)
  expect_equal(certificate$method$name, "mondrian")
  expect_equal(certificate$seed, 3)
})

test_that("what the certificate warns about is an R warning", {
  warned <- capture_warnings(
    shoal_publish(people(), quasi = "sex", plain = "third", other = "drop", k = 5)
  )
  expect_match(warned, "'third' is published as it is", all = FALSE)
})
