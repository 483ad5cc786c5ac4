"""The promises of a policy, measured on a release."""

from __future__ import annotations

from typing import Any

from shoal.auditor.reference import Measures
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.policy.policy import Policy
from shoal.privacy.two_tables import Groups


def promise_reports(
    policy: Policy,
    schema: Schema,
    release: Release,
    released: Table,
    measures: Measures | Groups | None = None,
) -> list[dict[str, Any]]:
    """Every promise as the certificate states it; t-closeness to the reference that is declared.

    measures: as in `measure`.
    """
    models = policy.build_promises()
    if measures is None:
        close = [model for model in models if model.model == "t-closeness"]
        if policy.reference_table is None or not close:
            return [model.report(release.classes) for model in models]
        measures = Measures(close, schema, policy.reference_table)
    return [measures.report(model, release, released.frame) for model in models]
