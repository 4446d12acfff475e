#!/usr/bin/env bash
# headers.sh BUILD_DIR CXX: installs the library into a fresh prefix and checks its headers: at most 45; hone/hone.hpp
# includes all of them; they include the standard library and each other, nothing else; each compiles alone.
set -euo pipefail
build=$1
export CXX=$2
most=45
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --component library --prefix "$work" >/dev/null
cd "$work/include"
mapfile -t headers < <(find hone -name '*.hpp' | sort)
failed=0
fail() { echo "$*" >&2; failed=1; }

count=${#headers[@]}
((count <= most)) || fail "$count headers are installed; at most $most are allowed"
((count > 1)) || fail "only $count headers are installed"
for header in "${headers[@]}"; do
  if [[ $header != hone/hone.hpp ]] && ! grep -qxF "#include \"$header\"" hone/hone.hpp; then
    fail "hone/hone.hpp does not include $header"
  fi
  while IFS= read -r line; do
    if [[ $line =~ ^\#include\ \"(hone/[^\"]+)\" ]]; then
      [[ -f ${BASH_REMATCH[1]} ]] || fail "$header includes ${BASH_REMATCH[1]}, which is not installed"
    elif ! [[ $line =~ ^\#include\ \<[a-z_]+\> ]]; then
      fail "$header: $line: neither the standard library nor hone"
    fi
  done < <(grep -E '^[[:space:]]*#[[:space:]]*include' "$header" || true)
  # Names of the application's packages, comments aside.
  if sed 's://.*::' "$header" | grep -nEiw 'fmt|nlohmann|json|toml|curl|z?png|netcdf|cli|zlib' >&2; then
    fail "$header names a package that only the application needs"
  fi
done

# A type that the headers declare but do not define is opaque: no function may take or return one by value.
mapfile -t opaque < <(sed -nE 's/^(class|struct|enum class) ([A-Za-z]+);.*/\2/p' "${headers[@]}" | sort -u)
for name in "${opaque[@]}"; do
  grep -qE "^(class|struct|enum class) $name\b[^;]*\{" "${headers[@]}" && continue
  sed 's://.*::' "${headers[@]}" | grep -E "(^|[ (<,])$name ([a-z_]+)[ (;,=)]" >&2 && fail "$name is used by value, but no installed header defines it"
done

((failed == 0)) || exit 1

compile() {
  echo "#include \"$1\"" | "$CXX" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror -I. -x c++ - ||
    { echo "$1 does not compile alone" >&2; return 1; }
}
export -f compile
printf '%s\0' "${headers[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'compile "$0"' || failed=1

# Every name that an application can link to is in namespace hone: nothing is installed beside hone/.
[[ $(ls) == hone ]] || fail "something is installed beside include/hone: $(ls)"
((failed == 0)) || exit 1
echo "$count headers"
