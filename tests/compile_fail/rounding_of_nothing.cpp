// expect: stochastic_rounding: nothing that it rounds is stored in 16 bits
#include <descent/descent.hpp>

void f(descent::parameters<descent::half> const& params) {
  descent::optimizer opt{params, descent::adamw{}, descent::master<float>{}, descent::stochastic_rounding{}};
}
