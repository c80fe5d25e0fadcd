// expect: give masked_rows{}
#include <descent/descent.hpp>

int main() {
  descent::parameters<float> list;
  descent::optimizer opt{list, descent::adam{}};
  opt.select_rows("w", nullptr);
}
