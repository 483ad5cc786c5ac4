"""The software bill of materials in the wheel (PEP 770): `.dist-info/sboms/shoal.cdx.json`.

CycloneDX 1.6. It names Shoal and the packages that pyproject.toml asks for, with their ranges: the
wheel bundles no other package, so the installer chooses the versions. It holds no time and no
random number, so the same source gives the same bytes.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOR_DEVELOPERS = ("dev", "docs")  # extras that nobody installs to use Shoal


class BillOfMaterials(BuildHookInterface):
    """Writes the bill before a wheel is built and takes it away afterwards."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        core = self.metadata.core
        extras = {
            name: needs
            for name, needs in core.optional_dependencies.items()
            if name not in FOR_DEVELOPERS
        }
        bill = bill_of_materials(
            core.name, self.metadata.version, core.license, core.dependencies, extras
        )
        self._folder = tempfile.TemporaryDirectory(prefix="shoal-sbom-")
        path = Path(self._folder.name) / f"{core.name}.cdx.json"
        path.write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()


def bill_of_materials(
    name: str, version: str, licence: str, needs: list[str], extras: dict[str, list[str]]
) -> dict[str, Any]:
    """The bill as CycloneDX has it; a dependency is optional where only extras ask for it."""
    components: dict[str, dict] = {}
    for extra, requirements in [("", needs), *sorted(extras.items())]:
        for requirement in map(Requirement, sorted(requirements)):
            package = canonicalize_name(requirement.name)
            component = components.setdefault(
                package,
                {
                    "type": "library",
                    "bom-ref": f"pkg:pypi/{package}",
                    "name": package,
                    "purl": f"pkg:pypi/{package}",
                    "scope": "optional" if extra else "required",
                    "properties": [],
                },
            )
            asked = (
                f"{requirement.specifier}; extra == '{extra}'"
                if extra
                else str(requirement.specifier)
            )
            component["properties"].append({"name": f"{name}:requirement", "value": asked})
    own = f"pkg:pypi/{name}@{version}"
    bill: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": name,
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": licence}}],
            }
        },
        "components": [components[package] for package in sorted(components)],
        "dependencies": [
            {"ref": own, "dependsOn": sorted(part["bom-ref"] for part in components.values())}
        ],
    }
    bill["serialNumber"] = (
        f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill, sort_keys=True))}"
    )
    return bill
