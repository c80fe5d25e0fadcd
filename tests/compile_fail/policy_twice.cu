// expect: two policies of one kind: each kind of policy may be given at most once
#include <descent/descent.cuh>
namespace ds = descent;

void f(ds::parameters<float> const& params, cudaStream_t stream) {
  ds::optimizer opt{params, ds::adamw{}, ds::clip_norm{1.0}, ds::cuda{stream}, ds::clip_norm{2.0}};
}
