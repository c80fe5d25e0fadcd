// expect: stochastic_values: no 16-bit value has a master<M> beside it
#include <descent/descent.hpp>

void f(descent::parameters<descent::bfloat16> const& params) {
  descent::optimizer opt{params, descent::adamw{}, descent::master_remainder{}, descent::stochastic_values{}};
}
