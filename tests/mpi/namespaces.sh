#!/bin/sh
# usage: namespaces.sh program mpirun     Two hosts, each a network namespace, and a link that goes down.
#
# 4 ranks on 2 hosts train over TCP. The first run must finish normally. In the second run, the link goes down in the
# middle, and deadlines apply only from then on. Each rank must end by itself with exit code 75, and report which rank
# waited for which other rank, how long and in which collective.
# Needs root and iproute2. Exits with code 77 if namespaces are not allowed.
program=$1 mpirun=$2 deadline=2
skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip 'network namespaces need root'
command -v ip > /dev/null && command -v unshare > /dev/null || skip 'needs ip (iproute2) and unshare'

work=$(mktemp -d)
a=descent-a-$$ b=descent-b-$$ started=
clean() {
  trap - EXIT INT TERM HUP
  [ -z "$started" ] || kill "$started" 2> /dev/null
  for host in $a $b; do
    for process in $(ip netns pids $host 2> /dev/null); do kill -9 "$process" 2> /dev/null; done
    ip netns del $host 2> /dev/null
  done
  [ -z "$started" ] || wait "$started" 2> /dev/null
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP
ip netns add $a 2> "$work/why" && ip netns add $b 2> "$work/why" &&
  ip link add veth0 netns $a type veth peer name veth0 netns $b 2> "$work/why" &&
  unshare --uts true 2> "$work/why" || skip "namespaces are not allowed here: $(cat "$work/why")"
ip -n $a address add 10.77.0.1/24 dev veth0
ip -n $b address add 10.77.0.2/24 dev veth0
for host in $a $b; do
  ip -n $host link set lo up
  ip -n $host link set veth0 up
done
echo '10.77.0.1 slots=2
10.77.0.2 slots=2' > "$work/hosts"

# Starts on a host the command that mpirun asks for, under the name of that host.
cat > "$work/agent" << EOF
#!/bin/sh
while :; do case \$1 in -*) shift ;; *) break ;; esac; done
address=\$1
shift
case \$address in 10.77.0.1) host=$a ;; 10.77.0.2) host=$b ;; *) exit 1 ;; esac
exec ip netns exec \$host unshare --uts sh -c "hostname \$host; \$*"
EOF
chmod +x "$work/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 DESCENT_TEST_CUT="$work/is_cut"

train() {  # train folder steps     In the background, from the first host.
  mkdir "$1"
  ip netns exec $a unshare --uts sh -c 'hostname "$0"; exec "$@"' $a "$mpirun" -quiet --bind-to none -np 4 \
    --hostfile "$work/hosts" --map-by slot -mca plm_rsh_agent "$work/agent" -mca oob_tcp_if_include 10.77.0.0/24 \
    -mca btl_tcp_if_include 10.77.0.0/24 -mca btl self,vader,tcp -mca pml ob1 \
    --enable-recovery -mca orte_abort_on_non_zero_status 0 -mca orte_allowed_exit_without_sync 1 \
    sh -c '{ "$0" "$2" "$3"; echo "exit code $?"; } > "$1/$OMPI_COMM_WORLD_RANK" 2>&1' \
    "$program" "$1" "$2" $deadline > "$1/log" 2>&1 &
  started=$!
}
wrong() {
  echo "wrong: $1"
  tail -n 3 "$folder"/[0-3]
  tail -n 20 "$folder/log"
  exit 1
}

folder=$work/whole
train "$folder" 5
wait $started || wrong "the training does not end well"
started=
hosts=$(cat "$folder"/[0-3] | sed -n 's/^host //p' | sort | uniq -c | tr -s ' \n' ' ')
[ "$hosts" = " 2 $a 2 $b " ] || wrong "ranks are not on two hosts, 2 on each:$hosts"
[ "$(cat "$folder"/[0-3] | grep -c '^exit code 0$')" -eq 4 ] || wrong "not all ranks have made their steps"

folder=$work/cut
train "$folder" 1000000
waited=0
while [ $waited -lt 600 ]; do
  sleep 0.1
  waited=$((waited + 1))
  [ "$(cat "$folder"/[0-3] 2> /dev/null | grep -c '^step 20$')" -eq 4 ] && break
done
[ "$(cat "$folder"/[0-3] | grep -c '^step 20$')" -eq 4 ] || wrong "no 20 steps in a minute"
ip -n $a link set veth0 down
: > "$DESCENT_TEST_CUT"
cut=$(date +%s%N)
since() { echo $((($(date +%s%N) - cut) / 1000000)); }
while [ "$(cat "$folder"/[0-3] | grep -c '^exit code')" -lt 4 ]; do
  [ "$(since)" -lt 60000 ] || wrong "not all ranks have ended after a minute"
  sleep 0.05
done
echo "all ranks ended $(since) ms after the cut, with a deadline of $deadline s"
for rank in 0 1 2 3; do
  case $rank in [01]) others='[23]' ;; *) others='[01]' ;; esac
  end=$(grep '^rank' "$folder/$rank")
  echo "after $(grep -c '^step' "$folder/$rank") steps: $end"
  [ "$(tail -n 1 "$folder/$rank")" = 'exit code 75' ] || wrong "rank $rank does not end with exit code 75"
  in='[a-z_]+ of [0-9]+ [a-z]+'
  late="rank [0-3] waited [0-9.]+ s in collective [0-9]+, $in for rank .*$others"
  error="MPI reports an error between ranks .* in collective [0-9]+: .*, after [0-9.e-]+ s"
  echo "$end" | grep -Eq "^rank $rank in $in: ($late|$error)" ||
    wrong "rank $rank does not say in which collective it waited how long for whom"
done
