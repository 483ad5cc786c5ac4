"""Plain-Python truth for refinement: lists of records, every loss recounted from the members.

The random numbers are drawn as the kernels draw them, so that both make the same moves in the same
order or one of them is wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass

from shoal.data.partition import Matrix

Records = list[int]
WORD = (1 << 64) - 1


@dataclass
class Losses:
    """What classes lose in whole units: every position and every node is rounded."""

    matrix: Matrix
    unit: float

    def __call__(self, members: Records) -> int:
        codes = self.matrix.codes
        return sum(
            self.of_span(j, [int(codes[r, j]) for r in members])
            for j in range(self.matrix.attributes)
        )

    def of_span(self, j: int, codes: list[int]) -> int:
        matrix = self.matrix
        if matrix.base[j] < 0:
            least = int(matrix.codes[:, j].min())
            ends = [round((c - least) * (float(matrix.scale[j]) * self.unit)) for c in codes]
            return max(ends) - min(ends)
        if min(codes) == max(codes):
            return 0
        node = int(matrix.base[j]) + min(codes)
        while matrix.last[node] < max(codes):
            node = int(matrix.parent[node])
        return round(float(matrix.width[node]) * self.unit)

    def at_least(self, members: Records, i: int) -> int:
        """What the members lose at least with i for one of them: on each attribute without the
        outermost code at either end.
        """
        total = 0
        for j in range(self.matrix.attributes):
            codes = sorted(int(self.matrix.codes[r, j]) for r in members)
            own = int(self.matrix.codes[i, j])
            total += self.of_span(j, [min(codes[1], own), max(codes[-2], own)])
        return total


@dataclass
class Draws:
    """xorshift64*."""

    state: int

    def next(self) -> int:
        z = self.state
        z ^= z >> 12
        z ^= z << 25 & WORD
        z ^= z >> 27
        self.state = z
        return z * 0x2545F4914F6CDD1D & WORD

    def below(self, z: int, bound: int) -> int:
        return (z >> 32) * bound >> 32


@dataclass
class Setting:
    """What both moves need: k, most members of a class, losses, near records, and -ln u."""

    k: int
    capacity: int
    loss: Losses
    near: list[Records]
    noise: list[int]


def anneal(
    classes: list[Records],
    setting: Setting,
    temperatures: list[int],
    draws: Draws,
    kinds: list[int] | None = None,
    subjects: list[int] | None = None,
    keeps: Callable[[Records], bool] = lambda members: True,
    most_asked: int = 1 << 30,
    above: int = 0,
) -> list[tuple[int, ...]]:
    """Every member is tried once at each temperature; the moves made, in turn.

    above: where the members of classes of a smaller loss are not, in 1,024ths of the mean loss.
    keeps: whether a class with these members keeps what it promises; asked of at most `most_asked`
    exchanges of a member with a class.
    """
    moves: list[tuple[int, ...]] = []
    loss = setting.loss
    bound = kinds is not None or subjects is not None
    for temperature in temperatures:
        losses = [loss(own) for own in classes if own]
        least = sum(losses) * above // (len(losses) * 1024)
        for a, own in enumerate(classes):
            if own and loss(own) < least:
                continue
            place = -1
            before = len(own)
            while place + 1 < min(before, len(own)):
                place += 1
                i = own[place]
                z = draws.next()
                friend = setting.near[i][draws.below(z, len(setting.near[i]))]
                b = _class_of(classes, friend)
                other = classes[b]
                if b == a or len(own) < 2 or len(other) < 2:
                    continue
                limit = len(own) * loss(own) + len(other) * loss(other)
                limit += temperature * setting.noise[z & 1023] >> 16
                rest = [r for r in own if r != i]
                if (
                    not bound
                    and len(own) > setting.k
                    and len(other) < setting.capacity
                    and z >> 20 & 1 == 0
                ):
                    joined = [*other, i]
                    within = len(rest) * loss(rest) + len(joined) * loss(joined) <= limit
                    if within and keeps(rest) and keeps(joined):
                        moves.append((i, b))
                        _take(own, place)
                        other.append(i)
                    continue
                if len(own) * loss(rest) + len(other) * loss.at_least(other, i) > limit:
                    continue
                start, asked = draws.below(draws.next(), len(other)), 0
                for t in range(len(other)):
                    at = (start + t) % len(other)
                    p = other[at]
                    if kinds is not None and kinds[p] != kinds[i]:
                        continue
                    one, two = [*rest, p], [*(r for r in other if r != p), i]
                    if len(one) * loss(one) + len(two) * loss(two) > limit:
                        continue
                    if subjects is not None and not _alone(subjects, i, p, own + other):
                        continue
                    asked += 1
                    if not (keeps(one) and keeps(two)):
                        if asked == most_asked:
                            break
                        continue
                    own[place], other[at] = p, i
                    moves.append((i, p))
                    break
    return moves


def rebuild(
    classes: list[Records], setting: Setting, temperature: int, draws: Draws, most: int
) -> int:
    """Every class is taken apart once, with at most `most` neighbours; how many attempts stay."""
    loss = setting.loss
    empty = max((c for c, members in enumerate(classes) if not members), default=None)
    kept = 0
    for a, own in enumerate(classes):
        if not own:
            continue
        z = draws.next()
        grows = empty is not None and z >> 16 & 3 != 0
        place = draws.below(z, len(own))
        around = [_class_of(classes, friend) for friend in setting.near[own[place]]]
        neighbours = list(dict.fromkeys(c for c in around if c != a))[:most]
        taking_part = [a, *neighbours, *([empty] if grows else [])]
        limit = temperature * setting.noise[z & 1023] >> 16
        limit += sum(len(classes[c]) * loss(classes[c]) for c in taking_part if classes[c])
        log: list[tuple[int, int]] = []
        fits = not grows or _grow(classes, a, place, neighbours, empty, setting, log)
        if fits and len(own) < setting.k:
            targets = [*neighbours, *([empty] if grows else [])]
            fits = _dissolve(classes, a, targets, setting, log)
        after = sum(len(classes[c]) * loss(classes[c]) for c in taking_part if classes[c])
        if not fits or after > limit:
            for source, target in reversed(log):
                classes[source].append(classes[target].pop())
            continue
        kept += 1
        if grows:
            empty = min((c for c, members in enumerate(classes) if not members), default=None)
        elif not own:
            empty = a
    return kept


def _grow(
    classes: list[Records],
    a: int,
    place: int,
    neighbours: list[int],
    new: int,
    setting: Setting,
    log: list[tuple[int, int]],
) -> bool:
    loss, k = setting.loss, setting.k
    before = loss(classes[a])
    _move(classes, a, place, new, log)
    while len(classes[new]) < k:
        choices = []
        for rank, c in enumerate([*neighbours, a]):
            members = classes[c]
            if c != a and len(members) <= k:
                continue
            for at, r in enumerate(members):
                relief = before
                if c != a:
                    rest = [x for x in members if x != r]
                    relief = len(members) * loss(members) - len(rest) * loss(rest)
                cost = k * (loss([*classes[new], r]) - loss(classes[new])) - relief
                choices.append((cost, rank, at, c))
        if not choices:
            return False
        _, _, at, c = min(choices)
        _move(classes, c, at, new, log)
    return True


def _dissolve(
    classes: list[Records], a: int, targets: list[int], setting: Setting, log: list[tuple[int, int]]
) -> bool:
    loss = setting.loss
    while classes[a]:
        r = classes[a][-1]
        choices = [
            (
                (len(classes[c]) + 1) * loss([*classes[c], r]) - len(classes[c]) * loss(classes[c]),
                rank,
                c,
            )
            for rank, c in enumerate(targets)
            if 0 < len(classes[c]) < setting.capacity
        ]
        if not choices:
            return False
        _move(classes, a, len(classes[a]) - 1, min(choices)[2], log)
    return True


def _move(classes: list[Records], a: int, place: int, b: int, log: list[tuple[int, int]]) -> None:
    classes[b].append(_take(classes[a], place))
    log.append((a, b))


def _class_of(classes: list[Records], record: int) -> int:
    return next(c for c, members in enumerate(classes) if record in members)


def _alone(subjects: list[int], i: int, p: int, members: Records) -> bool:
    return sum(subjects[r] in (subjects[i], subjects[p]) for r in members) == 2


def _take(members: Records, place: int) -> int:
    """Takes a member out; the last one takes its place."""
    taken = members[place]
    members[place] = members[-1]
    members.pop()
    return taken
