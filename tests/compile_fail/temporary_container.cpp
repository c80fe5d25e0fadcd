// expect: containers or views, not temporary containers
#include <descent/descent.hpp>

#include <vector>

void f(descent::parameters<float>& params, std::vector<float>& values) {
  params.add("w", values, std::vector<float>(values.size()));
}
