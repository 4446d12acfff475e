#!/usr/bin/env bash
# run.sh BUILD [later]: makes a wheel that is linked with the libraries of the build folder, installs it into a fresh virtual
# environment, and runs the tests of the Python package there. With `later`, a Python from 3.12 on is looked for: its wheel is
# abi3 and its ArviZ 1.x; the tests of package and results run there, and a fit on every other such Python. Ends with 77
# (skipped) if PyPI cannot be reached or there is no such Python.
set -euo pipefail
build=$1
which=${2:-all}
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHON=python3
needed=(-r "$source/tests/python/requirements.txt")
tests=("$source/tests/python")
others=()

if [ "$which" = later ]; then
  for found in python3.12 python3.13 python3.14 "$HOME"/.pyenv/versions/3.1[2-9].*/bin/python; do
    "$found" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && others+=("$found")
  done
  if [ ${#others[@]} = 0 ]; then
    echo "python: there is no Python from 3.12 on: its wheel and ArviZ 1.x were not tested" >&2
    exit 77
  fi
  PYTHON=${others[0]}
  needed=("arviz>=1" auditwheel h5netcdf h5py matplotlib numpy pytest scipy xarray)
  tests=("$source/tests/python/test_package.py" "$source/tests/python/test_result.py")
fi

# The wheel is compiled while packages are on their way.
"$source/scripts/wheel" "$work/dist" "$build" >"$work/log" 2>&1 &
wheel=$!
"$PYTHON" -m venv "$work/env"
if ! "$work/env/bin/pip" install -q --no-compile "${needed[@]}"; then
  echo "python: the packages that the tests need cannot be installed from PyPI: the Python package was not tested" >&2
  wait "$wheel" || true
  exit 77
fi
# Others that load the libraries that hone compiles; tests say so if one is missing.
[ "$which" = later ] || for peer in bridgestan nutpie walnutpie; do
  "$work/env/bin/pip" install -q --no-compile "$peer" || echo "python: $peer cannot be installed from PyPI" >&2
done
status=0
wait "$wheel" || status=$?
cat "$work/log"
[ "$status" = 0 ] || exit "$status"
wheel=$(echo "$work"/dist/*.whl)
"$work/env/bin/pip" install -q --no-compile --no-deps "$wheel"

cd "$work"  # not in the source tree: the installed package is what is tested
for python in "${others[@]:1}"; do  # one wheel serves all of them
  "$python" -m venv "$work/other"
  "$work/other/bin/pip" install -q --no-compile "$wheel"
  "$work/other/bin/python" -c "import sys, hone; print('python', sys.version.split()[0], 'fits too:',
    hone.fit(lambda z: (-0.5 * (z * z).sum(-1), -z), dim=2, seed=1, progress=False).verdict)"
  rm -rf "$work/other"
done

# Stan models are kept with those of the other tests.
mkdir -p "$work/cache/hone" "$HONE_STAN_CACHE"
ln -s "$HONE_STAN_CACHE" "$work/cache/hone/stan"
export XDG_CACHE_HOME="$work/cache" MPLBACKEND=Agg HONE_SOURCE="$source" HONE_WHEEL="$wheel" PYTHONWARNINGS=default
"$work/env/bin/python" -m pytest -q -p no:cacheprovider --basetemp="$work/pytest" --durations=8 -rs "${tests[@]}"
