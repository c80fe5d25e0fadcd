// expect: no such pair of types for value and gradient in the list
#include <descent/descent.hpp>

void f(descent::half* value, float* gradient) {
  descent::parameters<descent::mixed<descent::half, float>> params;
  params.add("w", value, gradient, 8);
}
