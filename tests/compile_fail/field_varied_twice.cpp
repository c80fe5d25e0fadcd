// expect: two policies of one kind: each kind of policy may be given at most once
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}, ds::vary<&ds::adamw::eps>(ds::constant{1e-8}),
                    ds::vary<&ds::adamw::eps>(ds::linear{})};
}
