// expect: find_learning_rate: not with a shared loss scale, which other optimizers would see change
#include <descent/descent.hpp>
#include <descent/training/lr_finder.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::loss_scaler scaler{};
  ds::optimizer opt{params, ds::adamw{}, ds::shared_loss_scale{scaler}};
  ds::find_learning_rate(opt, params, {}, [] { return 1.0; });
}
