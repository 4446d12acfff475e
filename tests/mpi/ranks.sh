#!/usr/bin/env bash
# ranks.sh PROGRAM [short|long] [PART…]: hone on several ranks has the bits of one process. MPIRUN is the launcher (mpirun); without one the test is skipped
# (77). The long form has more ranks and more kills. The parts are the functions below; all of them if none is named.
set -euo pipefail

hone=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")
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

fake() { # fake NAME: a small model; the build makes it
  [ -e "$HONE_FAKES/libfake_$1.so" ] || fail "$HONE_FAKES/libfake_$1.so: there is no such file; build the target fake_$1"
  echo "$HONE_FAKES/libfake_$1.so"
}
fitted() { (cd "$1" && sha256sum <draws.csv && sha256sum <draws_q.csv && sha256sum <q.json && grep -v seconds summary.json | sha256sum); }
fit_alone() { [ -e fit-1-1 ] || "$hone" fit "$(fake threads)" --quiet --threads 1 --out fit-1-1 >/dev/null || fail "a fit on one process"; }

fits() { # ranks share the searches, and the evaluations of the posterior
  [ -n "${HONE_FAKES:-}" ] || { echo "fits: skipped, HONE_FAKES names no folder with models"; return; }
  fit_alone
  for n in 1 $counts; do
    for threads in 1 2; do
      [ $n-$threads = 1-1 ] && continue
      ranks $n "$hone" fit "$(fake threads)" --quiet --threads $threads --out fit-$n-$threads >/dev/null || fail "a fit on $n ranks, $threads threads"
      [ "$(fitted fit-1-1)" = "$(fitted fit-$n-$threads)" ] || fail "fit-1-1 and fit-$n-$threads differ"
    done
  done
  echo "same fit on 1 $counts ranks"
  said_once() { [ "$(grep -cE "^ranks: a gradient takes about .* on one rank and .* on 2: " last.err)" = 1 ] || fail "a fit did not say once what ranks bring: $*"; }
  local fit="$hone fit $(fake threads) --budget 12000"
  ranks 2 $fit --out said-1 >/dev/null || fail "a fit on two ranks"
  said_once "equal ranks"
  # The second rank is slower by far.
  ranks 1 $fit --out said-2 : -n 1 env FAKE_PAUSE=500 $fit --out said-2 >/dev/null || fail "a fit with a slow rank"
  said_once "a slow rank"
  grep -q "^warning: these ranks are slower than one; start fewer" last.err || fail "no warning of slow ranks"
  ranks 2 $fit --quiet --out said-3 >/dev/null || fail "a quiet fit on two ranks"
  grep -qE "^(ranks|warning): " last.err && fail "a quiet fit spoke of ranks"
  for n in 2 3; do [ "$(fitted said-1)" = "$(fitted said-$n)" ] || fail "said-1 and said-$n differ"; done
  echo "fits say what ranks bring"
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
  ranks 3 $cells --out cells-3 >/dev/null || fail "all cells on ranks"
  grep "under way\|other processes run the rest" last.err && fail "ranks of one job spoke of other processes"
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
  HONE_MPI_PATIENCE=abc refused 2 "HONE_MPI_PATIENCE is 'abc'; expected" train vae.toml --out none
  HONE_MPI_PATIENCE=5x refused 2 "HONE_MPI_PATIENCE is '5x'; expected" train vae.toml --out none
  every_seed_fails
  if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    # On a full disk.
    mkdir disk
    local code=0
    unshare -m sh -c "mount -t tmpfs -o size=16k none disk && timeout 120 $mpirun -n 2 $hone train vae.toml --quiet --out disk/run" >/dev/null 2>last.err || code=$?
    [ $code = 1 ] && [ "$(grep -c "No space left on device" last.err)" = 1 ] || fail "a full disk: exit code $code"
    grep -q "partial" last.err && fail "a full disk: the message names a temporary file"
  else
    echo "a full disk: skipped, only root may mount one"
  fi
  echo "errors in words"
}
# What goes wrong in the first timing goes wrong in the runs, too: each has its own message.
every_seed_fails() {
  local code=0
  ranks 2 "$hone" train vae.toml --seeds 7,9 --set rate_model=3e38 --out bad-seeds >/dev/null || code=$?
  [ $code = 1 ] && grep -q "ranks: iterations could not be timed with seed 7: " last.err || fail "a failed timing: exit code $code"
  for seed in 7 9; do grep -q "bad-seeds/seed-$seed: .*no longer finite" last.err || fail "nobody spoke of seed $seed"; done
}
refused_by_all() {
  local code=0
  ranks 2 "$hone" train vae.toml --out none >/dev/null || code=$?
  [ $code = 2 ] && grep -q "$1" last.err || fail "exit code $code, expected 2: $1"
}

