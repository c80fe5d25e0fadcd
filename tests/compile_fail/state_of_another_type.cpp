// expect: set_...(name, elements): it is stored in another type than the elements'; convert on purpose
#include <descent/descent.hpp>

void f(descent::parameters<float> const& params, std::span<descent::half const> saved) {
  descent::optimizer opt{params, descent::adamw{}};
  opt.set_state<0>("w", saved);
}
