// expect: masked_rows<row_step::own>: a rule with sums or memory has one t for all rows
#include <descent/descent.hpp>

int main() {
  descent::parameters<float> list;
  descent::optimizer opt{list, descent::lamb{}, descent::masked_rows<descent::row_step::own>{}};
}
