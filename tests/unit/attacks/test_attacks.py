"""What attacks find: hand-computed examples, controls, and what must never change a number."""

import warnings
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

import shoal
from attack_cases import AGE, ORIGINAL, RELEASED, SIX, attacked, policy_of, scene, six
from shoal.attacks import counts as intervals
from shoal.attacks.counts import class_values
from shoal.attacks.membership import membership_scores
from shoal.attacks.scores import Attackers, judged, marginals
from shoal.data.certificate import Certificate
from shoal.errors import InputError
from shoal.policy.policy import Policy
from shoal.privacy.reidentification import individual_risk
from shoal.reports.attacks import attack_lines, rows_of
from shoal.reports.text import summary

THREE = ("inference", "skewness", "homogeneity")
AGE_AND_D = {"age": AGE, "d": {"role": "sensitive"}}
MONDRIAN = policy_of(AGE_AND_D, 3).with_method("mondrian")


def share(found):
    return None if found is None else found["share"]


# Intervals


@pytest.mark.parametrize(
    ("hits", "of", "ends"), [(5, 10, (0.2366, 0.7634)), (0, 10, (0.0, 0.2775))]
)
def test_wilson_gives_the_published_ends(hits, of, ends):
    assert intervals.wilson(hits, of)["ci"] == pytest.approx(ends, abs=5e-5)


def test_newcombe_and_a_residual_of_it_give_the_published_ends():
    found = intervals.newcombe((8, 10), (5, 10))
    assert found["share"] == pytest.approx(0.3)
    assert found["ci"] == pytest.approx((-0.1067, 0.5999), abs=5e-5)
    left = intervals.scaled(found, 1 - 0.5)  # the difference over what was left to gain
    assert left["share"] == pytest.approx(0.6)
    assert left["ci"] == pytest.approx((-0.2133, 1.1997), abs=1e-4)


def test_nobody_drawn_gives_no_share():
    assert intervals.wilson(0, 0)["share"] is None
    assert intervals.newcombe((0, 0), (1, 2))["share"] is None
    assert intervals.mean_of(np.zeros(0))["share"] is None


# Six people: [1, 3] a a b, [6, 9] a c c; true ages 1 2 3 6 6 9


def test_counted_figures_of_six_people_by_hand():
    found = six(*THREE, "singling-out", "linkability:known=age")
    guessed, lifted = found["inference"]["d"], found["skewness"]["d"]
    assert share(guessed["baseline"]) == 0.5
    assert share(guessed["class"]) == pytest.approx(4 / 6, abs=1e-4)
    assert share(guessed["certain"]) == 0
    assert guessed["baseline"]["of"] is None, "few people are not counted"
    assert (lifted["max"], lifted["supported"], lifted["median"]) == (2, 2, 2)
    assert share(lifted["lifted"]) == 0
    assert found["homogeneity"]["d"]["classes"] is None
    assert share(found["homogeneity"]["d"]["people"]) == 0
    assert found["homogeneity"]["d"]["similar"] is None
    assert "which of its values are similar" in found["homogeneity"]["d"]["why"]
    assert share(found["homogeneity"]["d"]["chance"]) == pytest.approx(0.05)
    ends, linked = found["singling-out"], found["linkability"]
    assert (share(ends["owned"]), share(ends["people"])) == (0.75, 0.5)
    (_, five, _) = ends["snap"]
    assert share(five["attributes"]["age"]["owned"]) == 0
    assert five["attributes"]["age"]["added_width"] == pytest.approx(0.25)
    assert share(ends["alone"]["d"]) == pytest.approx(2 / 6, abs=1e-4)
    thirds = [share(linked["success"]), linked["worst"], linked["bound"]]
    assert thirds == pytest.approx([1 / 3] * 3, abs=1e-4)


def test_marginals_spread_a_cell_over_its_values():
    release = scene().release
    (age,) = marginals(release.boxes, class_values(release, "d"))
    assert age.of_values(np.array([2]))[0] == pytest.approx([0.13725, 0.12821, 0.06667], abs=5e-6)


def posteriors(release, age):
    """What each attacker takes a person of this age for."""
    attackers = Attackers.on(release.boxes, class_values(release, "d"))
    scores = attackers._scores(np.array([[age]], dtype=np.int32))
    return {name: row[0] / row[0].sum() for name, row in scores.items()}


def test_naive_bayes_and_definetti_of_a_person_whom_one_class_covers_or_none():
    two, five = (posteriors(scene().release, age) for age in (2, 5))
    weights = np.array([0.0686, 0.0214, 0.0222])
    assert two["bayes"] == pytest.approx(weights / weights.sum(), abs=2e-3)
    assert two["definetti"] == pytest.approx([2 / 3, 1 / 3, 0])
    assert two["cover"] == pytest.approx([2 / 3, 1 / 3, 0])
    for row in five.values():  # bayes judges whom nothing covers
        assert row == pytest.approx([0.456, 0.199, 0.345], abs=5e-4)


def test_overlapping_classes_count_by_their_density():
    original = pl.DataFrame({"age": [1, 2, 4, 3, 4], "d": list("aaabb")})
    released = pl.DataFrame({"age": ["[1, 4]"] * 3 + ["[3, 4]"] * 2, "d": list("aaabb")})
    release = scene(released, original).release
    assert posteriors(release, 3)["cover"] == pytest.approx([0.4286, 0.5714], abs=1e-4)


