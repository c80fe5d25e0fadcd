// expect: overlap cannot be combined with sam
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{}, descent::sam{}, descent::replicated{comm, descent::overlap{}}};
}
