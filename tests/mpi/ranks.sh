#!/usr/bin/env bash
# ranks.sh PROGRAM [short|long]: hone on several ranks has the bits of one process. MPIRUN is the launcher (mpirun);
# without one the test is skipped (77). The long form has more ranks, more kills and a slow network.
set -euo pipefail

hone=$(realpath "$1")
form=${2:-short}
mpirun=${MPIRUN:-mpirun}
command -v "$mpirun" >/dev/null || { echo "skipped: no $mpirun"; exit 77; }
[ -n "${HONE_MPI_MODULE:-}" ] || [ -e "$(dirname "$hone")/libhone_mpi.so" ] || { echo "skipped: built without MPI"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
if [[ $("$mpirun" --version 2>&1) == *Open[\ R]* ]]; then # "Open MPI", or "OpenRTE" of its mpiexec
  mpirun="$mpirun --oversubscribe --bind-to none"
fi
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"

fail() {
  echo "FAILED: $*" >&2
  tail -n 20 ./*.err >&2
  exit 1
}
ranks() { timeout 120 $mpirun -n "$@" 2>last.err; } # ranks N PROGRAM …
# Everything that a run computes: checkpoint, metrics without the column of seconds, test log-likelihoods.
sums() { (cd "$1" && sha256sum <checkpoint.safetensors && cut -d, -f1,3- metrics.csv | sha256sum && sha256sum <test_log_likelihood.csv); }
same() { [ "$(sums "$1")" = "$(sums "$2")" ] || fail "$1 and $2 differ"; }

common='data = "synthetic"\nlatent = 3\nencoder_hidden = [6]\nsteps = 2\niterations = 30\nreport_every = 10\n'
common+='[test]\nevery = 15\npoints = 120\nsamples = 5\n[checkpoint]\nevery = 10\n'
printf "model = \"vae\"\nhidden = [7, 5]\nbatch = 30\n$common" >vae.toml
printf "model = \"logistic-mf\"\nbatch = 3\nadapt = \"between\"\nprecision = \"float64\"\n$common" >mf.toml

counts="2 3 4"
[ "$form" = long ] && counts="2 3 4 5 8"
for model in vae mf; do
  "$hone" train $model.toml --quiet --threads 1 --out $model-1 >/dev/null || fail "$model on one process"
  for n in $counts; do
    for threads in 1 2; do
      ranks $n "$hone" train $model.toml --quiet --threads $threads --out $model-$n-$threads >/dev/null || fail "$model on $n ranks"
      same $model-1 $model-$n-$threads
    done
  done
done
echo "same bits on 1 $counts ranks"

# Stopped and resumed with other numbers of ranks.
ranks 2 "$hone" train vae.toml --quiet --threads 1 --iterations 7 --out parts >/dev/null || fail "first part"
ranks 3 "$hone" train vae.toml --quiet --threads 2 --iterations 22 --resume --out parts >/dev/null || fail "second part"
"$hone" train vae.toml --quiet --resume --out parts >/dev/null || fail "third part"
"$hone" train vae.toml --quiet --iterations 7 --out alone >/dev/null
"$hone" train vae.toml --quiet --iterations 22 --resume --out alone >/dev/null
"$hone" train vae.toml --quiet --resume --out alone >/dev/null
same alone parts
echo "same bits when resumed on other numbers of ranks"

# Evaluation and annealing. The lines with times differ.
evaluation="--samples 10 --points 130 --ais --ais-steps 5 --ais-chains 2 --ais-check 60 --quiet --json"
"$hone" eval vae-1 $evaluation | grep -v seconds >eval-1
ranks 3 "$hone" eval vae-2-2 $evaluation | grep -v seconds >eval-3 || fail "eval on ranks"
cmp eval-1 eval-3 || fail "evaluations differ"
echo "same evaluation"

# A fit: ranks share the evaluations of the posterior.
if [ -n "${HONE_FAKES:-}" ]; then
  fitted() { (cd "$1" && sha256sum <draws.csv && sha256sum <draws_q.csv && sha256sum <q.json && grep -v seconds summary.json | sha256sum); }
  "$hone" fit "$HONE_FAKES/libfake_threads.so" --quiet --threads 1 --out fit-1 >/dev/null || fail "a fit on one process"
  for n in $counts; do
    ranks $n "$hone" fit "$HONE_FAKES/libfake_threads.so" --quiet --threads 2 --out fit-$n >/dev/null || fail "a fit on $n ranks"
    [ "$(fitted fit-1)" = "$(fitted fit-$n)" ] || fail "fit-1 and fit-$n differ"
  done
  echo "same fit on 1 $counts ranks"
fi

# Whole cells: some processes share a folder, and one of them dies.
"$hone" reproduce fig1 --scale smoke --quiet --threads 1 --out cells-1 >table-1
"$hone" reproduce fig1 --scale smoke --quiet --threads 1 --out cells-2 >/dev/null 2>&1 &
victim=$!
"$hone" reproduce fig1 --scale smoke --quiet --threads 1 --out cells-2 >/dev/null 2>&1 &
other=$!
sleep 1
kill -KILL $victim 2>/dev/null || true
wait $other || fail "one of several processes"
ranks 3 "$hone" reproduce fig1 --scale smoke --threads 1 --out cells-2 >table-2 || fail "cells on ranks"
sed -i s/cells-1/cells-2/ table-1
cmp table-1 table-2 || fail "tables differ"
for cell in cells-1/cells/*; do cmp $cell/config.toml ${cell/cells-1/cells-2}/config.toml || fail "cells differ"; done
[ -z "$(ls cells-2/locks)" ] || fail "locks are left"
echo "same table from several processes"

# Errors: in words, with the exit code of a single process, and no hang.
refused() { # refused TEXT ARGUMENTS…
  local text=$1 code=0
  shift
  ranks 2 "$hone" "$@" >/dev/null || code=$?
  [ $code = 2 ] || fail "$*: exit code $code, expected 2"
  [ "$(grep -c -- "$text" last.err)" = 1 ] || fail "$*: expected once: $text"
}
refused "there is no key 'latnet'" train vae.toml --set latnet=3
refused "there is a run in this folder already" train vae.toml --out vae-1
refused "several ranks need the cpu engine" train vae.toml --engine cuda --out cuda
refused "there is no such file" fit nothing.so
refused "does not share its work with other ranks" report vae-1
code=0
HONE_MPI_MODULE=$here/nothing.so ranks 2 "$hone" train vae.toml --out none >/dev/null || code=$?
[ $code = 2 ] && grep -q "there is no MPI module" last.err || fail "a missing module: exit code $code"
code=0
ranks 2 "$hone" train vae.toml --quiet --set rate_model=3e38 --out diverges >/dev/null || code=$?
[ $code = 1 ] && grep -q "no longer finite" last.err || fail "a non-finite parameter: exit code $code"
echo "errors in words"

# A rank is killed: the job ends within ten seconds, names the rank, and the last checkpoint is good.
kills=2
[ "$form" = long ] && kills=100
for i in $(seq $kills); do
  rm -rf killed
  $mpirun -n 3 "$hone" train vae.toml --quiet --threads 1 --iterations 1000000 --out killed >/dev/null 2>last.err &
  job=$!
  for _ in $(seq 300); do [ -e killed/checkpoint.safetensors ] && break; sleep 0.1; done
  sleep 0.$((RANDOM % 10))
  victim=$(pgrep -f "^$hone train vae.toml .*--out killed" | sed -n "$((i % 3 + 1))p")
  begin=$(date +%s)
  kill -KILL "$victim" || fail "no rank to kill"
  code=0
  wait $job || code=$?
  [ $(($(date +%s) - begin)) -le 10 ] || fail "the job went on for more than ten seconds"
  [ $code != 0 ] || fail "a killed rank is no success"
  grep -qiE "rank [0-9]+|PID $victim" last.err || fail "nobody named the rank"
  grep -q "$(hostname)" last.err || fail "nobody named the host"
  pgrep -f "^$hone train vae.toml .*--out killed" >/dev/null && fail "a rank is left"
  made=$(cut -d, -f1 killed/metrics.csv | tail -n 1)
  ranks 2 "$hone" train vae.toml --quiet --threads 1 --iterations $((made + 40)) --resume --out killed >/dev/null || fail "resuming after a kill"
done
echo "$kills kills survived"

# A stop signal to the launcher or to rank 0: a checkpoint, then the end.
$mpirun -n 2 "$hone" train vae.toml --quiet --threads 1 --iterations 1000000 --out stopped >/dev/null 2>last.err &
job=$!
for _ in $(seq 300); do [ -e stopped/checkpoint.safetensors ] && break; sleep 0.1; done
for rank in $(pgrep -f "^$hone train vae.toml .*--out stopped"); do kill -TERM "$rank"; done
code=0
wait $job || code=$?
[ $code = 143 ] || fail "stopped by a signal: exit code $code, expected 143"
grep -q '"finished": false' stopped/summary.json || fail "a stopped run has a summary"
echo "stopped by a signal"
