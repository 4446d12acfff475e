#!/usr/bin/env bash
# network.sh PROGRAM [short|long]: ranks on two hosts. The wire between them is slow (20 ms each way), loses 1 % of the packets, and is cut in the end. The hosts are
# network namespaces of this machine: it needs root, ip, python3 and Open MPI, and is skipped (77) without them.
set -euo pipefail

hone=$(realpath "$1")
form=${2:-long} # the short form has two ranks and fewer iterations
wire=$(realpath "$(dirname "$0")/slow_wire.py")
mpirun=${MPIRUN:-mpirun.openmpi}
for tool in ip python3 unshare "$mpirun"; do command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }; done
[[ $("$mpirun" --version 2>&1) == *Open[\ R]* ]] || # "Open MPI", or "OpenRTE" of its other names
  { echo "skipped: $mpirun is not of Open MPI"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
here=$(mktemp -d)
per_host=2 iterations=30
[ "$form" = short ] && per_host=1 iterations=6
near=near-$$ far=far-$$ middle=middle-$$
clean() {
  for ns in $near $far $middle; do
    pids=$(ip netns pids $ns 2>/dev/null || true)
    [ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true
    ip netns del $ns 2>/dev/null || true
  done
  rm -rf "$here"
}
trap clean EXIT
cd "$here"
export HONE_MPI_PATIENCE=${HONE_MPI_PATIENCE:-120} HONE_MPI_MODULE=${HONE_MPI_MODULE:-$(dirname "$hone")/libhone_mpi.so}
ip netns add $near 2>/dev/null || { echo "skipped: network namespaces are not permitted"; exit 77; }
ip netns add $far
ip netns add $middle
number=1
for ns in $near $far; do
  ip link add wire netns $ns type veth peer name $ns netns $middle
  ip -n $middle link set $ns up
  ip -n $ns addr add 10.77.0.$((number++))/24 dev wire
  ip -n $ns link set wire gso_max_segs 1 up # a packet each, so that packets are lost
  ip -n $ns link set lo up
done
ip netns exec $middle python3 "$wire" $near $far 0.02 0.01 >ready &
disown # bash does not speak of its end
for _ in $(seq 100); do [ -s ready ] && break; sleep 0.1; done
[ -s ready ] || { echo "FAILED: the slow wire" >&2; exit 1; }

# What Open MPI runs in place of ssh: HOST COMMAND…
cat >agent <<AGENT
#!/bin/sh
shift
exec ip netns exec $far unshare --uts sh -c "hostname far; \$*"
AGENT
chmod +x agent
printf 'model = "vae"\ndata = "synthetic"\nlatent = 3\nhidden = [7]\nencoder_hidden = [6]\nsteps = 2\nbatch = 30\nreport_every = 2\nthreads = 1\n' >c.toml
echo "iterations = $iterations" >>c.toml
far_and_near() { # arguments of hone
  ip netns exec $near unshare --uts sh -c "hostname near; exec timeout 100 $mpirun --mca plm_rsh_agent $here/agent --mca btl tcp,self \
    --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 -x HONE_MPI_PATIENCE -x HONE_MPI_MODULE \
    --oversubscribe --bind-to none -n $((2 * per_host)) --host 10.77.0.1:$per_host,10.77.0.2:$per_host $hone $*"
}

"$hone" train c.toml --quiet --out alone >/dev/null
far_and_near train "$here/c.toml" --quiet --out "$here/shared" >out 2>err || { cat err >&2; echo "FAILED: ranks on two hosts" >&2; exit 1; }
cmp alone/checkpoint.safetensors shared/checkpoint.safetensors || { echo "FAILED: other bits over the network" >&2; exit 1; }
echo "same bits on two hosts, 20 ms apart, with 1 % of packets lost"

export HONE_MPI_PATIENCE=5
far_and_near train "$here/c.toml" --quiet --iterations 1000000 --set checkpoint.every=2 --out "$here/cut" >out 2>err &
job=$!
for _ in $(seq 600); do [ -e cut/checkpoint.safetensors ] && break; sleep 0.1; done
ip -n $near link set wire down
begin=$(date +%s)
ranks_left() { for pid in $(ip netns pids $near; ip netns pids $far); do tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep "^$hone"; done; }
while [ -n "$(ranks_left || true)" ] && [ $(($(date +%s) - begin)) -le 60 ]; do sleep 0.5; done
took=$(($(date +%s) - begin))
while kill -0 $job 2>/dev/null && [ $(($(date +%s) - begin)) -le 60 ]; do sleep 0.5; done
launcher=$(($(date +%s) - begin))
kill $job 2>/dev/null && { cat err >&2; echo "FAILED: mpirun was left $launcher s after the wire was cut" >&2; exit 1; }
[ $took -le 30 ] || { cat err >&2; echo "FAILED: ranks were left $took s after the wire was cut" >&2; exit 1; }
grep -q "rank 0 on host near: no sign of life from rank [123] for 5 s" err || { cat err >&2; echo "FAILED: nobody spoke of the cut wire" >&2; exit 1; }
made=$(cut -d, -f1 cut/metrics.csv | tail -n 1)
"$hone" train c.toml --quiet --iterations $((made + 40)) --set checkpoint.every=2 --resume --out cut >/dev/null 2>err || { cat err >&2; echo "FAILED: resuming after the cut" >&2; exit 1; }
echo "a cut wire ended the ranks in words after $took s and mpirun after $launcher s, and the run goes on"
