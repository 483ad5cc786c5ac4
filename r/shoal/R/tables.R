# A data frame as the command reads it, and what the command wrote as a data frame again.

WRITABLE <- c("character", "factor", "ordered", "integer", "numeric", "logical", "Date")

# Writes UTF-8 with every cell in quotes; stops with every column that text could not bring back.
write_table <- function(df, folder, name) {
  if (!is.data.frame(df)) stop("df: must be a data frame with a row for each record", call. = FALSE)
  if (!ncol(df)) stop("df: has no columns", call. = FALSE)
  stop_if(unlist(Map(finding, df, names(df))))
  lines <- do.call(paste, c(lapply(df, function(column) in_quotes(encode(column))), sep = ","))
  path <- file.path(folder, name)
  file <- file(path, "wb")
  on.exit(close(file))
  header <- paste(in_quotes(names(df)), collapse = ",")
  writeLines(enc2utf8(c(header, unname(lines))), file, useBytes = TRUE)
  path
}

finding <- function(column, name) {
  where <- paste0("column '", name, "': ")
  if (!class(column)[1] %in% WRITABLE || !is.null(dim(column))) {
    return(paste0(where, "is of class ", class(column)[1],
                  "; make it text, a factor, numbers, logical or a Date"))
  }
  odd <- if (is.double(column)) sum(is.nan(column) | is.infinite(column)) else 0
  if (odd) {
    return(paste0(where, "holds ", odd, " values that are infinite or NaN; make them NA"))
  }
  if (anyNA(column) && any(encode(column[!is.na(column)]) == "")) {
    return(paste0(where, "holds both NA and empty text, which a file can't tell apart; use one"))
  }
  NULL
}

# The text of each cell, "" for NA. Doubles get the fewest digits that say the same number.
encode <- function(column) {
  text <- character(length(column))
  present <- !is.na(column)
  text[present] <- encode_present(column[present])
  text[is.na(text)] <- "" # a level may be NA, too
  text
}

encode_present <- function(column) {
  if (is.factor(column) || !is.numeric(column)) return(as.character(column))
  if (is.integer(column)) return(sprintf("%d", column))
  text <- sprintf("%.15g", column)
  inexact <- as.numeric(text) != column
  text[inexact] <- sprintf("%.17g", column[inexact])
  text
}

in_quotes <- function(text) paste0("\"", gsub("\"", "\"\"", text, fixed = TRUE), "\"")

# The release, each column as in the data frame that it was made of.
read_released <- function(path, df) {
  released <- read.table(path, header = TRUE, sep = ",", quote = "\"", comment.char = "",
                         colClasses = "character", na.strings = character(), fill = FALSE,
                         blank.lines.skip = FALSE, check.names = FALSE, encoding = "UTF-8")
  released[] <- Map(function(text, name) restore(text, df[[name]]), released, names(released))
  released
}

# Where every cell is a value of the original, these values, in its type; else numbers, if all are,
# or text. Nothing is handed on that the cells don't say: no hidden level, name or time of a day.
restore <- function(text, original) {
  at <- match(text, encode(original))
  if (is.null(original) || anyNA(as.character(original))) text[text == ""] <- NA
  known <- !is.null(original) && !anyNA(at)
  if (is.factor(original)) {
    labels <- c(intersect(levels(original), text), # in the order of the original's
                sort(setdiff(text, c(levels(original), NA)), method = "radix"))
    return(factor(text, labels, ordered = known && is.ordered(original)))
  }
  if (known) return(if (inherits(original, "Date")) as.Date(text) else unname(original[at]))
  if (is.null(original) || is.numeric(original)) type.convert(text, as.is = TRUE) else text
}

# Lists of the same keys as the rows of a data frame; NA where a key has no value.
rows_of <- function(lists) {
  keys <- unique(unlist(lapply(lists, names)))
  columns <- lapply(setNames(keys, keys), function(key) {
    unlist(lapply(unname(lists), function(one) if (is.null(one[[key]])) NA else one[[key]]))
  })
  as.data.frame(columns)
}
