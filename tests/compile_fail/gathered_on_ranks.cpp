// expect: rows that come and go on several ranks need an optimizer of their own
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::sgd{}, descent::replicated{comm}};
  opt.gathered(params);
}
