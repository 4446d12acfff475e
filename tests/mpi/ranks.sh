#!/usr/bin/env bash
# ranks.sh PROGRAM [short|long] [PART…]: hone on several ranks has the bits of one process. MPIRUN is the launcher (mpirun); without one the test is skipped
# (77). The long form has more ranks and more kills. The parts are the functions below; all of them if none is named.
set -euo pipefail

hone=$(realpath "$1")
docs=$(realpath "$(dirname "$0")/../../docs/cluster.md")
form=${2:-short}
parts=${*:3}
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
train() { "$hone" train "$@" --quiet >/dev/null || fail "one process: $*"; }
train_on() { ranks "$1" "$hone" train "${@:2}" --quiet >/dev/null || fail "$1 ranks: ${*:2}"; }

common='data = "synthetic"\nlatent = 3\nencoder_hidden = [6]\nsteps = 2\niterations = 30\nreport_every = 10\n'
common+='[test]\nevery = 15\npoints = 120\nsamples = 5\n[checkpoint]\nevery = 10\n'
printf "model = \"vae\"\nhidden = [7, 5]\nbatch = 30\n$common" >vae.toml
printf "model = \"logistic-mf\"\nbatch = 3\nadapt = \"between\"\nprecision = \"float64\"\n$common" >mf.toml
counts="2 3 4"
[ "$form" = long ] && counts="2 3 4 8"
train vae.toml --threads 1 --out vae-1

bits() {
  train mf.toml --threads 1 --out mf-1
  for model in vae mf; do
    for n in $counts; do
      for threads in 1 2; do
        train_on $n $model.toml --threads $threads --out $model-$n-$threads
        same $model-1 $model-$n-$threads
      done
    done
  done
  echo "same bits on 1 $counts ranks"
}

devices() { # ranks share the minibatches of a run by products, and here perhaps a device
  [ -e /dev/nvidia0 ] || { echo "devices: skipped, there is none"; return; }
  local on="vae.toml --engine cuda --set precision=float32"
  train $on --out device-1
  for n in 2 3; do
    train_on $n $on --out device-$n
    same device-1 device-$n
  done
  train_on 3 $on --iterations 7 --out device-parts
  train_on 2 $on --iterations 22 --resume --out device-parts
  train $on --resume --out device-parts
  cmp device-1/checkpoint.safetensors device-parts/checkpoint.safetensors || fail "a run resumed on other ranks differs"
  echo "same bits on devices"
}

resumed() { # stopped and resumed with other numbers of ranks
  train_on 2 vae.toml --threads 1 --iterations 7 --out parts
  train_on 3 vae.toml --threads 2 --iterations 22 --resume --out parts
  train vae.toml --resume --out parts
  train vae.toml --iterations 7 --out alone
  train vae.toml --iterations 22 --resume --out alone
  train vae.toml --resume --out alone
  same alone parts
  echo "same bits when resumed on other numbers of ranks"
}

seeds() { # ranks train whole runs, and the last one together or on one rank
  for n in 1 $counts; do
    local on="train_on $n" then="train_on $((n == 2 ? 3 : 2))"
    [ $n = 1 ] && on=train then=train
    $on vae.toml --threads 1 --iterations 17 --seeds 1,5,9 --out seeds-$n
    $then vae.toml --threads 2 --seeds 1,5,9 --resume --out seeds-$n
    for seed in 1 5 9; do same seeds-1/seed-$seed seeds-$n/seed-$seed; done
  done
  echo "same bits of several seeds"
}

evaluated() { # and annealed; the lines with times differ
  local options="--samples 10 --points 130 --ais --ais-steps 5 --ais-chains 2 --ais-check 60 --quiet --json"
  cp -r vae-1 vae-again
  "$hone" eval vae-1 $options | grep -v seconds >eval-1
  ranks 3 "$hone" eval vae-again $options | grep -v seconds >eval-3 || fail "eval on ranks"
  cmp eval-1 eval-3 || fail "evaluations differ"
  echo "same evaluation"
}

