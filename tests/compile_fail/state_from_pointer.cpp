// expect: set_...(name, elements): the elements are a vector, a span or an array
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, float const* saved) {
  descent::optimizer opt{params, descent::adamw{}};
  opt.set_state<0>("w", saved);
}
