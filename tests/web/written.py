"""Every file that the page may write, as its description names them."""

import re

WRITTEN = re.compile(
    r"(project|policy|release)\.yaml|history(/\d{4}\.yaml|/by-hand-\w+\.yaml)?"
    r"|hierarchies(/[\w-]+\.csv)?|runs(/\d{4}(/(policy\.yaml|run\.json|events\.jsonl|data\.csv"
    r"|people\.npz|trace\.jsonl|certificate\.json|report\.html|shown\.json|hierarchies(/[\w-]+\.csv)?))?)?"
    r"|\.ui(/(lock|open\.html|seen\.json|looked\.json|compared\.json|people\.key"
    r"|released(/[\d-]+\.(npz|draft))?))?"
)
RELEASED = re.compile(
    r"releases(/[\d-]+(/(data(-semicolons)?\.(csv|xlsx|parquet)|data\.csv\.certificate\.json|report\.html|policy\.yaml"
    r"|dossier\.(html|json)|for-the-recipient\.zip))?)?|runs/\d{4}/(signed|prices)\.json"
)


def others_in(folder) -> list[str]:
    """Files of a project that are not among these."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    return [n for n in names if not WRITTEN.fullmatch(n) and not RELEASED.fullmatch(n)]
