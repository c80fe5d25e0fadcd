// expect: find_learning_rate: loss must be callable as loss(trial) or loss() and return the loss
#include <descent/descent.hpp>
#include <descent/training/lr_finder.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}};
  ds::find_learning_rate(opt, params, {}, [](float* x) { return x[0]; });
}
