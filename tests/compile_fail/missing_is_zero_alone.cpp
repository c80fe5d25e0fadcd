// expect: missing_is_zero{} needs overlap{}
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{}, descent::replicated{comm, descent::missing_is_zero{}}};
}