named=0 # how many of the killed ranks were named
# kill_one VICTIM COMMAND…: starts the command, which names a path in $here, on three ranks and kills one of them (1 to 3) at a random moment: the job ends within ten seconds and says which.
kill_one() {
  local place=$1 pids= code=0
  shift
  $mpirun -n 3 "$@" >last.err 2>&1 & # MPICH speaks on standard output
  local job=$!
  for _ in $(seq 300); do
    pids=$(pgrep -f "^$*" || true)
    [ "$(wc -w <<<"$pids")" = 3 ] && break
    sleep 0.02
  done
  sleep $((RANDOM % 2)).$((RANDOM % 10))
  local victim=$(sed -n "${place}p" <<<"$pids") begin=$(date +%s)
  local number=$(tr '\0' '\n' <"/proc/$victim/environ" | sed -nE 's/^(OMPI_COMM_WORLD_RANK|PMI_RANK)=//p')
  kill -KILL "$victim" || fail "no rank to kill: $*"
  wait $job || code=$?
  [ $(($(date +%s) - begin)) -le 10 ] || fail "the job went on for more than ten seconds: $*"
  [ $code != 0 ] || fail "a killed rank is no success: $*"
  # Open MPI names the rank. MPICH names a process, sometimes one that it ended itself, and rank 0 said at the start which rank that is: unless the victim was
  # killed before.
  local process=$(sed -nE 's/^= +PID ([0-9]+) RUNNING AT .*/\1/p' last.err)
  if [ "$process" = "$victim" ] || grep -q "process rank $number with PID" last.err; then
    named=$((named + 1))
  elif [ -z "$process" ]; then
    fail "nobody named rank $number: $*"
  fi
  if [ -n "$process" ] && grep -q "^ranks: on host .* is process" last.err; then
    for place in "rank $number is process $victim" "rank [0-2] is process $process"; do
      grep -qE "^ranks: on host $(hostname), .*$place(,|$)" last.err || fail "nobody said which $place: $*"
    done
  fi
  grep -q "$(hostname)" last.err || fail "nobody named the host: $*"
  for _ in $(seq 20); do pgrep -f "^$*" >/dev/null || return 0; sleep 0.1; done
  fail "a rank is left: $*"
}
made_by() { [ ! -e "$1/metrics.csv" ] && echo 0 || tail -n 1 "$1/metrics.csv" | cut -d, -f1 | grep -x '[0-9]*' || echo 0; }
# undisturbed KILLED SEED: resumes a run that was killed, and compares it with one that was not.
undisturbed() {
  local iterations=$(($(made_by "$1") + 10))
  train vae.toml --seed $2 --threads 1 --iterations $iterations --resume --out "$1"
  rm -rf whole
  train vae.toml --seed $2 --threads 2 --iterations $iterations --out whole
  cmp "$1/checkpoint.safetensors" whole/checkpoint.safetensors || fail "$1: other bits than a run that was not killed"
}

