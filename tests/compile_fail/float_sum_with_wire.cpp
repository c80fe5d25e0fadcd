// expect: float_sum sets the type on the wire
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{},
                         descent::replicated{comm, descent::wire<descent::half>{}, descent::float_sum{}}};
}
