#!/bin/sh
# usage: single.sh nvcc arguments...
# Unused parallelism costs nothing: with the policy single{}, the kernels of a step are those of an optimizer without
# it, except for their names, and neither program refers to a function of NCCL or MPI.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for policy in '' ', ds::single{}'; do
  unit=$work/unit${policy:+_single}
  cat > "$unit.cu" <<END
#include <descent/descent.cuh>
namespace ds = descent;
void train(ds::parameters<float> const& params, cudaStream_t stream) {
  ds::optimizer opt{params, ds::adamw{}, ds::clip_norm{1}, ds::dynamic_loss_scale{}, ds::cuda{stream}$policy};
  opt.step();
}
END
  mkdir "$unit"
  "$@" -arch=sm_90 --keep --keep-dir "$unit" -c "$unit.cu" -o "$unit.o" || exit 1
  cp "$unit"/*.ptx "$unit.ptx"
  if nm -C "$unit.o" | grep -iE ' U (nccl|MPI_)'; then echo "a program without ranks needs these"; exit 1; fi
  # Replaces names by their order of appearance.
  awk '{
    out = ""
    while (match($0, /[$_]*[A-Za-z0-9_$]*_Z[A-Za-z0-9_$]+/)) {
      name = substr($0, RSTART, RLENGTH)
      if (!(name in number)) number[name] = ++names
      out = out substr($0, 1, RSTART - 1) "name" number[name]
      $0 = substr($0, RSTART + RLENGTH)
    }
    print out $0
  }' "$unit.ptx" > "$unit.plain"
  grep -c '^\.visible \.entry\|\.entry name' "$unit.plain"
done
diff "$work/unit.plain" "$work/unit_single.plain" > "$work/diff" || { head -n 20 "$work/diff"; exit 1; }
[ "$(grep -c 'ld\.global' "$work/unit.plain")" -gt 10 ] || { echo 'there is no kernel to compare'; exit 1; }