def test_tied_guesses_share_the_hit():
    scores = np.array([[2.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    assert judged(scores, np.array([0, 2, -1]), None).hits.tolist() == [0.5, 0.0, 0.0]


def test_six_people_and_two_others():
    control = pl.DataFrame({"age": [2, 4], "d": ["a", "b"]})
    found = six("membership", control=control)["membership"]
    assert share(found["uncovered"]) == 0.5
    boxes = scene().release.boxes
    scores = membership_scores(boxes, np.array([[2], [4]], dtype=np.int32))
    assert np.isfinite(scores[0])
    assert np.isneginf(scores[1])


# Numbers as sensitive values


def test_a_number_is_guessed_right_within_the_tolerance():
    policy = policy_of({"age": AGE, "pay": {"role": "sensitive", "type": "number"}}, 3)
    original = pl.DataFrame({"age": [1, 2, 3, 6, 6, 9], "pay": [10, 11, 50, 60, 61, 110]})
    released = original.with_columns(age=RELEASED["age"])
    exactly = attacked(released, policy, original, "inference:tolerance=0")["inference"]["pay"]
    nearly = attacked(released, policy, original, "inference:tolerance=0.02")["inference"]["pay"]
    assert share(exactly["class"]) == pytest.approx(2 / 6, abs=1e-4)
    assert share(nearly["class"]) == pytest.approx(4 / 6, abs=1e-4)
    assert share(nearly["baseline"]) == pytest.approx(2 / 6, abs=1e-4)
    assert nearly["tolerance"] == 2


# What must hold everywhere


def exact_numbers(found):
    """Every exact share below some result."""
    if isinstance(found, dict):
        if found.get("how") == "exact":
            return [found["share"]]
        return [number for key in sorted(found) for number in exact_numbers(found[key])]
    if isinstance(found, list):
        return [number for item in found for number in exact_numbers(item)]
    return []


def test_permuting_rows_changes_no_exact_number():
    names = (*THREE, "singling-out", "linkability")
    order = np.random.default_rng(3).permutation(6)
    again = exact_numbers(attacked(RELEASED[order], SIX, ORIGINAL[order], *names))
    assert again == exact_numbers(six(*names))
    assert len(again) > 12


def test_one_class_of_everybody_gives_nothing_away():
    rng = np.random.default_rng(0)
    n = 400
    original = pl.DataFrame({"age": rng.integers(0, 11, n), "d": rng.choice(list("aab"), n)})
    released = original.with_columns(age=pl.lit("*"))
    policy = policy_of(AGE_AND_D, n).with_method("rounded-partition")
    found = attacked(released, policy, original, "inference", "membership", control=original)
    for attacker in found["inference"]["d"]["attackers"].values():
        assert share(attacker["member"]) == share(found["inference"]["d"]["baseline"])
        assert share(attacker["gain"]) == 0
    assert found["inference"]["d"]["best"] is None
    assert share(found["membership"]["advantage"]) == 0
    assert found["membership"]["auc"] == 0.5


# Controls


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 11, n)
    return pl.DataFrame({"age": age, "d": np.where(rng.random(n) < age / 12, "a", "b")})


def test_a_policy_that_names_its_method_is_controlled_by_people_left_out():
    original = table_of(300)
    released = shoal.publish(original, MONDRIAN).data
    asked = released, MONDRIAN, original
    found = attacked(*asked, "inference", "membership", "singling-out")
    assert found["control"] == {"kind": "republished", "people": 60, "folds": 1, "reason": None}
    assert found["inference"]["d"]["attackers"]["cover"]["control"]["of"] == 60
    twice, again = (attacked(*asked, "inference", folds=2) for _ in range(2))
    assert twice["inference"]["d"]["attackers"]["cover"]["control"]["of"] == 120
    assert {**twice, "seconds": 0} == {**again, "seconds": 0}, "the same seed, the same numbers"


def test_a_given_control_leaves_singling_out_its_two_halves():
    wide = {"role": "quasi", "type": "number", "domain": [0, 1000]}
    policy = policy_of({"age": wide, "d": {"role": "sensitive"}}, 5).with_method("mondrian")
    original = table_of(300).with_columns(age=pl.col("age") * 90 + pl.int_range(300) % 90)
    released = shoal.publish(original, policy).data
    asked = (released, policy, original, "inference", "singling-out")
    alone, given = attacked(*asked), attacked(*asked, control=original[:90])
    assert given["control"]["kind"] == "given"
    assert given["singling-out"] == alone["singling-out"]
    assert given["singling-out"]["gain"] is not None
    unnamed = attacked(released, policy.with_method(None), *asked[2:], control=original)
    assert "not in the release" not in unnamed["singling-out"].get("why", "")


def wide_table(seed):
    rng = np.random.default_rng(seed)
    return table_of(200, seed).with_columns(age=pl.Series(rng.random(200) * 9))


def test_the_same_days_as_dates_and_as_times_of_midnight_are_the_same_in_a_control():
    def dated(seed, dtype):
        days = np.random.default_rng(seed).integers(0, 60, 200)
        born = pl.Series(date(2024, 1, 1) + timedelta(int(day)) for day in days)
        return table_of(200, seed).with_columns(born=born.cast(dtype))

    found = []
    for own in (pl.Date, pl.Datetime("ns")):
        release = shoal.publish(dated(0, own), quasi=["born", "age"], sensitive=["d"], k=4)
        for others in (pl.Date, pl.Datetime("ns")):
            asked = {"original": dated(0, own), "attacks": ["inference", "membership"]}
            said = shoal.attack(release, **asked, control=dated(1, others))["attacks"]
            found.append({name: said[name] for name in asked["attacks"]})
    assert found[0] == found[1]
    assert found[2] == found[3]


def test_rows_of_the_original_in_a_control_are_a_warning_unless_many_people_share_them():
    original = wide_table(0)
    release = shoal.publish(original, MONDRIAN)
    asked = {"original": original, "attacks": ["inference"]}
    said = "90 of 90 rows of the control are equal to rows of the original"
    with pytest.warns(shoal.ReleaseWarning, match=said) as warned:
        tried = shoal.attack(release, **asked, control=original[:90])
    assert [one.message.code for one in warned] == ["control-in-original"]
    assert said in repr(tried)
    shared = table_of(300)
    with warnings.catch_warnings():
        warnings.simplefilter("error", shoal.ReleaseWarning)
        tried = shoal.attack(release, **asked, control=wide_table(1))
        by_chance = pl.concat([wide_table(1)[1:], original[:1]])
        assert not shoal.attack(release, **asked, control=by_chance).doubts
    alike = {"original": shared, "control": table_of(300, 1), "attacks": ["inference"]}
    for found in (tried, shoal.attack(shoal.publish(shared, MONDRIAN), **alike)):
        assert "control-in-original" not in [one.code for one in found.warnings]


NUMBERS = {"role": "sensitive", "type": "number"}


@pytest.mark.parametrize(
    ("sensitive", "strange", "fits"),
    [({"role": "sensitive"}, "zzz", "a"), ({"role": "sensitive"}, "", "a"), (NUMBERS, 9000, 4.5)],
)
def test_a_control_whose_sensitive_values_nobody_has_is_refused(sensitive, strange, fits):
    original = wide_table(0)
    if "type" in sensitive:
        original = original.with_columns(d=pl.int_range(pl.len()) % 9)
    policy = policy_of(AGE_AND_D | {"d": sensitive}, 3).with_method("mondrian")
    asked = {"original": original, "attacks": ["inference"]}
    release, control = shoal.publish(original, policy), wide_table(1)
    with pytest.raises(InputError, match="control: none of its values of 'd' is among those of"):
        shoal.attack(release, **asked, control=control.with_columns(d=pl.lit(strange)))
    shoal.attack(release, **asked, control=control.with_columns(d=pl.lit(fits)))


def test_people_of_the_original_in_a_control_are_refused():
    people = shoal.sample("patients", n=200, seed=1)
    words = {"quasi": ["age", "sex"], "sensitive": "disease", "subject": "patient"}
    release = shoal.publish(people, **words, other="drop", k=5)
    with pytest.raises(InputError) as refused:
        shoal.attack(release, original=people, control=people[:40], attacks=["inference"])
    assert str(refused.value) == (
        "control: 39 people are in the original, too, by 'patient'; leave them out, or nothing is"
        " compared with people who are not in the release"
    )


@pytest.mark.parametrize("beside", ["control", "external", "others"])
def test_people_of_the_original_in_another_spelling_are_refused(beside):
    people = shoal.sample("patients", n=200, seed=1)
    words = {"quasi": ["age", "sex"], "sensitive": "disease", "subject": "patient", "k": 5}
    release = shoal.publish(people, **words, other="drop", method="mondrian")
    spelled = people.with_columns(pl.col("patient").str.to_lowercase())
    if beside == "others":
        again = {"release": release.data, "original": spelled, "trace": release.trace}
        given = {"others": [again | {"policy": release.policy}], "attacks": ["intersection"]}
    else:
        given = {beside: spelled[:40], "attacks": ["inference", "linkability"]}
    with pytest.raises(InputError, match=r"of its people are those of .*, but for capitals"):
        shoal.attack(release, original=people, **given)


def test_a_list_finds_people_whose_ids_have_blanks_around_them():
    people = shoal.sample("patients", n=200, seed=1)
    words = {"quasi": ["age", "sex"], "sensitive": "disease", "subject": "patient", "k": 5}
    release = shoal.publish(people, **words, other="drop", method="mondrian")
    found = [
        shoal.attack(release, original=people, attacks="linkability", external=listed)
        for listed in (people, people.with_columns(pl.col("patient") + " "))
    ]
    plain, spaced = (one["attacks"]["linkability"]["external"] for one in found)
    assert plain == spaced
    assert plain["success"]["share"] > 0
    said = " ".join(attack_lines(found[0]))
    assert "has the list that was given, with age, sex" in said


def test_without_a_method_there_is_no_control_and_a_reason():
    found = six("inference", "membership")
    assert found["control"]["kind"] == "none"
    assert "names a method, so nothing can be published again" in found["control"]["reason"]
    assert found["membership"]["advantage"] is None
    assert found["membership"]["why"] == found["control"]["reason"]
    gain = found["inference"]["d"]["attackers"]["bayes"]["gain"]
    member = found["inference"]["d"]["attackers"]["bayes"]["member"]
    assert share(gain) == pytest.approx(share(member) - 0.5, abs=1e-4)


def test_a_method_that_is_not_known_here_is_no_control_and_print_says_so(tmp_path):
    people = shoal.sample("patients", n=200, seed=1)
    words = {"quasi": ["age", "sex"], "sensitive": "disease", "other": "drop", "k": 5}
    release = shoal.publish(people, **words)
    path = tmp_path / "released.csv"
    trace = tmp_path / "trace.jsonl"
    release.save(path, trace=trace)
    own = release.policy.model.model_dump(mode="json", exclude_unset=True)
    policy = own | {"method": {"name": "of-my-own"}}
    found = shoal.attack(path, policy=policy, original=people, trace=trace, attacks=["inference"])
    reason = found["attacks"]["control"]["reason"]
    assert reason == (
        "the policy's method is not known here; if it is your own, install its package"
    )
    assert f"compared with nobody who is not in the release ({reason})" in str(found)


# What can't be asked


@pytest.mark.parametrize(
    ("asked", "more", "said"),
    [
        ("inferense", {}, "did you mean 'inference'"),
        ("inference:tolerance=2", {}, "parameter 'tolerance' must be at most 1"),
        ("inference", {"control": pl.DataFrame({"age": [1]})}, "control: has no column 'd'"),
        ("intersection", {}, r"\(others=\)"),
    ],
)
def test_what_can_not_be_tried_is_refused(asked, more, said):
    with pytest.raises(InputError, match=said):
        six(asked, **more)


@pytest.mark.parametrize(
    "asked", ["homogeneity, skewness", {"name": "homogeneity"}, ["homogeneity"]], ids=repr
)
def test_attacks_are_asked_for_by_a_text_a_mapping_or_several(asked):
    expected = {"homogeneity", "skewness"} if isinstance(asked, str) else {"homogeneity"}
    published = shoal.publish(ORIGINAL, SIX, attack=asked)
    assert set(published.certificate["attacks"]) >= expected
    assert set(shoal.attack(RELEASED, SIX, ORIGINAL, asked)["attacks"]) >= expected


@pytest.mark.parametrize("asked", [None, True, 5, b"inference", ["inference", 5]], ids=repr)
def test_what_names_no_attack_is_refused(asked):
    with pytest.raises(InputError, match="attack: is not the name of an attack"):
        shoal.publish(ORIGINAL, SIX, attack=asked)


def test_shuffled_rows_leave_what_needs_no_alignment():
    policy = policy_of(AGE_AND_D, 3, render={"order": "shuffled"})
    found = attacked(RELEASED, policy, ORIGINAL)
    assert {"singling-out", "linkability"} <= found["skipped"].keys()
    assert share(found["inference"]["d"]["class"]) == pytest.approx(4 / 6, abs=1e-4)
    with pytest.raises(InputError, match="give the trace"):
        attacked(RELEASED, policy, ORIGINAL, "linkability")


# Several releases, the population, tight cells


FOUR = pl.DataFrame({"age": [1, 2, 3, 4], "d": list("xyyx")})
FOUR_POLICY = policy_of(AGE_AND_D, 2)


def classes_of_four(*labels):
    cells = {0: "[1, 4]", 1: "[1, 3]", 2: "[2, 4]", 3: "[0, 9]"}
    return FOUR.with_columns(age=pl.Series([cells[label] for label in labels]))


def intersected(now, earlier, original):
    others = [{"release": earlier}]
    return attacked(now, FOUR_POLICY, original, "intersection", others=others)["intersection"]


def test_who_is_suppressed_or_has_changed_is_left_out_and_counted():
    rng = np.random.default_rng(0)
    original = pl.DataFrame({"age": [1, 2] * 150, "d": rng.choice(["x", "y"], 300)})
    now = original.with_columns(age=pl.lit("[1, 2]"))
    cells = pl.Series(["*"] * 3 + ["[1, 2]"] * 297)
    other = original["d"].to_list()
    other[5] = "x" if other[5] == "y" else "y"
    earlier = now.with_columns(age=cells, d=pl.Series(other))
    found = intersected(now, earlier, original)
    assert (found["left_out"], found["changed"]) == (3, 1)
    assert share(found["linked"]["alone"]) == 0


def test_where_nobody_is_shown_in_both_releases_the_page_says_so():
    everybody = classes_of_four(0, 0, 0, 0)
    found = intersected(everybody, everybody.with_columns(age=pl.lit("*")), FOUR)
    page = rows_of(Certificate({"promises": [], "attacks": {"seed": 1, "intersection": found}}))
    assert [row.says for row in page] == [
        "intersection: nobody who is shown here is shown in the earlier release, too"
    ]


def test_releases_whose_people_do_not_correspond_are_not_compared():
    now = classes_of_four(0, 0, 3, 3)
    found = intersected(now, now[:3], FOUR)
    assert found["linked"] is None
    assert "aligned" in found["why"]


def test_people_are_found_again_by_the_originals_of_both_releases():
    """The other release is of a table in another order, whose rows say nothing about these."""
    policy = policy_of({"who": {"role": "subject"}} | AGE_AND_D, 2)
    original = FOUR.with_columns(who=pl.Series(list("abcd")))
    now, then = classes_of_four(0, 0, 3, 3), classes_of_four(0, 3, 0, 3)
    order = [2, 0, 3, 1]
    named = then.with_columns(original["who"])
    by_name = attacked(now, policy, original, "intersection", others=[{"release": named}])
    trace = np.arange(4)
    other = {"release": then[order], "original": original[order], "trace": trace}
    by_original = attacked(now, policy, original, "intersection", others=[other])
    assert by_original["intersection"] == by_name["intersection"]
    assert by_original["intersection"]["aligned_by"] == "subject"
    assert share(by_original["intersection"]["linked"]["alone"]) == 1
    nobody = policy_of({"who": {"role": "drop"}} | AGE_AND_D, 2)
    with pytest.raises(InputError, match="leave out 'original'"):
        attacked(now, nobody, original, "intersection", others=[other])


@pytest.mark.parametrize("seed", range(4))
def test_somebody_in_several_classes_hides_among_whoever_is_in_all_of_them(seed):
    rng = np.random.default_rng(seed)
    drawn = {"who": rng.integers(0, 12, 30), "age": rng.integers(1, 9, 30)}
    original = pl.DataFrame(drawn | {"d": rng.choice(list("xyz"), 30)})
    spans = [[(1, 4), (5, 8)], [(1, 2), (3, 6), (7, 8)]]
    labels = [
        [next(i for i, (a, b) in enumerate(cut) if a <= age <= b) for age in original["age"]]
        for cut in spans
    ]
    now, then = (
        original.drop("who").with_columns(
            age=pl.Series([f"[{a}, {b}]" for a, b in map(cut.__getitem__, own)])
        )
        for cut, own in zip(spans, labels, strict=True)
    )
    rows = list(zip(original["who"], *labels, original["d"], strict=True))
    classes = {
        who: {(j, row[1 + j]) for row in rows if row[0] == who for j in (0, 1)} for who, *_ in rows
    }
    left = {who: [other for other in classes if classes[who] <= classes[other]] for who in classes}
    certain, right = 0, 0.0
    for who, fit in left.items():
        shown = [{row[3] for row in rows if row[0] == other} for other in fit]
        counts = {value: sum(value in one for one in shown) for value in "xyz"}
        best = [value for value, count in counts.items() if count == max(counts.values())]
        own = [row[3] for row in rows if row[0] == who]
        certain += len(set().union(*shown)) == 1
        right += sum(value in best for value in own) / len(own) / len(best)
    other = {"release": then, "original": original, "trace": np.arange(30)}
    policy = policy_of({"who": {"role": "subject"}} | AGE_AND_D, 3)
    found = attacked(now, policy, original, "intersection", others=[other])["intersection"][
        "linked"
    ]
    shares = [found["alone"], found["below_k"], *found["attributes"]["d"].values()]
    fewer = [sum(len(fit) < most for fit in left.values()) for most in (2, 3)]
    assert [one["share"] * len(left) for one in shares] == pytest.approx(
        [*fewer, certain, right], abs=1e-3
    )


@pytest.mark.parametrize(
    ("people", "fraction", "expected"),
    [(1, 0.5, 0.6931), (2, 0.5, 0.3069), (10, 0.5, 0.0525), (1, 0.1, 0.2558)],
)
def test_the_expected_share_of_a_population_is_the_published_one(people, fraction, expected):
    found = individual_risk(np.array([people]), np.array([people / fraction]))
    assert found[0] == pytest.approx(expected, abs=5e-5)


def population(tmp_path, ages, **block):
    pl.DataFrame({"age": ages}).write_csv(tmp_path / "all.csv")
    policy = FOUR_POLICY.model.model_dump(exclude_unset=True)
    return Policy.from_dict(policy | {"population": block}, tmp_path)


@pytest.mark.parametrize("estimator", [None, "pitman", "zayatz", "snb"])
def test_uniques_of_the_population_are_estimated_as_by_the_promise(estimator):
    ages = (1000 * np.random.default_rng(3).beta(0.3, 2, 300)).astype(int)
    original = pl.DataFrame({"age": ages, "d": ["x"] * 300})
    named = {} if estimator is None else {"estimator": estimator}
    attributes = {"age": {"role": "quasi", "domain": [0, 999]}, "d": {"role": "sensitive"}}
    policy = policy_of(attributes, population={"fraction": 0.3, **named})
    found = attacked(original, policy, original, "population")["population"]
    asked = {"model": "population-uniqueness", "threshold": 1, "fraction": 0.3, **named}
    certificate = shoal.audit(original, policy.with_promises([asked]))
    expected = certificate["promises"][0]["measured"]
    assert 0 < expected < 1
    assert found["uniques"] == pytest.approx(expected, abs=6e-5)
    assert found["estimator"] == (estimator or "pitman")
    assert f"population-uniqueness by {found['estimator']}: asked 1" in summary(certificate)


FIVE = pl.DataFrame({"age": [1, 2, 5, 6, 7], "d": list("xyxyx")})
FIVE_RELEASED = FIVE.with_columns(age=pl.Series(["[1, 2]"] * 2 + ["[5, 7]"] * 3))


def test_a_population_counts_who_else_could_be_meant(tmp_path):
    policy = population(tmp_path, [1, 1, 2, 2, 5, 6, 7, 9], table="all.csv")
    tried = attacked(FIVE_RELEASED, policy, FIVE, "population", "membership")
    found = tried["population"]
    assert share(found["journalist_max"]) == pytest.approx(1 / 3, abs=1e-4)
    assert share(found["marketer"]) == pytest.approx(0.3)
    assert found["baseline"] == {"max": 0.5, "mean": 0.4}
    presence = tried["membership"]["presence"]  # the share of those who fit that is in it
    assert presence == {"max": 1, "mean": 0.8}


def test_a_given_control_is_named_and_counted_in_people():
    policy = policy_of({"who": {"role": "subject"}} | AGE_AND_D, 3)
    original = ORIGINAL.with_columns(who=pl.Series(list("uvwxyz")))
    control = pl.DataFrame({"who": ["k", "k", "m"], "age": [2, 3, 9], "d": list("aab")})
    found = attacked(RELEASED, policy, original, "inference", control=control)
    assert found["control"] == {"kind": "given", "people": 2, "folds": 0, "reason": None}
    cover = found["inference"]["d"]["attackers"]["cover"]
    assert cover["control"]["share"] == 0.5, "of k either record is guessed, of m none"


def test_fewer_people_than_the_release_are_no_population(tmp_path):
    policy = population(tmp_path, [1, 5, 6, 7], table="all.csv")
    found = attacked(FIVE_RELEASED, policy, FIVE, "population")["population"]
    assert found["marketer"] is None
    assert "not the population" in found["why"]


def test_frequencies_say_what_they_do_not_model(tmp_path):
    pl.DataFrame({"age": [1, 2, 9], "share": [0.25, 0.25, 0.5]}).write_csv(tmp_path / "freq.csv")
    policy = population(tmp_path, [1], frequencies="freq.csv", column="share", people=8)
    found = attacked(FIVE_RELEASED, policy, FIVE, "population")["population"]
    assert share(found["unmodelled"]) == 0.6
    assert share(found["marketer"]) == pytest.approx((2 / 4 + 3 / 3) / 5)


def test_tight_ends_of_six_people_are_values_of_somebody_and_no_method_is_replayed():
    found = six("minimality")["minimality"]
    assert share(found["implied"]) == pytest.approx(4 / 6, abs=1e-4)
    assert found["replay"]["excluded"] is None
    assert "no account" in found["replay"]["why"]


def test_cells_that_are_not_tight_imply_nothing():
    original = ORIGINAL.with_columns(age=pl.Series([2, 2, 3, 6, 6, 9]))
    found = attacked(RELEASED, SIX, original, "minimality")["minimality"]
    assert found["implied"] is None
    assert "wider than the values in them" in found["why"]


def test_a_node_of_two_children_implies_both():
    tree = {"tree": {"any": {"left": ["p", "q"], "right": ["r"]}}}
    policy = policy_of({"leaf": {"role": "quasi", "hierarchy": tree}, "d": {"role": "sensitive"}})
    original = pl.DataFrame({"leaf": list("pqpr"), "d": list("xyxy")})
    released = original.with_columns(leaf=pl.Series(["left", "left", "any", "any"]))
    found = attacked(released, policy, original, "minimality")["minimality"]
    assert share(found["implied"]) == 1


# What the method gives away


@pytest.mark.parametrize(
    ("method", "how"), [("mondrian", {}), ("rounded-partition", {"refine": "none"})]
)
def test_knowing_the_method_rules_out_four_of_six_ways(method, how):
    diverse = {"model": "l-diversity", "attribute": "d", "l": 2, "kind": "distinct"}
    policy = FOUR_POLICY.with_promises([{"model": "k-anonymity", "k": 2}, diverse])
    original = pl.DataFrame({"age": [1, 2, 8, 9], "d": list("HHff")})
    asked = original.with_columns(age=pl.lit("[1, 9]")), policy.with_method(method, how), original
    found = attacked(*asked, "minimality")["minimality"]["replay"]["d"]
    assert share(found["excluded"]) == pytest.approx(4 / 6, abs=1e-4)
    assert (found["posterior_right"], found["pairs"]) == (0, 1)


def forced(groups):
    """What an optimal full-domain release forces: people of each leaf, by node of two leaves."""
    nodes = {f"n{i}": [f"a{i}", f"b{i}"] for i in range(len(groups))}
    tree = {"any": nodes if len(groups) > 1 else nodes["n0"]}
    attributes = {"leaf": {"role": "quasi", "hierarchy": {"tree": tree}}, "d": AGE_AND_D["d"]}
    policy = policy_of(attributes, 2).with_method("full-domain")
    leaves = [
        leaf
        for node, counts in zip(nodes.values(), groups, strict=True)
        for leaf, count in zip(node, counts, strict=True)
        for _ in range(count)
    ]
    original = pl.DataFrame({"leaf": leaves, "d": ["x"] * len(leaves)})
    certificate = shoal.publish(original, policy, attack=["minimality"]).certificate
    return share(certificate["attacks"]["minimality"]["optimality"]["forced"])


def test_an_optimal_level_forces_a_small_part_on_the_only_class_that_can_have_it():
    assert forced([(4, 1)]) == 1
    assert forced([(2, 1), (1, 2)]) == 0, "two classes cover for each other"


# An attacker that learns, and what tables may hold


def test_an_attacker_that_learns_is_tried_when_it_is_asked_for():
    pytest.importorskip("sklearn")
    policy = MONDRIAN
    original = table_of(300)
    released = shoal.publish(original, policy).data
    found = attacked(released, policy, original, {"name": "inference", "learned": True})
    learned = found["inference"]["d"]["attackers"]["learned"]
    baseline = share(found["inference"]["d"]["baseline"])
    assert share(learned["member"]) > baseline - 0.1
    assert learned["control"]["of"] == 60
    assert "learned" not in six("inference")["inference"]["d"]["attackers"]


def people_of(n):
    rng = np.random.default_rng(5)
    ages, people = rng.integers(0, 11, n), rng.integers(0, n // 2, n)
    cells = {"x": rng.normal(size=n).round(2), "zip": rng.choice(["100", "101", "200"], n)}
    return pl.DataFrame({"p": people, "age": ages, **cells, "d": rng.choice(list("abc"), n)})


NUMBER = {"role": "quasi", "type": "number"}
ZIP = {"zip": {"role": "quasi", "hierarchy": {"prefix": 3}}}
DROP = {"role": "drop"}
ALWAYS = {"p": DROP, "age": AGE, "x": DROP, "zip": DROP, "d": {"role": "sensitive"}}


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"d": DROP}, {}),
        ({"p": {"role": "subject"}, "x": NUMBERS}, {}),
        ({"age": AGE | {"render": "mean"}}, {}),
        ({"age": AGE | {"render": "both"}, "x": NUMBER}, {}),
        (ZIP, {"missing": "value"}),
        (ZIP, {"missing": "suppress"}),
        (ZIP, {"render": {"order": "shuffled"}}),
    ],
)
def test_whatever_a_table_holds_attacks_end_with_numbers(changes, more):
    original = people_of(300)
    if "missing" in more:
        kept = pl.Series(np.arange(300) % 11 != 0)
        original = original.with_columns(pl.when(kept).then(pl.col("age", "d")))
    policy = policy_of(ALWAYS | changes, 3, **more)
    found = shoal.publish(original, policy, attack=["all"]).certificate["attacks"]
    assert found["blind"] == (["age"] if changes.get("age", {}).get("render") == "mean" else [])
    assert set(found["skipped"]) == {"intersection", "population"}
    for number in exact_numbers(found):
        assert number is None or 0 <= number <= 1


