// expect: sam and gradient_ahead cannot be combined with sharded
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{}, descent::gradient_ahead{}, descent::sharded{comm}};
}
