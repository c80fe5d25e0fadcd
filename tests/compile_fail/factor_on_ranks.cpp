// expect: gradient_factor_at cannot be combined with replicated or sharded: each rank would have its own factor
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm, float const* factor) {
  descent::optimizer opt{params, descent::sgd{}, descent::replicated{comm}, descent::gradient_factor_at{factor}};
}
