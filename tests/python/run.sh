#!/usr/bin/env bash
# run.sh BUILD: makes a wheel that is linked with the libraries of the build folder, installs it into a fresh virtual
# environment, and runs the tests of the Python package there. Ends with 77 (skipped) if PyPI cannot be reached.
set -euo pipefail
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export PIP_DISABLE_PIP_VERSION_CHECK=1
python3 -m venv "$work/env"
if ! "$work/env/bin/pip" install -q --no-compile -r "$source/tests/python/requirements.txt"; then
  echo "python: the packages that the tests need cannot be installed from PyPI: the Python package was not tested" >&2
  exit 77
fi
# Others that load the libraries that hone compiles; tests say so if one is missing.
for peer in bridgestan nutpie walnutpie; do
  "$work/env/bin/pip" install -q --no-compile "$peer" || echo "python: $peer cannot be installed from PyPI" >&2
done
"$source/scripts/wheel" "$work/dist" "$build"
wheel=$(echo "$work"/dist/*.whl)
"$work/env/bin/pip" install -q --no-compile --no-deps "$wheel"

# Stan models are kept with those of the other tests.
mkdir -p "$work/cache/hone" "$HONE_STAN_CACHE"
ln -s "$HONE_STAN_CACHE" "$work/cache/hone/stan"
cd "$work"  # not in the source tree: the installed package is what is tested
export XDG_CACHE_HOME="$work/cache" MPLBACKEND=Agg HONE_SOURCE="$source" HONE_WHEEL="$wheel" PYTHONWARNINGS=default
exec "$work/env/bin/python" -m pytest -q -p no:cacheprovider --basetemp="$work/pytest" --durations=8 -rs "$source/tests/python"