kills() { # the last checkpoint is good, and whoever goes on gets the bits of an undisturbed run
  local times=2 more=1
  named=0
  [ "$form" = long ] && times=50 more=10
  for i in $(seq $times); do
    rm -rf killed
    kill_one $((i % 3 + 1)) "$hone" train vae.toml --threads 1 --iterations 1000000 --out "$here/killed"
    undisturbed killed 1
  done
  for i in $(seq $more); do
    rm -rf killed
    kill_one $((i % 3 + 1)) "$hone" train vae.toml --threads 1 --iterations 1000000 --seeds 4,5,6,7 --out "$here/killed"
    for seed in 4 7; do undisturbed killed/seed-$seed $seed; done
  done
  [ $named -gt 0 ] || fail "no killed rank was named"
  echo "$times kills survived, and $more with several seeds; the one that was killed was named $named times"
  [ -n "${HONE_FAKES:-}" ] || return 0
  fit_alone
  for i in $(seq $more); do
    rm -rf killed
    kill_one $((i % 3 + 1)) "$hone" fit "$(fake slow)" --threads 1 --out "$here/killed"
    "$hone" fit "$(fake threads)" --quiet --threads 2 --out killed >/dev/null 2>last.err || fail "a fit into the folder of one that was killed"
    [ "$(fitted fit-1-1)" = "$(fitted killed)" ] || fail "a fit into the folder of one that was killed differs"
  done
  echo "$more kills of fits"
}

