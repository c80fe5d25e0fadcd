// expect: gradient_ahead: the rule needs 'template <class Real> Real ahead(
#include <descent/descent.hpp>

int main() {
  descent::parameters<float> list;
  descent::optimizer opt{list, descent::adam{}, descent::gradient_ahead{}};
}
