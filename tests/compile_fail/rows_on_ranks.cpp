// expect: masked_rows cannot be combined with replicated or sharded
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{}, descent::masked_rows{}, descent::replicated{comm}};
}
