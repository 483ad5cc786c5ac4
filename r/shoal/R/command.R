# How the command is found and run, and how what it says becomes R's errors and warnings.

# All tables pass as UTF-8 with commas and decimal points, whatever a policy says of its own files.
READ <- c("--read", "delimiter=,", "--read", "encoding=utf-8", "--read", "decimal=.")
WRITE <- c("--write", "delimiter=,", "--write", "encoding=utf-8")
MISSES <- 1 # status of an audit that measured a promise that does not hold

# What the command printed. Stops with its line if it failed; its warnings become R's.
run_command <- function(folder, arguments) {
  command <- shoal_command()
  printed <- file.path(folder, "printed.json")
  said <- file.path(folder, "said.txt")
  all <- c(command[-1], arguments, "--json", "--quiet")
  status <- system2(command[1], shQuote(all), stdout = printed, stderr = said)
  # the folder is gone when somebody reads this
  lines <- readLines(said, encoding = "UTF-8", warn = FALSE)
  lines <- gsub(paste0(folder, "/"), "", lines, fixed = TRUE)
  # nobody wrote the file that a list became; files of the caller's are named by their full paths
  lines <- gsub("policy 'policy.json'", "policy", lines, fixed = TRUE)
  measured <- status == MISSES && arguments[1] == "audit" && file.size(printed) > 0
  if (status != 0 && !measured) {
    message <- if (length(lines)) lines else paste("shoal: ended with status", status)
    stop(errorCondition(paste(message, collapse = "\n"), class = "shoal_error", status = status))
  }
  for (line in lines) warning(line, call. = FALSE)
  printed
}

shoal_command <- function() {
  command <- path.expand(getOption("shoal.command", Sys.getenv("SHOAL", "shoal")))
  if (Sys.which(command[1]) == "") {
    stop("shoal: the command '", command[1], "' is not here; install it by 'pip install .' in the ",
         "clone of Shoal, and name it by options(shoal.command = \"/path/to/shoal\") or the ",
         "environment variable SHOAL if it is not on the PATH", call. = FALSE)
  }
  command
}

# Calls step with a folder that only this user can read, and removes it whatever happens.
within_folder <- function(step) {
  folder <- tempfile("shoal-", normalizePath(tempdir(check = TRUE)))
  dir.create(folder, mode = "0700")
  on.exit(unlink(folder, recursive = TRUE))
  step(folder)
}

from_json <- function(path) fromJSON(path, simplifyDataFrame = FALSE)

option <- function(name, value) if (!is.null(value)) c(name, format(value, scientific = FALSE))

full_path <- function(path) if (!is.null(path)) normalizePath(path, mustWork = FALSE)

quoted <- function(names) paste0("'", names, "'", collapse = ", ")

stop_if <- function(findings) {
  if (length(findings)) stop(paste(findings, collapse = "\n"), call. = FALSE)
}
