// expect: diloco: the optimizer cannot be sharded, because its ranks have parts of the masters
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>
#include <descent/training/diloco.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::diloco global{params, descent::outer{}, descent::replicated{comm}};
  descent::optimizer opt{params, descent::sgd{}, descent::sharded{comm}};
  global.step(opt);
}
