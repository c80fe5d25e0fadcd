// expect: two policies of one kind: each kind of policy may be given at most once
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}, ds::learning_rate(ds::constant{1e-3}),
                    ds::vary<&ds::adamw::lr>(ds::constant{1e-3})};
}
