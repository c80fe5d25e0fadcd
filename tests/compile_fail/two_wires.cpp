// expect: replicated and sharded take at most one wire<T>{} and at most one sum
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{},
                         descent::sharded{comm, descent::wire<descent::half>{}, descent::wire<float>{}}};
}
