// expect: no master: give the policy master<float>{}
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}};
  opt.master("w");
}
