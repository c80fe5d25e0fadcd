#!/bin/sh
# Tests orders.py with a stand-in for Meson: each device test runs in order and in the random order, each number of
# ranks runs, the revision is the seed of the random order, and `all` uses no random order.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cat > "$scratch/meson" <<'END'
#!/bin/sh
test() { echo "{\"name\": \"$1\", \"suite\": [\"descent:$2\"], \"workdir\": $3, \"cmd\": [\"program\", \"a b\"]}"; }
echo "[$(test gpu/one gpu null), $(test host/one host null), $(test one_cuda gpu '"elsewhere"'),"
echo "$(test 'nccl/n, 1 ranks' gpu null), $(test 'nccl/n, 2 ranks' gpu null), $(test 'nccl/n, 4 ranks' gpu null),"
echo "$(test benchmarks/b gpu null)]"
END
cat > "$scratch/git" <<'END'
#!/bin/sh
echo "$REVISION"
END
chmod +x "$scratch/meson" "$scratch/git"
wrong=0
expect() {  # expect revision arguments...; the expected lines come from stdin
  REVISION=$1 && export REVISION && shift
  PATH="$scratch:$PATH" python3 "$here/orders.py" build sim "$@" > "$scratch/got" || wrong=1
  diff - "$scratch/got" || { echo "orders.py $*: wanted <, got >"; wrong=1; }
}
expect 0000000a plain <<'END'
build sim gpu/one '' program 'a b'
elsewhere sim one_cuda '' program 'a b'
build sim 'nccl/n, 1 ranks' '' program 'a b'
build sim 'nccl/n, 2 ranks' 'CUDASIM_SEED=11 CUDASIM_ASYNC=11 CUDASIM_NCCL_DELAY=11' program 'a b'
build sim 'nccl/n, 4 ranks' '' program 'a b'
build sim benchmarks/b '' program 'a b'
END
expect 00000013ffff 'nccl/*' <<'END'
build sim 'nccl/n, 1 ranks' '' program 'a b'
build sim 'nccl/n, 2 ranks' '' program 'a b'
build sim 'nccl/n, 4 ranks' 'CUDASIM_SEED=20 CUDASIM_ASYNC=20 CUDASIM_NCCL_DELAY=20' program 'a b'
END
expect 00000014ffff <<'END'
build sim gpu/one '' program 'a b'
build sim gpu/one 'CUDASIM_SEED=21 CUDASIM_ASYNC=21' program 'a b'
elsewhere sim one_cuda '' program 'a b'
elsewhere sim one_cuda 'CUDASIM_SEED=21 CUDASIM_ASYNC=21' program 'a b'
build sim 'nccl/n, 1 ranks' '' program 'a b'
build sim 'nccl/n, 2 ranks' 'CUDASIM_SEED=21 CUDASIM_ASYNC=21 CUDASIM_NCCL_DELAY=21' program 'a b'
build sim 'nccl/n, 4 ranks' '' program 'a b'
build sim benchmarks/b 'CUDASIM_SEED=21 CUDASIM_ASYNC=21' program 'a b'
END
expect 00000014 all 'one*' 'nccl/*2*' <<'END'
elsewhere sim one_cuda '' program 'a b'
elsewhere sim one_cuda CUDASIM_SEED=1 program 'a b'
elsewhere sim one_cuda CUDASIM_SEED=2 program 'a b'
elsewhere sim one_cuda CUDASIM_ASYNC=1 program 'a b'
elsewhere sim one_cuda CUDASIM_ASYNC=2 program 'a b'
elsewhere sim one_cuda CUDASIM_ASYNC=3 program 'a b'
build sim 'nccl/n, 2 ranks' '' program 'a b'
build sim 'nccl/n, 2 ranks' 'CUDASIM_ASYNC=1 CUDASIM_NCCL_DELAY=1' program 'a b'
END
exit $wrong
