// expect: model_parallel on a device: #include <descent/ranks/model_parallel.cuh>
#include <descent/descent.cuh>
#include <descent/ranks/model_parallel.hpp>

#include "device_ranks.hpp"

void f(descent::parameters<float> const& params, device_ranks& ranks) {
  descent::optimizer opt{params, descent::sgd{}, descent::model_parallel{ranks}, descent::cuda{}};
}
