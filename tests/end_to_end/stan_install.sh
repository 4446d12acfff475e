#!/usr/bin/env bash
# stan_install.sh HONE CACHE: installs today's Stan into the folder in which the tests keep their Stan models. Ends with 77
# (skipped) if PyPI cannot be reached.
set -euo pipefail
hone=$1
cache=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/hone" "$cache"
ln -s "$cache" "$work/hone/stan"
export XDG_CACHE_HOME=$work
if ! "$hone" stan install 2>"$work/messages"; then
  cat "$work/messages" >&2
  grep -q "pip cannot download" "$work/messages" || exit 1
  exit 77
fi
cat "$work/messages"
"$hone" info | grep -F "Stan 2."  # found without settings
