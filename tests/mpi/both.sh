#!/usr/bin/env bash
# both.sh BUILD: the long tests of several ranks, with a module for each of Debian's two MPI implementations.
set -euo pipefail

build=$(realpath "$1")
cd "$(dirname "$0")/../.."
for mpi in openmpi mpich; do
  mkdir -p "$build/$mpi"
  mpicxx.$mpi -std=c++20 -O2 -shared -fPIC -I. -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX hone/mpi/mpi_ranks.cpp -o "$build/$mpi/libhone_mpi.so"
  echo "== $mpi"
  HONE_MPI_MODULE=$build/$mpi/libhone_mpi.so MPIRUN=mpirun.$mpi tests/mpi/ranks.sh "$build/bin/hone" "${2:-long}"
done
HONE_MPI_MODULE=$build/openmpi/libhone_mpi.so tests/mpi/network.sh "$build/bin/hone" || [ $? = 77 ]
