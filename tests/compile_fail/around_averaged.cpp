// expect: policies around the update cannot be combined with a rule that has an average: its state would not follow
#include <descent/descent.hpp>

void f(descent::parameters<float> const& list) {
  descent::optimizer opt{list, descent::schedule_free_adamw{}, descent::cautious_decay{}};
}
