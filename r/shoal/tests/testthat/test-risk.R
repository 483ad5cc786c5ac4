sampled <- function() {
  df <- people(300)[c("age.years", "sex", "zip")]
  df$house <- rep(seq_len(100), each = 3)
  df$w <- rep(round(runif(100, 2, 40), 2), each = 3)
  df
}
KEYS <- c("age.years", "sex", "zip")

test_that("the risk counts who is alone, and how many people are alike", {
  df <- sampled()
  sizes <- table(do.call(paste, df[KEYS]))
  risk <- suppressWarnings(shoal_risk(df, quasi = KEYS))
  expect_equal(risk$lone, sum(sizes == 1))
  expect_equal(risk$sets$people, as.vector(tapply(sizes, sizes, sum)))
  expect_equal(risk$columns$column, KEYS)
  without <- table(do.call(paste, df[c("sex", "zip")]))
  expect_equal(risk$columns$without[1], sum(without == 1))
})

test_that("the risk of lone people follows from their weights", {
  df <- sampled()
  key <- do.call(paste, df[KEYS])
  p <- 1 / df$w[!(key %in% key[duplicated(key)])]
  expected <- p / (1 - p) * log(1 / p) # Benedetti and Franconi, a frequency of 1
  risk <- suppressWarnings(shoal_risk(df, quasi = KEYS, weight = "w", household = "house"))
  expect_equal(risk$alone_by_weight, list(mean = mean(expected), max = max(expected)))
})

test_that("every record has its own risk and that of its household, in the order of the records", {
  df <- sampled()
  key <- do.call(paste, df[KEYS])
  risk <- suppressWarnings(shoal_risk(df, quasi = KEYS, weight = "w", household = "house"))
  found <- risk$records
  expect_equal(found$alike, as.vector(table(key)[key]))
  expect_equal(found$stand_for, as.vector(tapply(df$w, key, sum)[key]))
  p <- 1 / df$w
  lone <- found$alike == 1
  expect_equal(found$risk[lone], (p / (1 - p) * log(1 / p))[lone])
  expect_equal(found$household_risk, 1 - ave(1 - found$risk, df$house, FUN = prod))
  expect_equal(mean(found$risk), risk$individual_risk$own$mean)
  expect_equal(mean(found$household_risk), risk$individual_risk$household$mean)
  expect_named(suppressWarnings(shoal_risk(df, quasi = KEYS))$records, c("alike", "score"))
})

test_that("a bound of the global risk with households holds, and is measured again", {
  df <- sampled()
  trace <- tempfile()
  policy <- shoal_policy(df, quasi = KEYS, weight = "w", household = "house", global_risk = 0.2,
                         individual_risk = 0.5)
  released <- suppressWarnings(shoal_publish(df, policy, method = "risk", trace = trace))
  expect_equal(names(released), KEYS)
  audited <- suppressWarnings(shoal_audit(released, policy, original = df, trace = trace))
  expect_equal(audited$model, c("global-risk", "individual-risk"))
  expect_equal(audited$households, c(TRUE, FALSE))
  expect_true(all(audited$holds))
  expect_lte(audited$measured[1], 0.2)
  alone <- suppressWarnings(shoal_audit(released, policy))
  expect_true(all(is.na(alone$measured)))
})
