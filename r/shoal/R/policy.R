# A policy from words: what each column is for, and what must hold.

TYPE_KEYS <- c("type", "domain", "order", "hierarchy")
MANY_NUMBERS <- 10 # of a sensitive column, beyond which it is an amount and not a code

# The policy as a list with the keys of a policy file, to change and to hand to the other functions.
shoal_policy <- function(df, quasi, sensitive = NULL, subject = NULL, weight = NULL,
                         household = NULL, plain = NULL, drop = NULL, other = NULL, k = NULL,
                         l = NULL, t = NULL, global_risk = NULL, individual_risk = NULL) {
  settings <- if (is.list(quasi)) quasi else setNames(vector("list", length(quasi)), quasi)
  if (is.null(names(settings))) stop("quasi: a list needs the columns' names", call. = FALSE)
  roles <- list(sensitive = sensitive, subject = subject, weight = weight, household = household,
                plain = plain, drop = drop)
  refuse_columns(df, c(names(settings), unlist(roles)))
  attributes <- Map(function(name, own) {
    has_type <- any(TYPE_KEYS %in% names(own))
    c(list(role = "quasi"), if (!has_type) type_of(df[[name]]), own)
  }, names(settings), settings)
  for (role in names(roles)) {
    for (name in roles[[role]]) {
      attributes[[name]] <- c(list(role = role), if (role == "sensitive") distance_of(df[[name]]))
    }
  }
  of_each <- function(promise) lapply(sensitive, promise)
  promises <- c(
    list(if (!is.null(k)) list(model = "k-anonymity", k = k)),
    if (!is.null(l)) of_each(function(name) list(model = "l-diversity", attribute = name, l = l)),
    if (!is.null(t)) of_each(function(name) {
      list(model = "t-closeness", attributes = list(name), t = t)
    }),
    list(if (!is.null(global_risk)) {
      list(model = "global-risk", at_most = global_risk, households = !is.null(household))
    }),
    list(if (!is.null(individual_risk)) {
      list(model = "individual-risk", at_most = individual_risk)
    })
  )
  c(list(version = 1, attributes = attributes, promises = Filter(length, promises)),
    if (!is.null(other)) list(other = other))
}

# The policy given, or that of the words in the place of one.
policy_of <- function(policy, df, ..., k = NULL) {
  if (is.null(policy)) {
    policy <- shoal_policy(df, ..., k = k)
    if (!length(policy$promises)) {
      stop("no promise: give k, l, t, global_risk or individual_risk", call. = FALSE)
    }
    return(policy)
  }
  if (...length()) {
    stop("policy: says what every column is for; leave out ",
         paste(...names(), collapse = ", "), call. = FALSE)
  }
  policy
}

refuse_columns <- function(df, named) {
  absent <- setdiff(named, names(df))
  twice <- unique(named[duplicated(named)])
  stop_if(c(
    if (length(absent)) paste0("not in the data frame: ", quoted(absent), "; correct the names"),
    if (length(twice)) paste0("named twice: ", quoted(twice), "; give each column one role")
  ))
}

# How a quasi-identifier is coarsened, by the type of its column.
type_of <- function(column) {
  if (is.ordered(column)) return(list(order = as.list(levels(column))))
  if (inherits(column, "Date")) return(list(hierarchy = list(dates = c("day", "month", "year"))))
  if (is.numeric(column)) {
    numbers <- column[is.finite(column)]
    return(if (length(numbers)) list(type = "number", domain = range(pretty(numbers))))
  }
  cells <- setdiff(encode(column), "")
  lengths <- unique(nchar(cells))
  if (length(lengths) == 1 && lengths >= 4 && all(grepl("^[0-9]+$", cells))) {
    return(list(hierarchy = list(prefix = lengths))) # codes lose digits from the right
  }
  NULL
}

# Amounts are compared by how far they lie apart, codes as equal or not.
distance_of <- function(column) {
  if (!is.numeric(column)) return(NULL)
  few <- length(unique(column[!is.na(column)])) <= MANY_NUMBERS
  c(list(type = "number"), if (few) list(distance = "equal"))
}

# The policy as a file: a path stands for itself, a list is written beside the table.
policy_file <- function(policy, folder) {
  if (is.character(policy) && length(policy) == 1) return(full_path(policy))
  if (!is.list(policy)) {
    stop("policy: give the path of a file or a list; columns are named by quasi =", call. = FALSE)
  }
  path <- file.path(folder, "policy.json")
  write_json(policy, path, auto_unbox = TRUE, digits = NA)
  path
}
