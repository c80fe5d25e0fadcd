// expect: matrices on CUDA: #include <descent/matrices/cuda.cuh>, and link cuBLAS
#include <descent/descent.cuh>
#include <descent/rules/muon.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params, cudaStream_t stream) {
  ds::optimizer opt{params, ds::adamw{}, ds::matrices{ds::muon{}}, ds::cuda{stream}};
}
