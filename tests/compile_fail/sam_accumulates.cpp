// expect: sam and gradient_ahead cannot be combined with accumulate: each micro-batch would need its own move
#include <descent/descent.hpp>

int main() {
  descent::parameters<float> list;
  descent::optimizer opt{list, descent::sgd{}, descent::sam{}, descent::accumulate{4}};
}
