#!/usr/bin/env bash
# consumer.sh BUILD_DIR SOURCE_DIR: installs hone into a fresh prefix, then builds and runs the example against it, once
# through find_package and once through pkg-config.
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null
"$work/prefix/bin/hone" --version

cmake -S "$source/tests/consumer" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS="${CONSUMER_FLAGS:-}" -DHONE_EXAMPLE="$source/examples/own_density.cpp" >/dev/null
cmake --build "$work/cmake" >/dev/null
"$work/cmake/consumer"

export PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig:$work/prefix/lib64/pkgconfig:$work/prefix/lib/$(uname -m)-linux-gnu/pkgconfig"
# shellcheck disable=SC2046
c++ -std=c++20 -O2 ${CONSUMER_FLAGS:-} "$source/examples/own_density.cpp" -o "$work/by-pkg-config" $(pkg-config --cflags --libs --static hone)
"$work/by-pkg-config"
