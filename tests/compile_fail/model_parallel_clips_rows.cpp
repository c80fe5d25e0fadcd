// expect: model_parallel cannot be combined with clip_adaptive
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{}, descent::clip_adaptive{}, descent::model_parallel{comm}};
}
