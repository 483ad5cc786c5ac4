# What R programs call. Each function hands files to one command and reads what it wrote.

# Publishes a data frame, or stops: the release, its certificate as the attribute "certificate".
shoal_publish <- function(df, policy = NULL, ..., k = NULL, method = NULL, seed = NULL,
                          trace = NULL, replace = FALSE) {
  policy <- policy_of(policy, df, ..., k = k)
  within_folder(function(folder) {
    table <- write_table(df, folder, "data.csv")
    released <- file.path(folder, "released.csv")
    printed <- run_command(folder, c(
      "publish", table, "-p", policy_file(policy, folder), "-o", released,
      option("--k", k), option("--method", method), option("--seed", seed),
      option("--trace", full_path(trace)), if (replace) "--replace", READ, WRITE
    ))
    structure(read_released(released, df), certificate = from_json(printed))
  })
}

# Measures a released data frame: one row for each promise, with the certificate as an attribute.
shoal_audit <- function(df, policy = NULL, ..., k = NULL, original = NULL, trace = NULL) {
  policy <- policy_of(policy, if (is.null(original)) df else original, ..., k = k)
  within_folder(function(folder) {
    truth <- if (!is.null(original)) write_table(original, folder, "original.csv")
    printed <- run_command(folder, c(
      "audit", write_table(df, folder, "released.csv"), "-p", policy_file(policy, folder),
      option("--original", truth), option("--trace", full_path(trace)), option("--k", k),
      READ, WRITE
    ))
    certificate <- from_json(printed)
    structure(promises_of(certificate), certificate = certificate)
  })
}

# The risk in a data frame as it stands, by the columns that others could know: of all people, and
# of each record.
shoal_risk <- function(df, policy = NULL, ..., k = NULL) {
  if (is.null(policy)) {
    policy <- policy_of(NULL, df, ..., k = if (is.null(k)) 10 else k, other = "drop")
  } else {
    policy <- policy_of(policy, df, ...)
  }
  within_folder(function(folder) {
    records <- file.path(folder, "records.csv")
    printed <- run_command(folder, c(
      "profile", write_table(df, folder, "data.csv"), "-p", policy_file(policy, folder),
      option("--k", k), "--records", records, READ
    ))
    risk <- from_json(printed)$risk
    risk$sets <- rows_of(risk$sets)
    risk$columns <- cbind(column = names(risk$columns), rows_of(risk$columns))
    risk$records <- read.table(records, header = TRUE, sep = ",")
    risk
  })
}

promises_of <- function(certificate) {
  shown <- lapply(certificate$promises, function(promise) {
    list(model = promise$model, attributes = paste(promise$attributes, collapse = ", "),
         households = isTRUE(promise$households), asked = promise$asked,
         measured = promise$measured, holds = promise$holds)
  })
  rows_of(shown)
}
