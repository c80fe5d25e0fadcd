// expect: scale_rows cannot be combined with sharded, whose masters are in parts
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm, float const* s) {
  descent::optimizer opt{params, descent::sgd{}, descent::sharded{comm}};
  opt.scale_rows("w", s, 1, descent::qk_clip{});
}
