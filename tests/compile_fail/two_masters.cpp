// expect: two policies of one kind: each kind of policy may be given at most once
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<ds::half> const& params) {
  ds::optimizer opt{params, ds::adamw{}, ds::master<float>{}, ds::master<double>{}};
}
