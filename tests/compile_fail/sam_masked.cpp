// expect: sam cannot be combined with masked_rows: ascend() would move rows that are not selected
#include <descent/descent.hpp>

int main() {
  descent::parameters<float> list;
  descent::optimizer opt{list, descent::sgd{}, descent::sam{}, descent::masked_rows{}};
}