# A rank falls silent, as behind a cut wire: no wait is endless, whatever the ranks do, and the message names the rank.
silent() {
  printf "model = \"vae\"\nhidden = [7, 5]\nbatch = 30\n${common/iterations = 30/iterations = 1000000}" >endless.toml
  local slow="$hone eval $here/vae-silent --samples 8000 --threads 1 --quiet" fit=
  [ -z "${HONE_FAKES:-}" ] || fit="$hone fit $(fake slow) --quiet --out $here/silent-fit"
  for command in "$hone train endless.toml --quiet --out $here/silent-one" "$hone train endless.toml --quiet --seeds 2 --out $here/silent-seeds" "$slow" ${fit:+"$fit"}; do
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
  for signal in TERM:143 USR1:138; do
    local code=0
    rm -rf stopped
    $mpirun -n 2 "$hone" train vae.toml --quiet --threads 1 --iterations 1000000 --out "$here/stopped" >/dev/null 2>last.err &
    local job=$!
    for _ in $(seq 300); do [ -e stopped/checkpoint.safetensors ] && break; sleep 0.1; done
    for rank in $(pgrep -f "^$hone train vae.toml .*--out $here/stopped"); do kill -${signal%:*} "$rank"; done
    wait $job || code=$?
    [ $code = ${signal#*:} ] || fail "stopped by SIG$signal: exit code $code"
    grep -q '"finished": false' stopped/summary.json || fail "a stopped run has a summary"
  done
  echo "stopped by signals"
}

cpus() { # default threads are the CPUs that a process may use; ranks that are not bound share them, and pin no two threads to one
  threads_of() { grep -o "[0-9]* thread.* by default, level" | tr -dc '0-9\n' | tr '\n' ' '; } # of all ranks
  local first=$(taskset -cp $$ | grep -oE '[0-9]+' | sed -n 2p) second=$(taskset -cp $$ | grep -oE '[0-9]+' | tail -n 1)
  taskset -c "$first" "$hone" info | grep "threads: 1 by default" >/dev/null || fail "hone info on one CPU"
  [ "$(taskset -c "$first" $mpirun -n 2 "$hone" info 2>last.err | threads_of)" = "1 1 " ] || fail "two ranks that share a CPU"
  [ "$first" != "$second" ] || { echo "pins: skipped, there is only one CPU"; return; }
  [ "$(taskset -c "$first,$second" $mpirun -n 2 "$hone" info 2>last.err | threads_of)" = "1 1 " ] || fail "two ranks that share two CPUs"
  for pin in all "$second,$first"; do
    rm -rf pinned
    HONE_PIN=$pin taskset -c "$first,$second" $mpirun -n 2 "$hone" train vae.toml --quiet --threads 1 --iterations 1000000 --out "$here/pinned" >/dev/null 2>last.err &
    local job=$! pids= found
    for _ in $(seq 300); do [ -e pinned/checkpoint.safetensors ] && break; sleep 0.1; done
    pids=$(pgrep -f "^$hone train vae.toml .*--out $here/pinned")
    found=$(for pid in $pids; do taskset -cp "$pid" | sed 's/.*: //'; done | sort -n | tr '\n' ' ')
    kill -TERM $pids
    wait $job || true
    [ "$found" = "$first $second " ] || fail "HONE_PIN=$pin: two ranks are on the CPUs '$found'"
  done
  local code=0
  HONE_PIN=all taskset -c "$first,$second" $mpirun -n 2 "$hone" train vae.toml --quiet --threads 2 --out none >/dev/null 2>last.err || code=$?
  [ $code = 2 ] && grep -q "HONE_PIN has 1 CPU for 2 threads of this rank, one of 2 on this machine" last.err || fail "too few CPUs to pin: exit code $code"
  echo "ranks share the CPUs"
}

exchange() { # measured by the command of docs/cluster.md
  local program=$(dirname "$hone")/../bench/bench_exchange
  [ -e "$program" ] || { echo "exchange: skipped, bench_exchange is not built"; return; }
  ranks 2 "$program" >exchanged || fail "bench_exchange"
  grep -q '"ranks": 2, "latency_us": [0-9.]*, "bytes_per_us": ' exchanged || fail "bench_exchange printed: $(cat exchanged)"
  echo "exchange measured"
}

built() { # what this test needs is what `make test-mpi` builds
  for name in $(grep -oE '\$\(fake [a-z]+\)' "$source/tests/mpi/ranks.sh" | grep -oE '[a-z]+\)' | tr -d ')' | sort -u); do
    make -nC "$source" test-mpi | grep "fake_$name" >/dev/null || fail "make test-mpi does not build fake_$name"
  done
}

slurm() { # the scripts of docs/cluster.md are scripts, and leave time for a checkpoint
  awk '/^```bash/ {on = 1; ++n; next} /^```/ {on = 0} on {print > ("slurm-" n ".sh")}' "$source/docs/cluster.md"
  [ "$(ls slurm-*.sh | wc -l)" -ge 3 ] || fail "docs/cluster.md has fewer than three scripts"
  for script in slurm-*.sh; do
    bash -n $script || fail "$script of docs/cluster.md"
    grep -qE "^#SBATCH --signal=(B:)?TERM@[0-9]+ --requeue" $script || fail "$script of docs/cluster.md leaves no time for a checkpoint"
  done
  grep -q "^srun .*--kill-on-bad-exit=1 hone train" slurm-1.sh || fail "the first script of docs/cluster.md does not end when a rank is killed"
  # The array's script: the signal that B: sends to the script reaches hone.
  printf "model = \"vae\"\nhidden = [7, 5]\nbatch = 30\n${common/iterations = 30/iterations = 1000000}" >config.toml
  local code=0
  PATH=$(dirname "$hone"):$PATH SLURM_ARRAY_TASK_ID=3 SLURM_CPUS_PER_TASK=1 bash slurm-2.sh >/dev/null 2>last.err &
  local job=$!
  for _ in $(seq 300); do [ -e runs/vae/seed-3/checkpoint.safetensors ] && break; sleep 0.1; done
  kill -TERM $job
  wait $job || code=$?
  [ $code = 143 ] && grep -q '"finished": false' runs/vae/seed-3/summary.json || fail "a script that is told to end: exit code $code"
  echo "scripts for Slurm can be read, and stop with a checkpoint"
}

for part in ${parts:-built slurm cpus exchange bits devices resumed seeds evaluated fits cells errors kills silent stopped}; do $part; done
