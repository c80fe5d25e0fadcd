// expect: add(name, values, gradients): the elements have the types of parameters<Value, Gradient>, and values are not const
#include <descent/descent.hpp>

#include <vector>

void f(descent::parameters<float>& params, std::vector<float> const& values, std::vector<float>& gradients) {
  params.add("w", values, gradients);
}
