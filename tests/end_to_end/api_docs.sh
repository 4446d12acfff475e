#!/usr/bin/env bash
# api_docs.sh SOURCE: every public name has a contract; where one has none, scripts/api_docs fails and names it.
set -euo pipefail
source=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$source/scripts/api_docs" "$folder/docs" >/dev/null

mkdir "$folder/tree"
cp -r "$source/hone" "$source/docs" "$source/scripts" "$source/CMakeLists.txt" "$folder/tree"
sed -i '/^\/\/\/ The settings of the VCD objective\.$/d' "$folder/tree/hone/objective/vcd.hpp"
if "$folder/tree/scripts/api_docs" "$folder/docs" >/dev/null 2>"$folder/log"; then
  echo "api_docs does not miss the contract of VcdConfig" >&2
  exit 1
fi
grep -q "VcdConfig is not documented" "$folder/log" || { cat "$folder/log" >&2; exit 1; }
