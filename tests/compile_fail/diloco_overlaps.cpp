// expect: diloco: overlap{} has no backward pass to overlap with
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>
#include <descent/training/diloco.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::diloco global{params, descent::outer{}, descent::replicated{comm, descent::overlap{}}};
}
