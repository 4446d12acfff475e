#!/usr/bin/env bash
# own_data.sh BIN DOCS: runs the shell blocks of docs/own_data.md, with the program's folder BIN first on the path.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
awk '/^```sh$/ {inside = 1; next} /^```$/ {inside = 0} inside' "$2" >page.sh
[[ $(grep -c '^hone ' page.sh) -ge 6 ]] || { echo "own_data: the page has no commands" >&2; exit 1; }
PATH="$1:$PATH" bash -euo pipefail page.sh
[[ -s runs/mine/report.html && -s z.npy && -s score.csv && -s runs/mine/best.safetensors ]]
[[ $(wc -l <score.csv) -eq 301 ]]
