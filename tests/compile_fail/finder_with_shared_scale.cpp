// expect: find_learning_rate: a shared loss scale is not allowed, other optimizers would see it change
#include <descent/descent.hpp>
#include <descent/training/lr_finder.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::loss_scaler scaler{};
  ds::optimizer opt{params, ds::adamw{}, ds::shared_loss_scale{scaler}};
  ds::find_learning_rate(opt, params, {}, [] { return 1.0; });
}
