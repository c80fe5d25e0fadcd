// expect: needs a loss scale, not half, no accumulate; see transform_gradients
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params) {
  descent::optimizer opt{params, descent::sgd{}, descent::dynamic_loss_scale{}, descent::accumulate{2}};
  opt.unscale();
}
