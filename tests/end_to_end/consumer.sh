#!/usr/bin/env bash
# consumer.sh BUILD_DIR SOURCE_DIR: installs hone into fresh prefixes, with and without the program, and builds and runs
# the examples against them through find_package and pkg-config. Then configures the library alone, static and shared,
# with every package of the program out of reach.
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }

# by_cmake PREFIX EXAMPLE: builds and runs an example through find_package.
by_cmake() {
  cmake -S "$source/tests/consumer" -B "$1-$2" -DCMAKE_PREFIX_PATH="$1" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS="${CONSUMER_FLAGS:-}" -DHONE_EXAMPLE="$source/examples/$2.cpp" >/dev/null
  cmake --build "$1-$2" >/dev/null
  "$1-$2/consumer"
}

# by_pkg_config PREFIX EXAMPLE: the same through pkg-config.
by_pkg_config() {
  local path="$1/lib/pkgconfig:$1/lib64/pkgconfig:$1/lib/$(uname -m)-linux-gnu/pkgconfig"
  # shellcheck disable=SC2046
  c++ -std=c++20 -O2 ${CONSUMER_FLAGS:-} "$source/examples/$2.cpp" -o "$1-$2-pkg" \
    $(PKG_CONFIG_PATH="$path" pkg-config --cflags --libs --static hone)
  "$1-$2-pkg"
}

echo "== the library alone"
cmake --install "$build" --component library --prefix "$work/library" >/dev/null
[[ ! -e $work/library/bin ]] || fail "the component 'library' installs programs"
config=$(find "$work/library" -name hone-config.cmake)
others=$(sed -n 's/^ *find_dependency(\([A-Za-z0-9]*\).*/\1/p' "$config" | grep -vx -e Threads -e CUDAToolkit || true)
[[ -z $others ]] || fail "hone-config.cmake looks for $others"
by_cmake "$work/library" own_density
by_pkg_config "$work/library" latent
for example in "$source"/examples/*.cpp; do  # installed headers are enough for all but the one that needs Eigen
  [[ $example == */autodiff.cpp ]] || c++ -std=c++20 -fsyntax-only -I"$work/library/include" "$example"
done

echo "== library and program"
cmake --install "$build" --prefix "$work/all" >/dev/null
"$work/all/bin/hone" --version
share=$work/all/share
[[ -f $share/hone/configs/best/vae-mnist.toml ]] || fail "configs/ is not installed"
for page in hone hone-train hone-data-show; do
  grep -q '^\.SH OPTIONS' "$share/man/man1/$page.1" || fail "$page.1 is not installed, or has no options"
done
grep -q -e '\\-\\-tensorboard' "$share/man/man1/hone-train.1" || fail "hone-train.1 does not know --tensorboard"
complete_words() {  # what bash offers for the last word
  bash -c 'source "$0/bash-completion/completions/hone"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hone; echo "${COMPREPLY[*]}"' \
    "$share" "$@"
}
[[ $(complete_words hone tra) == train ]] || fail "bash: hone tra"
[[ $(complete_words hone train x.toml --tens) == --tensorboard ]] || fail "bash: hone train --tens"
[[ $(complete_words hone data ver) == verify ]] || fail "bash: hone data ver"
head -1 "$share/zsh/site-functions/_hone" | grep -qx '#compdef hone' || fail "zsh: no completion"
if command -v zsh >/dev/null; then zsh -n "$share/zsh/site-functions/_hone"; fi
by_cmake "$work/all" own_density

echo "== the library configures without the program's packages"
without=()
for package in CLI11 CURL JPEG PNG ZLIB fmt nlohmann_json tomlplusplus GTest; do
  without+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
done
for shared in OFF ON; do
  cmake --no-warn-unused-cli -S "$source" -B "$work/configured-$shared" -DHONE_BUILD_PROGRAM=OFF -DHONE_CUDA=OFF -DBUILD_SHARED_LIBS=$shared \
    "${without[@]}" >/dev/null
done
