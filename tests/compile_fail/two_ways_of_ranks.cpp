// expect: two policies of one kind
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{}, descent::sharded{comm}, descent::replicated{comm}};
}
