// expect: there is no average: give the policy ema{} or swa{}
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params) {
  descent::optimizer opt{params, descent::sgd{}};
  opt.swap_average();
}
