"""Every promise from its definition, on rows with a class, a person and sensitive texts.

Counts are whole numbers, shares fractions; logarithms have 60 digits.
"""

import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from math import exp, inf, log, prod

from fuzz.cells import Attribute, Policy, number

MISSING = ("no value",)
EQUAL_DIGITS = Decimal("1e-50")


@dataclass(frozen=True)
class Rows:
    """The rows that are in a class, all columns of the same length."""

    classes: list
    people: list
    quasi: dict[str, list[str]]
    sensitive: dict[str, list[str]]

    def groups(self, keys=None) -> dict:
        """The numbers of the rows of each class."""
        found = defaultdict(list)
        for row, key in enumerate(self.classes if keys is None else keys):
            found[key].append(row)
        return found

    def sizes(self, keys=None) -> dict:
        """How many people each class has."""
        return {k: len({self.people[r] for r in rows}) for k, rows in self.groups(keys).items()}


@dataclass(frozen=True)
class Found:
    """What one promise comes to. measured: None where it is not compared."""

    model: str
    holds: bool
    measured: Fraction | float | None


def judge_promise(asked: dict, rows: Rows, policy: Policy, reference: Rows | None = None) -> Found:
    """One promise on all classes. reference: what t-closeness compares with, if not all rows."""
    model = asked["model"]
    if model == "t-closeness":
        worst = max(_closeness(name, rows, reference or rows, policy) for name in _names(asked))
        return Found(model, worst <= _written(asked["t"]), worst)
    return _RULES[model](asked, rows, policy)


def _names(asked: dict) -> list[str]:
    names = asked.get("attributes", asked.get("attribute", []))
    return [names] if isinstance(names, str) else list(names)


def _written(value) -> Fraction:
    return Fraction(str(value))


# ----- values


def keys_of(name: str, texts: list[str], policy: Policy, merged: bool, apart=()) -> list:
    """What each text counts as. merged: all texts for no value are one; apart: but for these."""
    attribute = policy[name]
    return [_key(text, attribute, policy, merged, apart) for text in texts]


def _key(text: str, attribute: Attribute, policy: Policy, merged: bool, apart):
    if folded(text) in {folded(one) for one in (*policy.missing_values, policy.mark)}:
        return MISSING if merged and text not in apart else (*MISSING, text)
    if attribute.kind == "number":
        return number(text)
    return folded(text) if _is_flat(attribute) else text


