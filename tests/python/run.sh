#!/usr/bin/env bash
# run.sh BUILD [later|torch|torch-at-hand|sanitized]: makes a wheel that is linked with the libraries of the build folder,
# installs it into a fresh virtual environment, and runs the tests of the Python package there.
#   later      with a Python from 3.12 on, if there is one: its wheel is abi3 and its ArviZ 1.x; the tests of names, package
#              and results run there, and a fit on every other such Python
#   torch      the tests that need PyTorch, which on PyPI is for CUDA: 6 GB
#   torch-at-hand  the same with the PyTorch of this Python, or of Debian's
#   sanitized  BUILD is of the preset asan: the module is built for the sanitizers too, and the core tests run
# Ends with 77 (skipped) if PyPI cannot be reached, or there is no such Python or PyTorch.
set -euo pipefail
build=$(cd "$1" && pwd)
which=${2:-all}
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHON=python3
needed=(-r "$source/tests/python/requirements.txt")
tests=("$source/tests/python")
chosen=()
others=()
environment=()
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
export HONE_PROGRAM=${HONE_PROGRAM:-$build/bin/hone} HONE_FAKES=${HONE_FAKES:-$build/tests}
export HONE_STAN_CACHE=${HONE_STAN_CACHE:-$(cached HONE_STAN_CACHE)}

test_files() { for name in "$@"; do echo "$source/tests/python/test_$name.py"; done; }
case $which in
  all) ;;
  later)
    for found in python3.12 python3.13 python3.14 "$HOME"/.pyenv/versions/3.1[2-9].*/bin/python; do
      "$found" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && others+=("$found")
    done
    if [ ${#others[@]} = 0 ]; then
      echo "python: there is no Python from 3.12 on: its wheel and ArviZ 1.x were not tested" >&2
      exit 77
    fi
    PYTHON=${others[0]}
    needed=("arviz>=1" auditwheel h5netcdf h5py matplotlib numpy pytest scipy xarray)
    mapfile -t tests < <(test_files names package result) ;;
  torch|torch-at-hand)
    if [ "$which" = torch-at-hand ]; then
      "$PYTHON" -c 'import torch' 2>/dev/null || PYTHON=/usr/bin/python3
      if ! "$PYTHON" -c 'import torch' 2>/dev/null; then
        echo "skipped: torch is not installed (Debian: python3-torch); tests/python/run.sh BUILD torch runs its tests, with 6 GB from PyPI" >&2
        exit 77
      fi
      environment+=(--system-site-packages)
    fi
    needed=(numpy onnxruntime pytest safetensors torch)
    mapfile -t tests < <(test_files backends convolutions models use)
    chosen=(-k torch) ;;
  sanitized)  # without packages that are not: NumPy is in every test
    needed=(nanobind numpy pytest scipy scikit-learn)
    mapfile -t tests < <(test_files fit interrupts models names result robust sklearn validation)
    # A process of half the memory, and ratios of memory, mean something else here.
    chosen=(-k "not second_copy and not constant_memory and not leak and not nothing_behind and not installed and not ends_a_compiler") ;;
  *) echo "run.sh: '$which': expected later, torch, torch-at-hand or sanitized" >&2; exit 2 ;;
esac

"$PYTHON" -m venv "${environment[@]}" "$work/env"
python=$work/env/bin/python
# If this Python is itself a virtual environment's, the new one has not its packages.
if [ "$which" = torch-at-hand ] && ! "$python" -c 'import torch' 2>/dev/null; then
  echo "skipped: torch is installed in a virtual environment; its tests need one of the system's Python" >&2
  exit 77
fi

# The wheel is compiled while packages are on their way.
if [ "$which" != sanitized ]; then
  "$source/scripts/wheel" "$work/dist" "$build" >"$work/log" 2>&1 &
  wheel=$!
fi
if ! "$python" -m pip install -q --no-compile "${needed[@]}"; then
  echo "python: the packages that the tests need cannot be installed from PyPI: the Python package was not tested" >&2
  wait || true
  exit 77
fi
# Others that load the libraries that hone compiles; tests say so if one is missing.
[ "$which" != all ] || for peer in bridgestan nutpie walnutpie; do
  "$python" -m pip install -q --no-compile "$peer" || echo "python: $peer cannot be installed from PyPI" >&2
done

if [ "$which" = sanitized ]; then
  cmake -S "$source" -B "$build/python" -G Ninja -DCMAKE_BUILD_TYPE="$(cached CMAKE_BUILD_TYPE)" -DCMAKE_CXX_FLAGS="$(cached CMAKE_CXX_FLAGS)" \
    -DHONE_CUDA=OFF -DHONE_BUILD_PYTHON=ON -DHONE_BUILD_PROGRAM=OFF -DHONE_PREBUILT="$build" -DPython_EXECUTABLE="$python" \
    -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" >"$work/log"
  cmake --build "$build/python" --target _hone >>"$work/log" || { cat "$work/log" >&2; exit 1; }
  package=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/hone
  mkdir "$package"
  cp "$source"/python/hone/*.py "$build"/python/python/_hone*.so "$package"
  # Python itself is not sanitized: the library comes first, libstdc++ with it for its exceptions; what Python keeps is no leak.
  compiler=$(cached CMAKE_CXX_COMPILER)
  export LD_PRELOAD="$("$compiler" -print-file-name=libasan.so) $("$compiler" -print-file-name=libstdc++.so)"
  export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
else
  status=0
  wait "$wheel" || status=$?
  cat "$work/log"
  [ "$status" = 0 ] || exit "$status"
  wheel=$(echo "$work"/dist/*.whl)
  "$python" -m pip install -q --no-compile --no-deps "$wheel"
  export HONE_WHEEL=$wheel
fi

cd "$work"  # not in the source tree: the installed package is what is tested
for other in "${others[@]:1}"; do  # one wheel serves all of them
  "$other" -m venv "$work/other"
  "$work/other/bin/pip" install -q --no-compile "$wheel"
  "$work/other/bin/python" -c "import sys, hone; print('python', sys.version.split()[0], 'fits too:',
    hone.fit(lambda z: (-0.5 * (z * z).sum(-1), -z), dim=2, seed=1, progress=False).verdict)"
  rm -rf "$work/other"
done

# Stan models are kept with those of the other tests.
mkdir -p "$work/cache/hone" "$HONE_STAN_CACHE"
ln -s "$HONE_STAN_CACHE" "$work/cache/hone/stan"
export XDG_CACHE_HOME="$work/cache" MPLBACKEND=Agg HONE_SOURCE="$source" PYTHONWARNINGS=default
"$python" -m pytest -q -p no:cacheprovider --basetemp="$work/pytest" --durations=8 -rs "${chosen[@]}" "${tests[@]}"
