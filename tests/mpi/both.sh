#!/usr/bin/env bash
# both.sh BUILD [PART…]: the long tests of several ranks, with a module for each of Debian's two MPI implementations. Parts: those of ranks.sh. The last lines name
# what was skipped.
set -euo pipefail

build=$(realpath "$1")
cd "$(dirname "$0")/../.."
export HONE_FAKES=$build/tests
skipped=()
run() { # run NAME COMMAND…
  local code=0 line
  echo "== $1"
  "${@:2}" 2>&1 | tee "$build/tested" || code=${PIPESTATUS[0]}
  while read -r line; do skipped+=("$1: $line"); done < <(grep "skipped" "$build/tested")
  return "$code"
}
for mpi in openmpi mpich; do
  mkdir -p "$build/$mpi"
  mpicxx.$mpi -std=c++20 -O2 -shared -fPIC -I. -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX hone/mpi/mpi_ranks.cpp -o "$build/$mpi/libhone_mpi.so"
  HONE_MPI_MODULE=$build/$mpi/libhone_mpi.so MPIRUN=mpirun.$mpi run $mpi tests/mpi/ranks.sh "$build/bin/hone" long "${@:2}"
done
# The launcher of one and the module of the other: every process would take itself for the only one.
if HONE_MPI_MODULE=$build/openmpi/libhone_mpi.so mpirun.mpich -n 2 "$build/bin/hone" eval nothing >"$build/mixed" 2>&1 ||
  ! grep -q "is not the one that started 2 ranks" "$build/mixed"; then
  cat "$build/mixed" >&2
  echo "FAILED: Open MPI's module under MPICH's launcher" >&2
  exit 1
fi
HONE_MPI_MODULE=$build/openmpi/libhone_mpi.so run network tests/mpi/network.sh "$build/bin/hone" || [ $? = 77 ]
echo "== passed; $([ ${#skipped[@]} -gt 0 ] && echo "skipped:" || echo "nothing was skipped")"
[ ${#skipped[@]} = 0 ] || printf '%s\n' "${skipped[@]}"
