// expect: needs a loss scale, not half, no accumulate; see transform_gradients
#include <descent/descent.hpp>

void f(descent::parameters<descent::half> const& params) {
  descent::optimizer opt{params, descent::sgd{}, descent::dynamic_loss_scale{}};
  opt.unscale();
}
