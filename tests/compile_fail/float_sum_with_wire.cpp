// expect: float_sum is a type on the wire itself
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{},
                         descent::replicated{comm, descent::wire<descent::half>{}, descent::float_sum{}}};
}
