// What the mistakes of this folder look like when they are not made.
#include <descent/descent.cuh>
namespace ds = descent;

void f(ds::parameters<float> const& params, cudaStream_t stream) {
  ds::optimizer opt{params, ds::adamw{}, ds::clip_norm{1.0}, ds::vary<&ds::adamw::weight_decay>(ds::linear{}),
                    ds::cuda{stream}};
}
