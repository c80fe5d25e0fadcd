// expect: rule_memory(): the rule has no memory beside its state
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params) {
  descent::optimizer opt{params, descent::adamw{}};
  opt.rule_memory();
}
