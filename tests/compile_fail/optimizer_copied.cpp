// expect: use of deleted function
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::lion{}};
  auto const copy = opt;
}