def test_no_value_is_none_of_the_values_of_a_domain():
    frame = pl.DataFrame(
        {
            "sex": ["f", "m", None] * 40 + ["x"],
            "size": ["s", "m", "l"] * 40 + ["s"],
            "ill": ["a", "b"] * 60 + ["a"],
        }
    )
    release = shoal.publish(frame, quasi=["sex", "size"], plain="ill", k=10)
    found = shoal.attack(release, original=frame, attacks=["singling-out"])["attacks"]
    # one of six values, x, is one person's
    assert found["singling-out"]["univariate_baseline"]["share"] == pytest.approx(1 / 6, abs=1e-4)


# People beside a release, some of whose values nobody in its original has

RULES = {
    "day": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "quarter", "year"]}},
    "code": {"role": "quasi", "hierarchy": {"prefix": 4}},
    "size": {"role": "quasi", "hierarchy": {"bins": {"width": 5, "levels": 5}}},
}
OTHERS = {"week": {"role": "quasi", "order": "alphabetical"}}
OTHERS["area"] = {"role": "quasi", "hierarchy": {"tree": {"east": ["a", "b"], "west": ["c", "d"]}}}
SENSITIVE = {"d": {"role": "sensitive", "hierarchy": {"prefix": 2}}}


def people(seed, *names):
    day, code, size, week, area, d = np.random.default_rng(seed).integers(0, 400, (6, 600))
    columns = {"day": (np.datetime64("2020-01-01") + day).astype(str), "size": size / 7}
    columns |= {"code": [f"J{n:03}" for n in code], "week": [f"w{n:03}" for n in week]}
    columns |= {"area": np.array([*"abcd"])[area % 4], "d": np.array(["x1", "y1", "y2"])[d % 3]}
    return pl.DataFrame(columns).select(*names, "d")


