// expect: give replicated or sharded overlap{}
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{}, descent::replicated{comm}};
  opt.ready("w");
}
