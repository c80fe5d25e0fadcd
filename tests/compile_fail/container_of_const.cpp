// expect: add(name, values, gradients): the elements have the types of parameters<Value, Gradient>, and are not const
#include <descent/descent.hpp>

#include <vector>

void f(descent::parameters<float>& params, std::vector<float>& values, std::vector<float> const& gradients) {
  params.add("w", values, gradients);
}
