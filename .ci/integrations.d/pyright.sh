#!/usr/bin/env bash
# Pyright over an editable install: no error, every file read, and every import of vcpo_bench resolved.
# minutes: 1.5
# covers: *.py *.pyi pyproject.toml .types/*
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
export PATH="$venv/bin:$PATH"
pip install --no-compile --quiet -e '.[test]' 'pyright[nodejs]==1.1.414'
pyright --outputjson >"$venv/found.json" || true  # judged below: it also ends with 0 when it has read nothing
python - "$venv/found.json" <<'PYTHON'
import json
import sys
from pathlib import Path

found = json.loads(Path(sys.argv[1]).read_text())
wrong = [
    one
    for one in found["generalDiagnostics"]
    if one["severity"] == "error" or (one.get("rule") == "reportMissingImports" and '"vcpo_bench' in one["message"])
]
for one in wrong:
    place = Path(one["file"]).relative_to(Path.cwd())
    print(f"{place}:{one['range']['start']['line'] + 1}: {one['message']} ({one.get('rule', '')})")
links = Path(".types/vcpo_bench")
modules = [path for top in links.iterdir() for path in (top.rglob("*.py") if top.is_dir() else [top])]
read = found["summary"]["filesAnalyzed"]
print(f"{read} files read, {len(wrong)} errors")
sys.exit(bool(wrong) or read < len(modules))
PYTHON
