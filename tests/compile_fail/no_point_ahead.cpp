// expect: gradient_ahead: the rule does not say where
#include <descent/descent.hpp>

int main() {
  descent::parameters<float> list;
  descent::optimizer opt{list, descent::adam{}, descent::gradient_ahead{}};
}
