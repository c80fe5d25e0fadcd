// expect: gradient_ahead cannot be combined with ema_nesterov: both say where the gradient is taken
#include <descent/descent.hpp>

int main() {
  descent::parameters<float> list;
  descent::optimizer opt{list, descent::sgd{}, descent::gradient_ahead{}, descent::ema_nesterov{}};
}