def folded(text: str) -> str:
    """A value whatever its case, its runs of blanks and signs that nobody sees."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = text.replace("i\u0307", "i").replace("\u0131", "i")  # capitals of Turkish
    seen = [c for c in text if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf")]
    return " ".join("".join(seen).split())


def counts(rows: Rows, members, keys) -> Counter:
    """How many people have each value; everybody once for each of theirs."""
    return Counter(key for _, key in {(rows.people[r], keys[r]) for r in members})


# ----- counting people and values


def _k(asked, rows, policy):
    names = _names(asked) or list(rows.quasi)
    sizes = rows.sizes(list(zip(*(rows.quasi[name] for name in names), strict=True)))
    least = min(sizes.values(), default=None)
    return Found("k-anonymity", least is None or least >= asked["k"], least)


def _l(asked, rows, policy):
    name, least, kind = asked["attribute"], asked["l"], asked.get("kind", "distinct")
    keys = keys_of(name, rows.sensitive[name], policy, merged=True)
    worst, holds = inf, True
    for members in rows.groups().values():
        found = sorted(counts(rows, members, keys).values(), reverse=True)
        if kind == "distinct":
            measured, kept = len(found), len(found) >= least
        elif kind == "entropy":
            total = sum(found)
            measured = exp(-sum(c / total * log(c / total) for c in found))
            kept = total**total >= least**total * prod(c**c for c in found)
        else:
            c = _written(asked["c"])
            reached = [i + 1 for i in range(len(found)) if found[0] < c * sum(found[i:])]
            measured = max(reached, default=0)
            kept = measured >= least
        worst, holds = min(worst, measured), holds and kept
    return Found("l-diversity", holds, None if worst == inf else worst)


def _several_values(asked, rows, policy):
    """p-sensitive k-anonymity, and (k,l)-diversity, which asks the same."""
    least = asked["p"] if "p" in asked else asked["l"]
    worst = inf
    for name in _names(asked):
        keys = keys_of(name, rows.sensitive[name], policy, merged=True)
        for members in rows.groups().values():
            worst = min(worst, len({keys[r] for r in members}))
    k = min(rows.sizes().values(), default=inf)
    return Found(
        asked["model"], worst >= least and k >= asked["k"], None if worst == inf else worst
    )


def _alpha_k(asked, rows, policy):
    name, designated = asked["attribute"], asked.get("values") or ()
    keys = keys_of(name, rows.sensitive[name], policy, merged=True, apart=designated)
    wanted = set(keys_of(name, list(designated), policy, merged=True, apart=designated))
    worst, k = Fraction(0), inf
    for members in rows.groups().values():
        people = len({rows.people[r] for r in members})
        found = counts(rows, members, keys)
        most = max((n for key, n in found.items() if not wanted or key in wanted), default=0)
        worst, k = max(worst, Fraction(most, people)), min(k, people)
    return Found(asked["model"], worst <= _written(asked["alpha"]) and k >= asked["k"], worst)


def _subject_share(asked, rows, policy):
    worst = Fraction(0)
    for members in rows.groups().values():
        owned = Counter(rows.people[r] for r in members)
        worst = max(worst, Fraction(max(owned.values()), len(members)))
    return Found(asked["model"], worst <= _written(asked["share"]), worst)


def _average_risk(asked, rows, policy):
    sizes = list(rows.sizes().values())
    share = Fraction(len(sizes), sum(sizes)) if sizes else Fraction(0)
    return Found(asked["model"], share <= _written(asked["threshold"]), share)


def _sample_uniqueness(asked, rows, policy):
    sizes = list(rows.sizes().values())
    share = Fraction(sizes.count(1), sum(sizes)) if sizes else Fraction(0)
    return Found(asked["model"], share <= _written(asked["threshold"]), share)


# ----- shares beside those of the whole table


def _shares(name, rows, policy):
    """Of each class, (share inside, share in the table) of every value of the table."""
    keys = keys_of(name, rows.sensitive[name], policy, merged=False)
    table = counts(rows, range(len(keys)), keys)
    whole = sum(table.values())
    for members in rows.groups().values():
        inside = counts(rows, members, keys)
        total = sum(inside.values())
        yield [(Fraction(inside[v], total), Fraction(table[v], whole)) for v in table]


def _beta(asked, rows, policy):
    beta, enhanced = _written(asked["beta"]), asked.get("kind", "enhanced") == "enhanced"
    worst, holds = Fraction(0), True
    for name in _names(asked):
        for shares in _shares(name, rows, policy):
            for q, p in shares:
                gain = max((q - p) / p, Fraction(0))
                worst = max(worst, gain)
                holds = holds and gain <= beta
                if enhanced and gain:
                    holds = holds and _logarithm(1 / p) - _decimal(gain) >= -EQUAL_DIGITS
    return Found(asked["model"], holds, None if enhanced else worst)


def _delta(asked, rows, policy):
    worst, holds = 0.0, True
    base = Decimal(2) if asked.get("logarithm") == "binary" else None
    for name in _names(asked):
        for shares in _shares(name, rows, policy):
            for q, p in shares:
                if not q:
                    worst, holds = inf, False
                    continue
                apart = abs(_logarithm(q / p))
                with localcontext(prec=60):
                    apart = apart if base is None else apart / base.ln()
                    holds = holds and Decimal(str(asked["delta"])) - apart > EQUAL_DIGITS
                worst = max(worst, float(apart))
    return Found(asked["model"], holds, None if worst == inf else worst)


def _logarithm(of: Fraction) -> Decimal:
    with localcontext(prec=60):
        return Decimal(of.numerator).ln() - Decimal(of.denominator).ln()


def _decimal(of: Fraction) -> Decimal:
    with localcontext(prec=60):
        return Decimal(of.numerator) / Decimal(of.denominator)


# ----- t-closeness


def _closeness(name: str, rows: Rows, reference: Rows, policy: Policy) -> Fraction:
    """The greatest distance of a class from the table that it is compared with.

    Where values have an order or a tree, texts for no value share a place in it. Where several of
    them occur, having a value and each of the texts are compared besides, as equally far apart.
    """
    everybody = range(len(reference.people))
    merged = not _is_flat(policy[name])
    table = _distribution(name, reference, everybody, policy, merged)
    distance = _ground(policy[name], table, policy, reference.sensitive[name])
    presence = _presence(name, reference, everybody, policy)
    several = merged and len(presence) - ("a value" in presence) > 1
    worst = Fraction(0)
    for members in rows.groups().values():
        own = _distribution(name, rows, members, policy, merged)
        worst = max(worst, distance(own, table))
        if several:
            shown = _presence(name, rows, members, policy)
            worst = max(worst, equal_distance(shown, presence))
    return worst


def _is_flat(attribute: Attribute) -> bool:
    return attribute.kind == "category" and not attribute.has_hierarchy


def _distribution(name, rows, members, policy, merged) -> Counter:
    """How many people have each value."""
    return counts(rows, members, keys_of(name, rows.sensitive[name], policy, merged))


def _presence(name, rows, members, policy) -> Counter:
    """How many people have a value, and how many each text for none."""
    keys = keys_of(name, rows.sensitive[name], policy, merged=False)
    shown = [key if isinstance(key, tuple) and key[:1] == MISSING else "a value" for key in keys]
    return counts(rows, members, shown)


def _ground(attribute: Attribute, table: Counter, policy: Policy, texts: list[str]):
    if _is_flat(attribute):
        return equal_distance
    if attribute.kind == "category":
        paths = attribute.paths or {t: attribute.path(t) for t in texts if policy.is_value(t)}
        return lambda own, whole: tree_distance(own, whole, paths)
    order = {label: i for i, label in enumerate(attribute.order or sorted(map(str, table)))}
    by = (lambda v: v) if attribute.kind == "number" else order.__getitem__
    values = sorted((v for v in table if v != MISSING), key=by)
    ranked = [*values, *([MISSING] if MISSING in table else [])]
    return lambda own, whole: ordered_distance(own, whole, ranked)


def equal_distance(own: Counter, table: Counter) -> Fraction:
    n, m = sum(own.values()), sum(table.values())
    return Fraction(sum(abs(own[v] * m - table[v] * n) for v in {*own, *table}), 2 * n * m)


def ordered_distance(own: Counter, table: Counter, ranked: list) -> Fraction:
    n, m = sum(own.values()), sum(table.values())
    running = total = 0
    for value in ranked:
        running += own[value] * m - table[value] * n
        total += abs(running)
    return Fraction(total, max(len(ranked) - 1, 1) * n * m)


def tree_distance(own: Counter, table: Counter, paths: dict[str, list[str]]) -> Fraction:
    """Li, Li, Venkatasubramanian: height(N) / height(root) * min(surplus, deficit), summed."""
    n, m = sum(own.values()), sum(table.values())
    root = next(iter(paths.values()))[-1]
    children, heights = defaultdict(set), defaultdict(int)
    for path in paths.values():
        # a label alone does not name a node: two branches may have one of the same name
        nodes = [tuple(path[i:]) for i in range(len(path))]
        for height, (node, above) in enumerate(zip(nodes, [*nodes[1:], None], strict=True)):
            heights[node] = max(heights[node], height)
            if above is not None:
                children[above].add(node)
    children[root,].add(MISSING)

    def extra(node):
        value = node if node == MISSING else node[0]
        if node in children:
            return sum(extra(child) for child in children[node])
        return own[value] * m - table[value] * n

    total = Fraction(0)
    for node, below in children.items():
        extras = [extra(child) for child in below]
        moved = min(sum(e for e in extras if e > 0), -sum(e for e in extras if e < 0))
        total += Fraction(heights[node] * moved, max(heights[root,], 1) * n * m)
    return total


_RULES = {
    "k-anonymity": _k,
    "l-diversity": _l,
    "p-sensitive-k-anonymity": _several_values,
    "k-l-diversity": _several_values,
    "alpha-k-anonymity": _alpha_k,
    "beta-likeness": _beta,
    "delta-disclosure": _delta,
    "subject-share": _subject_share,
    "average-risk": _average_risk,
    "sample-uniqueness": _sample_uniqueness,
}
