// expect: the rule's state has fewer members
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}};
  opt.state<2>("w");
}