fits() { # ranks share the searches, and the evaluations of the posterior
  [ -n "${HONE_FAKES:-}" ] || { echo "no fit: HONE_FAKES names no folder with models"; return; }
  fitted() { (cd "$1" && sha256sum <draws.csv && sha256sum <draws_q.csv && sha256sum <q.json && grep -v seconds summary.json | sha256sum); }
  "$hone" fit "$HONE_FAKES/libfake_threads.so" --quiet --threads 1 --out fit-1 >/dev/null || fail "a fit on one process"
  for n in $counts; do
    ranks $n "$hone" fit "$HONE_FAKES/libfake_threads.so" --quiet --threads 2 --out fit-$n >/dev/null || fail "a fit on $n ranks"
    [ "$(fitted fit-1)" = "$(fitted fit-$n)" ] || fail "fit-1 and fit-$n differ"
  done
  echo "same fit on 1 $counts ranks"
}

cells() { # some processes share a folder, and one of them dies
  local cells="$hone reproduce fig1 --scale smoke --threads 1"
  $cells --quiet --out cells-1 >table-1
  $cells --quiet --out cells-2 >/dev/null 2>&1 &
  local victim=$!
  $cells --quiet --out cells-2 >/dev/null 2>&1 &
  local other=$!
  sleep 1
  kill -KILL $victim 2>/dev/null || true
  wait $other || fail "one of several processes"
  ranks 3 $cells --out cells-2 >table-2 || fail "cells on ranks"
  sed -i s/cells-1/cells-2/ table-1
  cmp table-1 table-2 || fail "tables differ"
  for cell in cells-1/cells/*; do cmp $cell/config.toml ${cell/cells-1/cells-2}/config.toml || fail "cells differ"; done
  [ -z "$(ls cells-2/locks)" ] || fail "locks are left"
  echo "same table from several processes"
}

errors() { # in words, with the exit code of a single process, and no hang
  refused() { # refused CODE TEXT ARGUMENTS…
    local code=0
    local count=2
    [[ " $* " == *" : "* ]] && count=1 # another rank follows
    ranks $count "$hone" "${@:3}" >/dev/null || code=$?
    [ $code = $1 ] || fail "${*:3}: exit code $code, expected $1"
    [ "$(grep -c -- "$2" last.err)" = 1 ] || fail "${*:3}: expected once: $2"
  }
  refused 2 "there is no key 'latnet'" train vae.toml --set latnet=3
  refused 2 "there is a run in this folder already" train vae.toml --out vae-1
  [ -e /dev/nvidia0 ] || refused 2 "cuda:" train vae.toml --engine cuda --out cuda
  refused 2 "there is no such file" fit nothing.so
  refused 2 "does not share its work with other ranks" report vae-1
  HONE_MPI_MODULE=$here/nothing.so refused_by_all "there is no MPI module"
  refused 1 "rank 1 on host $(hostname): this rank computes on instruction level portable" train vae.toml --quiet --out levels \
    : -n 1 env HONE_SIMD=portable "$hone" train vae.toml --quiet --out levels
  refused 1 "no longer finite" train vae.toml --quiet --set rate_model=3e38 --out diverges
  if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    # On a full disk.
    mkdir disk
    local code=0
    unshare -m sh -c "mount -t tmpfs -o size=16k none disk && timeout 120 $mpirun -n 2 $hone train vae.toml --quiet --out disk/run" >/dev/null 2>last.err || code=$?
    [ $code = 1 ] && [ "$(grep -c "No space left on device" last.err)" = 1 ] || fail "a full disk: exit code $code"
  fi
  echo "errors in words"
}
refused_by_all() {
  local code=0
  ranks 2 "$hone" train vae.toml --out none >/dev/null || code=$?
  [ $code = 2 ] && grep -q "$1" last.err || fail "exit code $code, expected 2: $1"
}

# A rank is killed at a random moment: the job ends within ten seconds and says which, and the last checkpoint is good.
kills() {
  local times=2
  [ "$form" = long ] && times=50
  for i in $(seq $times); do
    rm -rf killed
    $mpirun -n 3 "$hone" train vae.toml --quiet --threads 1 --iterations 1000000 --out killed >last.err 2>&1 & # MPICH speaks on standard output
    local job=$! pids= code=0
    for _ in $(seq 300); do
      pids=$(pgrep -f "^$hone train vae.toml .*--out killed" || true)
      [ "$(wc -w <<<"$pids")" = 3 ] && break
      sleep 0.02
    done
    sleep $((RANDOM % 2)).$((RANDOM % 10))
    local victim=$(sed -n "$((i % 3 + 1))p" <<<"$pids") begin=$(date +%s)
    kill -KILL "$victim" || fail "no rank to kill"
    wait $job || code=$?
    [ $(($(date +%s) - begin)) -le 10 ] || fail "the job went on for more than ten seconds"
    [ $code != 0 ] || fail "a killed rank is no success"
    grep -qiE "rank [0-9]+|PID [0-9]+" last.err || fail "nobody named the rank" # MPICH names a process
    grep -q "$(hostname)" last.err || fail "nobody named the host"
    pgrep -f "^$hone train vae.toml .*--out killed" >/dev/null && fail "a rank is left"
    local made=0
    [ ! -e killed/metrics.csv ] || made=$(tail -n 1 killed/metrics.csv | cut -d, -f1 | grep -x '[0-9]*' || echo 0)
    train vae.toml --threads 1 --iterations $((made + 10)) --resume --out killed
  done
  echo "$times kills survived"
}

# A rank falls silent, as behind a cut wire: no wait is endless, whatever the ranks do, and the message names the rank.
silent() {
  printf "model = \"vae\"\nhidden = [7, 5]\nbatch = 30\n${common/iterations = 30/iterations = 1000000}" >endless.toml
  local slow="$hone eval vae-silent --samples 8000 --threads 1 --quiet" fit="$hone fit ${HONE_FAKES:-}/libfake_slow.so --quiet --out silent-fit"
  for command in "$hone train endless.toml --quiet --out silent-one" "$hone train endless.toml --quiet --seeds 2 --out silent-seeds" "$slow" "$fit"; do
    [[ "$command" == *libfake* && -z "${HONE_FAKES:-}" ]] && continue
    rm -rf vae-silent silent-*
    cp -r vae-1 vae-silent
    HONE_MPI_PATIENCE=3 $mpirun -n 2 $command >last.err 2>&1 &
    local job=$! pids= code=0
    for _ in $(seq 300); do
      pids=$(pgrep -f "^$command" || true)
      [ "$(wc -w <<<"$pids")" = 2 ] && break
      sleep 0.02
    done
    sleep 1.5
    local victim=$(tail -n 1 <<<"$pids") begin=$(date +%s)
    kill -STOP "$victim" || fail "no rank to stop: $command"
    wait $job || code=$?
    kill -KILL "$victim" 2>/dev/null || true
    [ $(($(date +%s) - begin)) -le 60 ] || fail "$command waited for more than a minute"
    [ $code != 0 ] || fail "$command: a silent rank is no success"
    grep -q "no sign of life from rank [01]" last.err || fail "$command: nobody said what is wrong"
  done
  echo "silent ranks are noticed"
}

stopped() { # a signal to the ranks: a checkpoint, then the end
  local code=0
  $mpirun -n 2 "$hone" train vae.toml --quiet --threads 1 --iterations 1000000 --out stopped >/dev/null 2>last.err &
  local job=$!
  for _ in $(seq 300); do [ -e stopped/checkpoint.safetensors ] && break; sleep 0.1; done
  for rank in $(pgrep -f "^$hone train vae.toml .*--out stopped"); do kill -TERM "$rank"; done
  wait $job || code=$?
  [ $code = 143 ] || fail "stopped by a signal: exit code $code, expected 143"
  grep -q '"finished": false' stopped/summary.json || fail "a stopped run has a summary"
  echo "stopped by a signal"
}

slurm() { # the scripts of docs/cluster.md are scripts
  awk '/^```bash/ {on = 1; ++n; next} /^```/ {on = 0} on {print > ("slurm-" n ".sh")}' "$docs"
  [ "$(ls slurm-*.sh | wc -l)" -ge 3 ] || fail "docs/cluster.md has fewer than three scripts"
  for script in slurm-*.sh; do bash -n $script || fail "$script of docs/cluster.md"; done
  echo "scripts for Slurm can be read"
}

for part in ${parts:-slurm bits devices resumed seeds evaluated fits cells errors kills silent stopped}; do $part; done
