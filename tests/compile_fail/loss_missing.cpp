// expect: the rule uses the loss of the batch: give the policy loss_at{pointer}
#include <descent/optimizer.hpp>
#include <descent/rules/polyak.hpp>

int main() {
  descent::parameters<float> list;
  descent::optimizer opt{list, descent::polyak{}};
}
