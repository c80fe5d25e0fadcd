// expect: two policies of one kind
#include <descent/descent.hpp>

void f(descent::parameters<descent::half> const& params) {
  descent::optimizer opt{params, descent::sgd{}, descent::dynamic_loss_scale{}, descent::static_loss_scale{}};
}
