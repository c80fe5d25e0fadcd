// expect: observe(), plateau(): give the policy on_plateau{}
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}};
  opt.observe(1.0);
}