def published(*names):
    """A release of people with these quasi-identifiers, and its original."""
    policy = policy_of({name: (RULES | OTHERS)[name] for name in names} | SENSITIVE, 5)
    return shoal.publish(people(1, *names), policy.with_method("mondrian")), people(1, *names)


@pytest.mark.parametrize("names", [*([name] for name in RULES), [*RULES]])
def test_people_are_placed_by_the_rules_of_hierarchies_whatever_values_the_original_has(names):
    release, original = published(*names)
    drawn, are_known = people(2, *names), [pl.col(n).is_in(original[n].implode()) for n in names]
    known = drawn.filter(*are_known)
    assert 100 < known.height < 500
    new, old = (
        shoal.attack(release, original=original, control=one, external=one.drop("d"))["attacks"]
        for one in (drawn, known)
    )
    for measured in ("advantage", "uncovered"):
        shares = [one["membership"][measured]["share"] for one in (new, old)]
        assert shares[0] == pytest.approx(shares[1], abs=0.12), measured
    gains = [one["inference"]["d"]["gain"]["share"] for one in (new, old)]
    assert gains[0] == pytest.approx(gains[1], abs=0.12)
    median = [one["linkability"]["external"]["candidates"]["median"] for one in (new, old)]
    assert median[0] == pytest.approx(median[1], rel=0.3)


