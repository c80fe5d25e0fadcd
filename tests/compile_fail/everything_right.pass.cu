// What the mistakes of this folder look like when they are not made.
#include <descent/backends/thrust.cuh>
#include <descent/descent.cuh>

#include <cuda/stream_ref>
#include <thrust/device_vector.h>

namespace ds = descent;

void f(ds::parameters<float> const& params, cudaStream_t stream) {
  ds::optimizer opt{params, ds::adamw{}, ds::clip_norm{1.0}, ds::vary<&ds::adamw::weight_decay>(ds::linear{}),
                    ds::cuda{stream}};
}

/// RMM's stream is one of this kind.
struct stream_view {
  cudaStream_t of;
  cudaStream_t value() const { return of; }
};

void g(thrust::device_vector<float>& values, thrust::device_vector<float>& gradients, cudaStream_t stream) {
  ds::parameters<float> params;
  params.add("w", values, gradients);
  ds::optimizer a{params, ds::sgd{}, ds::on(thrust::cuda::par.on(stream))};
  ds::optimizer b{params, ds::sgd{}, ds::on(thrust::cuda::par_nosync.on(stream))};
  ds::optimizer c{params, ds::sgd{}, ds::on(cuda::stream_ref(stream))};
  ds::optimizer d{params, ds::sgd{}, ds::on(stream_view{stream})};
}
