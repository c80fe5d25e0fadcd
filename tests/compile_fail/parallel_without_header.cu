// expect: replicated and sharded on a device: #include <descent/ranks/parallel.cuh>
#include <descent/descent.cuh>
#include <descent/ranks/parallel.hpp>

#include "device_ranks.hpp"

void f(descent::parameters<float> const& params, device_ranks& ranks) {
  descent::optimizer opt{params, descent::sgd{}, descent::replicated{ranks}, descent::cuda{}};
}
