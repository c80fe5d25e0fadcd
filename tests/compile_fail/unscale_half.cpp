// expect: unscale(): half gradients would underflow without their loss scale
#include <descent/descent.hpp>

void f(descent::parameters<descent::half> const& params) {
  descent::optimizer opt{params, descent::sgd{}, descent::dynamic_loss_scale{}};
  opt.unscale();
}
