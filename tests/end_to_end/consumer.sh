#!/usr/bin/env bash
# consumer.sh BUILD_DIR SOURCE_DIR: installs hone into a fresh prefix, then builds and runs the examples against it, once
# through find_package and once through pkg-config.
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null
"$work/prefix/bin/hone" --version

export PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig:$work/prefix/lib64/pkgconfig:$work/prefix/lib/$(uname -m)-linux-gnu/pkgconfig"
for example in own_density latent; do
  cmake -S "$source/tests/consumer" -B "$work/$example" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS="${CONSUMER_FLAGS:-}" -DHONE_EXAMPLE="$source/examples/$example.cpp" >/dev/null
  cmake --build "$work/$example" >/dev/null
  "$work/$example/consumer"

  # shellcheck disable=SC2046
  c++ -std=c++20 -O2 ${CONSUMER_FLAGS:-} "$source/examples/$example.cpp" -o "$work/by-pkg-config" $(pkg-config --cflags --libs --static hone)
  "$work/by-pkg-config"
done
