// expect: an option of replicated or sharded must be wire<T>{}, native_sum{}, float_sum{}, ordered_sum{}, overlap{}, missing_is_zero{} or agree_every{updates}
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{}, descent::sharded{comm, descent::clip_norm{1}}};
}
