#!/usr/bin/env bash
# bandit over the package, every finding fixed or explained in .ci/bandit.txt; pip-audit over what an installation brings.
# minutes: 2
# covers: *.py pyproject.toml .ci/bandit.txt .ci/explained.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv" && python3 -m venv "$venv/audited"
"$venv/bin/pip" install --no-compile --quiet bandit==1.8.6 pip-audit==2.9.0
"$venv/audited/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' .

# asserts state what types cannot and never check input; subprocesses get lists of arguments and no shell
git ls-files '*.py' ':!tests' | xargs "$venv/bin/bandit" --quiet --skip B101,B404,B603 --format json >"$venv/found.json" || true
"$venv/bin/python" .ci/explained.py "$venv/found.json" .ci/bandit.txt

"$venv/audited/bin/pip" freeze --exclude vcpo-bench | grep == | sed 's/+[a-z0-9.]*$//' >"$venv/installed.txt"
echo 'jinja2==3.1.2' >"$venv/canary.txt"  # has known holes: without them in the answer, nothing was looked up
audit() { "$venv/bin/pip-audit" --disable-pip --no-deps --progress-spinner off --format json --requirement "$1" 2>/dev/null || true; }
if ! audit "$venv/canary.txt" | grep -q '"id": "'; then
    echo "pip-audit could not reach its database of vulnerabilities: NOTHING WAS AUDITED. Run it again with a network."
    exit 0
fi
audit "$venv/installed.txt" >"$venv/audit.json"
"$venv/bin/python" - "$venv/audit.json" <<'PYTHON'
import json
import sys
from pathlib import Path

packages = json.loads(Path(sys.argv[1]).read_text())["dependencies"]
skipped = [one["name"] for one in packages if "skip_reason" in one]
holes = [f"{one['name']} {one['version']}: {hole['id']}" for one in packages for hole in one.get("vulns", [])]
print(f"pip-audit: {len(packages) - len(skipped)} packages audited, {len(holes)} known vulnerabilities")
for line in [*holes, *(f"not audited: {name}" for name in skipped)]:
    print(line)
# a hole published today is named here; it does not block a change that has nothing to do with it
sys.exit(not packages or len(skipped) == len(packages))
PYTHON
