// expect: overlap cannot be combined with accumulate_by
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{}, descent::accumulate_by{descent::constant{2}},
                         descent::replicated{comm, descent::overlap{}}};
}
