"""One policy: who is the person, what an attacker could know, what is sensitive, what must hold.

A policy is read once and checked as a whole: every finding is listed, not just the first. What only
the data can tell, such as the domain of an undeclared number, is fixed when it is bound to a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from shoal.connectors import files
from shoal.data.notebook import Figures
from shoal.data.numbers import Notation
from shoal.data.option import build, method_as_written, values_of
from shoal.data.person_names import same_value
from shoal.data.regular_files import Json, path_text
from shoal.data.schema import Fields, Render
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy import consistency, given_trees, loading, registry
from shoal.policy.checked import checked
from shoal.policy.model import SHOWN, PolicyModel
from shoal.protocols import NamedMethod

if TYPE_CHECKING:
    from shoal.connectors.frames import Frame
    from shoal.policy.binding.files import PolicyTables
    from shoal.policy.from_columns import Columns, Words

DEFAULT_METHOD = "rounded-partition"
DEFAULT_OVER_HIERARCHIES = "lattice-peeling"  # and for long searches
DEFAULT_FOR_SAMPLES = "risk"
DEFAULT_FOR_CLOSENESS = {"name": "tcloseness", "aim": "spans", "scale": "range"}


@dataclass(frozen=True, repr=False)
class Policy(Figures):
    """A whole, checked policy. `base` is the folder that its paths are relative to.

    path: the file that it was read from; None where it was made in Python.
    earlier: for promises that compare with all of a growing table, how often each value of a
        sensitive attribute counts in what of it is published already.
    is_made_of_columns: whether nobody wrote it: an audit was asked about columns alone.
    is_method_open: whether parameters were set of a method that nobody named: on data where another
        one is the default, that is taken if it has these parameters, too.
    is_certified_in_order: whether a certificate states that rows are in the input's order.
    links: of one table of several, as `PolicyTables` has them.
    """

    model: PolicyModel
    base: Path = Path()
    earlier: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    is_made_of_columns: bool = False
    is_method_open: bool = False
    is_certified_in_order: bool = False
    links: Collection[str] = ()
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """The policy in a YAML, JSON or TOML file; raises InputError with every finding."""
        content = loading.read_mapping(path)
        if "parties" in content and "attributes" not in content:
            raise InputError(
                f"policy '{path}': is an agreement of several owners; 'shoal fuse' takes it"
            )
        policy = cls.from_dict(content, base=Path(path).parent, what=f"policy '{path}'")
        return replace(policy, path=Path(path))

    @classmethod
    def from_dict(
        cls, content: Mapping[str, Any], base: str | Path = ".", what: str = "policy"
    ) -> Policy:
        """A policy from plain dicts; raises InputError with every finding. what: its name there."""
        model = checked(PolicyModel, given_trees.with_written_trees(content), what)
        InputError.raise_for(consistency.contradictions(model))
        model.add_person()
        return cls(model, Path(base))

    @classmethod
    def from_columns(cls, frame: Frame, **columns: Unpack[Columns]) -> Policy:
        """What the words of `shoal.publish` say of a frame; raises InputError with all findings."""
        from shoal.policy.from_columns import words_of_frame

        return cls.of_words(words_of_frame(frame, columns))

    @classmethod
    def of_words(cls, words: Words) -> Policy:
        """The policy that the words of a call say; raises InputError with every finding."""
        policy = cls.from_dict(words.content).changed({"method": words.method})
        InputError.raise_for(words.misnamed)
        return policy

    def __repr__(self) -> str:
        """What it is about, in a line; `save` writes all of it."""
        roles = Counter(attribute.role for attribute in self.model.attributes.values())
        counted = ", ".join(f"{count} {role}" for role, count in roles.items())
        promises = ", ".join(str(promise.get("model")) for promise in self.model.promises)
        return f"<Policy of {counted}; {promises}; {loading.method_text(self.model)}>"

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Writes a policy file (YAML, or JSON by its name) that reads as this policy.

        Paths in it lead to the same files from there. Raises InputError where the file exists,
        unless `overwrite` is true.
        """
        loading.save(self.model, self.base, Path(path_text(path, "policy")), overwrite)

    def _repr_html_(self) -> str:
        return loading.as_html(self.model)

    @classmethod
    def of(cls, policy: PolicyLike, read: Mapping[str, Any] | None = None) -> Policy:
        """The policy itself, or one in a file or in plain dicts; `read` comes before its own."""
        if read is not None:
            from shoal.policy.from_columns import words_of_reading

            return cls.of(policy).changed(words_of_reading(read))
        if isinstance(policy, (str, Path)):
            return cls.load(policy)
        if isinstance(policy, dict):
            return cls.from_dict(policy)
        if not isinstance(policy, Policy):
            proposed = "; of a proposal give '.policy'" if hasattr(policy, "content") else ""
            known = "give a Policy, the path of one, or its content as dicts"
            raise InputError(f"policy: is not a policy; {known}{proposed}")
        return policy

    @property
    def named_tables(self) -> list[str]:
        """The hierarchy, population and reference tables that it reads."""
        named = (holder[key] for holder, key in loading.tables_named_in(self.model.model_dump()))
        return [path_text(self.base / name, "policy") for name in dict.fromkeys(named)]

    @property
    def files(self) -> list[str]:
        """All that is read for it, its own file first: nothing of it may be overwritten."""
        return [str(path) for path in (self.path, *self.named_tables) if path is not None]

    @cached_property
    def tables(self) -> PolicyTables:
        """Its tables, as it says that they are written."""
        from shoal.policy.binding.files import PolicyTables  # which few checks of a policy need

        return PolicyTables(self.model, self.base, self.is_made_of_columns, self.links)

    @property
    def reference(self) -> str | None:
        """The table that a stream is compared with; its path from here."""
        return None if self.model.reference is None else str(self.base / self.model.reference)

    @cached_property
    def reference_table(self) -> Table | None:
        if self.reference is None:
            return None
        return files.read(self.reference, reading=loading.reading_beside(self.model.read)).table

    @property
    def quasi(self) -> list[str]:
        return self.model.quasi

    def with_k(self, k: int) -> Policy:
        """The policy with another k: in its k-anonymity promises, or in a new one."""
        promises = [dict(promise) for promise in self.model.promises]
        for promise in promises:
            if "k" in promise and not promise.get("population"):
                promise["k"] = k
        if not any(promise["model"] == "k-anonymity" for promise in promises):
            promises.insert(0, {"model": "k-anonymity", "k": k})
        return self._with(promises=promises)

    def with_method(
        self,
        name: str | NamedMethod | None,
        settings: Mapping[str, Any] | None = None,
        may_be_absent: bool = False,
    ) -> Policy:
        """The policy with another method, or with some of its parameters changed.

        name: with parameters if need be (`mondrian:cut=nearest`, as `compare` recommends it); or a
        method of the program's own, as an object: the policy then says its name, by which this
        program alone finds it. Where it names no method and a thorough search is asked for, that is
        one which may change the number of classes. may_be_absent: as where a release is verified.
        Raises InputError for an unknown one, and where parameters do not fit a method that nobody
        named.
        """
        if not isinstance(settings, Mapping | None):
            raise InputError("method: its parameters are a dict, such as {'cut': 'nearest'}")
        if not loading.is_text(["" if name is None else name, settings]):
            raise InputError("method: its name and parameters are text; give them in UTF-8")
        if isinstance(name, str):
            name, settings = method_as_written(name, settings or {})
        is_thorough = (settings or {}).get("refine") == "thorough"
        default = DEFAULT_OVER_HIERARCHIES if is_thorough else DEFAULT_METHOD
        method = dict(self.model.method or {"name": default})
        if not isinstance(name, str | None):
            method = dict(registry.enlisted(name))
        elif name is not None and name != method["name"]:
            if not may_be_absent:
                registry.require_known(name)
            method = {"name": name}
        chosen = self._with(method=method | dict(settings or {}))
        if name is None and self.model.method is None:
            chosen.require_fit("publish")
            return replace(chosen, is_method_open=not is_thorough)
        return replace(chosen, is_method_open=name is None and self.is_method_open)

    def require_fit(self, verb: str) -> None:
        """Raises InputError where parameters do not fit the method, which nobody named."""
        known = registry.method(self.method_name, verb)
        try:
            build(known.implementation, f"method '{known.name}'", self.method_settings)
        except InputError as unfit:
            fitting = registry.methods_that_take(self.method_settings, verb)
            way_out = (
                f"name one that fits with --method: {', '.join(fitting)}"
                if fitting
                else "name another with --method, 'shoal methods' lists the parameters of all"
            )
            raise InputError(
                f"{unfit.args[0]}; nobody named a method, so this one is taken: {way_out}",
                unfit.said[1:],
            ) from None

    def as_certified(self, output: Mapping[str, Any] | None) -> Policy:
        """The policy, its rows in the input's order where a certificate says so in `output`.

        Certificates that say nothing are of a time when that was the default. None can say that
        rows can't be matched which a policy has in the input's order.
        """
        dialect = (output or {}).get("dialect")
        is_silent = "order" not in self.model.render.model_fields_set
        default = "input" if is_silent else "content"
        is_input = dialect is not None and dialect.get("order", default) == "input"
        return replace(self, is_certified_in_order=True) if is_input else self

    def or_method(self, name: str, parameters: Mapping[str, Any] | None = None) -> Policy:
        """The policy with this method, where it names none."""
        return self if self.model.method is not None else self.with_method(name, parameters)

    def with_shuffled_rows(self) -> Policy:
        """The policy, its rows not in the input's order unless it says so, as in a series.

        `shuffled` is how hashes of policies name that since the first version.
        """
        if "order" in self.model.render.model_fields_set:
            return self
        render = self.model.render.model_dump(exclude_unset=True)
        return self._with(render=render | {"order": "shuffled"})

    def with_files(self, read: Mapping[str, Any], write: Mapping[str, Any]) -> Policy:
        """The policy with some keys of its blocks `read` and `write` changed."""
        if not read and not write:
            return self
        if self.is_made_of_columns:
            consistency.require_ways_of_text(read, write)
        return self._with(
            read=self.model.read.model_dump(exclude_unset=True) | dict(read),
            write=self.model.write.model_dump(exclude_unset=True) | dict(write),
        )

    def changed(self, asked: Columns) -> Policy:
        """The policy with another k, method, seed or reading, or more signs for no value, where
        some are named; raises InputError.
        """
        from shoal.policy import from_columns as words

        policy = self if asked.get("k") is None else self.with_k(asked["k"])
        if (method := asked.get("method")) is not None:
            words.require_no_data("method", method)
            given = dict(method) if isinstance(method, Mapping) else {"name": method}
            policy = policy.with_method(given.pop("name", None), given)
        if (seed := asked.get("seed")) is not None:
            policy = policy.with_seed(seed)
        if missing := words.texts_of(asked.get("missing_values", ())):
            none = [*dict.fromkeys([*self.model.missing_values, *missing])]
            policy = policy._with(missing_values=none)
        return policy.with_files(words.said_of_reading(asked), {})

    def with_promises(self, promises: list[Json]) -> Policy:
        return self._with(promises=promises)

    def eased(self) -> Iterator[tuple[str, Policy]]:
        """The policy with one less of each k and l, and what that changes."""
        for i, promise in enumerate(self.model.promises):
            for key in ("k", "l"):
                if isinstance(promise.get(key), int) and promise[key] > 2:
                    promises = [dict(p) for p in self.model.promises]
                    promises[i][key] -= 1
                    changed = f"{promise['model']} with {key} = {promises[i][key]}"
                    yield changed, self.with_promises(promises)

    def without_quasi(self, name: str) -> Policy | None:
        """The policy without one quasi-identifier; None where a promise is about it alone."""
        promises = []
        for promise in self.model.promises:
            about = promise.get("attributes")
            left = [other for other in about if other != name] if isinstance(about, list) else about
            if about and not left:
                return None
            promises.append(dict(promise) | ({"attributes": left} if about else {}))
        settings = dict(self.method_settings)
        for key in {"minimum", "maximum"} & settings.keys():
            levels = settings[key]
            settings[key] = [one for one in levels if not str(one).startswith(f"{name}:")]
        return self.with_promises(promises).with_method(self.method_name, settings)

    def without_subject(self) -> Policy:
        """The policy in which every row is its own person."""
        if self.subject is None:
            return self
        attributes = self.model.model_dump(exclude_unset=True)["attributes"]
        if self.model.subject is None:
            attributes[self.subject] = {"role": "identifier"}
        return self._with(subject=None, attributes=attributes)

    def with_seed(self, seed: int) -> Policy:
        return self._with(seed=seed)

    def _with(self, **changes: Any) -> Policy:
        policy = Policy.from_dict(self.model.model_dump(exclude_unset=True) | changes, self.base)
        return replace(self, model=policy.model)

    @property
    def names_method(self) -> bool:
        """Whether somebody named a method, and did not only set parameters."""
        return self.model.method is not None and not self.is_method_open

    @property
    def method_name(self) -> str:
        return (self.model.method or {"name": DEFAULT_METHOD})["name"]

    @property
    def method_settings(self) -> Json:
        return {name: value for name, value in (self.model.method or {}).items() if name != "name"}

    def build_method(self, verb: str) -> Any:
        """The method with its parameters.

        Raises InputError where it does not serve the verb, or can't show means.
        """
        means = consistency.attributes_with_means(self.model)
        if means and verb != "publish":
            raise InputError(
                f"{consistency.named_as('attribute', means)}: 'render' shows means of single"
                f" tables; leave it out for '{verb}'"
            )
        if self.model.reference is not None and verb != "stream":
            raise InputError(
                f"policy: 'reference' is what a stream is compared with; leave it out for '{verb}'"
            )
        if verb != "publish" and any(p.compares_with_input for p in self.build_promises()):
            raise InputError(
                "promises: 'reference: input' is for single tables, whose records are there as a"
                f" whole; leave it out for '{verb}'"
            )
        if verb != "publish" and any(p.of_sample for p in self.build_promises()):
            raise InputError(
                "promises: individual and global risk are of a sample that is published once, by"
                f" its weights; leave them out for '{verb}'"
            )
        self.check_files(verb)
        return registry.build_method(self.method_name, verb, self.method_settings)

    def check_files(self, verb: str) -> None:
        """Raises InputError where the verb can't follow what 'read' and 'write' say."""
        InputError.raise_for(consistency.unserved_options(self.model, verb))

    @property
    def recodes_globally(self) -> bool:
        """Whether it names a method that generalizes every value the same way in all records."""
        return consistency.recodes_globally(self.model)

    def require_global(self, what: str) -> None:
        """Raises InputError where its method recodes each class on its own.

        what: is not to be had then, up to a comma.
        """
        if self.recodes_globally:
            return
        named = self.model.method is not None
        if named:
            registry.method(self.method_name, "publish")  # raises where there is none
        whose = f"method '{self.method_name}'" if named else "the default method"
        raise InputError(
            f"{what}, because {whose} recodes each class on its own; choose a method of global"
            " recoding, such as full-domain"
        )

    @property
    def is_in_two_tables(self) -> bool:
        """Whether its method shows quasi-identifiers as they are, and sensitive values apart."""
        return consistency.renders_two_tables(self.model)

    def refuse_two_tables(self, what: str) -> None:
        """Raises InputError where the release is two tables; what: that needs one."""
        if self.is_in_two_tables:
            raise InputError(
                f"{what}: is for releases of one table; method '{self.method_name}' publishes two,"
                " which show quasi-identifiers as they are"
            )

    def parameters_for(self, verb: str) -> Mapping[str, Any]:
        """Every parameter of the verb's method with the value that it takes."""
        return values_of(self.build_method(verb))

    def parameters_taken(self, verb: str) -> Mapping[str, Any]:
        """Every parameter of the verb's method with the value that it takes, for who reads a
        release and need not have the method.
        """
        return registry.parameters_taken(self.method_name, verb, self.method_settings)

    def build_promises(self) -> list[Any]:
        """The promises, as measuring instruments."""
        return [consistency.build_promise(promise) for promise in self.model.promises]

    def open_questions(self) -> list[str]:
        """A finding for each attribute or table that somebody still has to decide about."""
        links = [
            f"table '{name}': has an open question (ask); answer it by 'parent' and delete the key"
            for name, table in self.model.tables.items()
            if table.ask is not None
        ]
        return links + consistency.open_questions(self.model.attributes_of_all)

    def role_of(self, name: str) -> str:
        """What a column of the table is for, be it declared or not."""
        declared = self.model.attributes.get(name)
        if name in (self.model.subject or ()):
            return "subject"
        return str(self.model.other if declared is None else declared.role)

    def require_answers(self) -> None:
        """Raises InputError, before any data is read, while a question is open."""
        InputError.raise_for(self.open_questions())

    @property
    def notation(self) -> Notation:
        """How numbers and dates are written in the files that are read."""
        return self.model.read.notation

    @property
    def render(self) -> Render:
        """How published cells are written."""
        render = Render(**self.model.render.model_dump(), missing=self.model.missing_numbers)
        is_input = render.order == "input" or self.is_certified_in_order
        return replace(render, order="input" if is_input else "content")

    @property
    def subject(self) -> str | None:
        """The column that names the person, None where every record is its own."""
        return self._with_role("subject")

    @property
    def operation(self) -> str | None:
        """The column that says what an increment does with a record, None where all are new."""
        return self._with_role("operation")

    def _with_role(self, role: str) -> str | None:
        return next((name for name, a in self.model.attributes.items() if a.role == role), None)

    @property
    def required_k(self) -> int | None:
        """The largest k of the k-anonymity promises; None without one."""
        return max(
            (model.k for model in self.build_promises() if model.model == "k-anonymity"),
            default=None,
        )

    @property
    def least_k(self) -> int:
        """1 where weights may hide somebody who is alone in a class: no k is asked of a sample."""
        of_sample = any(promise.of_sample for promise in self.build_promises())
        return 1 if of_sample and self.required_k is None else 2

    @property
    def fields(self) -> Fields:
        """What it says of the records of a feed."""
        declared = {n: a for n, a in self.model.attributes.items() if n != self.model.person}
        people = self.model.subject_columns
        needed = {n for n, a in declared.items() if a.role in SHOWN or a.pseudonym or n in people}
        named = frozenset(people)
        other, lines = self.model.other, self.model.read.record_lines
        return Fields(tuple(declared), frozenset(needed), other, named, lines)

    @property
    def no_values(self) -> frozenset[str]:
        """The texts for no value, as sensitive values are compared."""
        return frozenset(map(same_value, self.model.no_names))


PolicyLike: TypeAlias = Policy | str | Path | Json
"""A policy, the path of one, or its content as plain dicts."""
