// expect: there is one rank: give the policy replicated{comm} or sharded{comm}
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params) {
  descent::optimizer opt{params, descent::sgd{}};
  opt.agree();
}