def test_places_of_an_order_are_covered_by_the_intervals_that_hold_them():
    release, original = published("week")
    spans = [cell.strip("[]").split(", ") for cell in set(release.data["week"])]
    values = people(2, "week")["week"]
    outside = np.mean([not any(s[0] <= value <= s[-1] for s in spans) for value in values])
    found = shoal.attack(release, original=original, control=people(2, "week"))["attacks"]
    assert found["membership"]["uncovered"]["share"] == pytest.approx(outside, abs=1e-4)


def test_a_category_is_covered_by_itself_and_by_its_root():
    policy = policy_of({"area": {"role": "quasi", "hierarchy": {"flat": "any"}}} | SENSITIVE)
    original = pl.DataFrame({"area": [*"aabb"], "d": [*"xyxy"]})
    others = pl.DataFrame({"area": [*"ac"], "d": [*"xy"]})
    for cells, outside in (([*"aabb"], 0.5), (["a", "a", "any", "any"], 0)):
        shown = original.with_columns(area=pl.Series(cells))
        found = attacked(shown, policy, original, "membership", control=others)
        assert found["membership"]["uncovered"]["share"] == outside


def test_people_whose_value_no_rule_places_are_left_out_of_a_control_and_counted():
    release, original = published("area")
    is_odd, some_new = pl.int_range(pl.len()) < 90, pl.col("d").str.replace("y2", "z3")
    odd = pl.when(is_odd).then(pl.lit("e")).otherwise("area").alias("area")
    control, asked = people(2, "area").with_columns(some_new), {"original": original}
    said = (
        "control: the hierarchy or order of 'area' lacks the values of 90 of 600 records, which"
        " are left out; add the values to it, or correct the records"
    )
    with pytest.warns(shoal.ReleaseWarning, match=said):
        new = shoal.attack(release, control=control.with_columns(odd), **asked)["attacks"]
    kept = shoal.attack(release, control=control[90:], **asked)["attacks"]
    assert new["control"]["people"] == kept["control"]["people"] == 510
    assert new["membership"] == kept["membership"]


