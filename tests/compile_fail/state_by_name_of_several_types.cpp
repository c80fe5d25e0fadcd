// expect: the state's members have several types: use state<number>(name)
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}, ds::states<ds::half, float>{}};
  opt.state("w", "m");
}
