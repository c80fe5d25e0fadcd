// expect: two policies of one kind: each kind of policy may be given at most once
#include <descent/descent.hpp>
namespace ds = descent;

void f(ds::parameters<float> const& params) {
  ds::optimizer opt{params, ds::adamw{}, ds::clip_norm{1.0}, ds::skip_nonfinite{}, ds::clip_norm{2.0}};
}
