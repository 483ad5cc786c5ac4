"""Policies of the samples as most tests take them: a plain column, free ends, few promises."""

from typing import Any

from shoal.samples import patients, purchases

PATIENTS = (
    patients.POLICY.replace(", round: 5", "")
    .replace("ward:      {role: sensitive}", "ward:      {role: plain}")
    .partition("  - {model: p-sensitive")[0]
    + "seed: 7\n"
)
PURCHASES = purchases.POLICY.replace(
    "amount:   {role: sensitive, type: number}", "amount:   {role: plain}"
).replace("  - {model: l-diversity, attribute: amount, l: 3, kind: distinct}\n", "")
WEARABLES = """\
version: 1
attributes:
  wearer:   {role: subject}
  age:      {role: quasi, type: number, domain: [10, 100]}
  height:   {role: quasi, type: number, domain: [130, 220]}
  weight:   {role: quasi, type: number, domain: [30, 220]}
  activity: {role: sensitive}
  acc_x:    {role: sensitive, type: number}
  acc_y:    {role: sensitive, type: number}
  acc_z:    {role: sensitive, type: number}
  effort:   {role: plain}
promises:
  - {model: k-anonymity, k: 10}
seed: 7
"""


def content_of(
    attributes: dict[str, Any], k: Any = 2, /, *promises: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """A policy's content: columns by name, each its settings or its role alone, under k-anonymity
    and further promises.
    """
    named = {n: {"role": own} if isinstance(own, str) else own for n, own in attributes.items()}
    own = [{"model": "k-anonymity", "k": k}, *promises]
    return {"version": 1, "attributes": named, "promises": own, **more}
