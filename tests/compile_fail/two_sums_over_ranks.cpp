// expect: two options of replicated or sharded exclude each other: one wire<T>, one sum
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{},
                         descent::replicated{comm, descent::ordered_sum{}, descent::float_sum{}}};
}
