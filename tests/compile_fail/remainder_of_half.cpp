// expect: master_remainder: the 16 bits are those that a bfloat16 value lacks
#include <descent/descent.hpp>

void f(descent::parameters<descent::half> const& params) {
  descent::optimizer opt{params, descent::adamw{}, descent::master_remainder{}};
}