@pytest.mark.parametrize("what", ["control", "external"])
def test_nobody_in_a_table_beside_a_release_is_refused_in_one_line(what):
    release, original = published("day")
    with pytest.raises(InputError) as refused:
        shoal.attack(release, original=original, **{what: people(2, "day")[:0]})
    assert str(refused.value) == f"{what}: holds no records; give it some people, or leave it out"


def test_numbers_in_the_middle_of_ranges_are_refused_as_no_published_cells():
    original = pl.DataFrame({"age": [*range(60)], "d": [*"xyz"] * 20})
    release = shoal.publish(original, quasi=["age"], sensitive="d", k=6)
    for trace in (None, release.trace):
        with pytest.raises(InputError, match=r"no record covers 60 of 60 .*`.data`, or its file"):
            shoal.attack(release.numbers("mid"), release.policy, original, trace=trace)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_cells_that_cover_no_value_have_scores_that_are_numbers():
    shown = ORIGINAL.with_columns(age=pl.Series(["[1, 6]"] * 5 + ["8.5"]))
    found = attacked(shown, SIX, ORIGINAL, "all", control=ORIGINAL)
    assert 0 <= found["inference"]["d"]["attackers"]["definetti"]["member"]["share"] <= 1


@pytest.mark.parametrize("name", ["area", "size", "d"])
def test_a_control_with_values_that_the_original_lacks_in_part_is_warned_of(name):
    original, control = people(1, "area", "size"), people(2, "area", "size")
    release = shoal.publish(original, quasi=["area", "size"], sensitive="d", k=5)
    strange = control[:90].with_columns(pl.lit(None if name == "size" else "M").alias(name))
    odd = pl.concat([strange, control[90:]], how="vertical_relaxed")
    with pytest.warns(shoal.ReleaseWarning, match=f"'{name}', 90 of 600 records have a value that"):
        found = [shoal.attack(release, original=original, control=one) for one in (odd, control)]
    stated = [[w.column for w in one.warnings if w.code == "values-unplaced"] for one in found]
    assert stated == [[name], []]


@pytest.mark.parametrize(("name", "cell"), [("day", "2031-07-07"), ("code", "K999")])
def test_a_control_of_nothing_but_new_values_is_placed_by_the_rules_too(name, cell):
    (release, original), control = published(name), people(2, name)
    new, bad = (control.with_columns(pl.lit(one).alias(name)) for one in (cell, ""))
    some = pl.concat([new[1:], original[:1]])
    found = [shoal.attack(release, original=original, control=one) for one in (new, some)]
    shares = [one["attacks"]["membership"]["uncovered"]["share"] for one in found]
    assert np.ptp(shares) < 0.01
    with pytest.raises(InputError, match="in the domain of the release; write them as in"):
        shoal.attack(release, original=original, control=bad)
