// expect: replicated{comm} and sharded{comm} take a communicator
#include <descent/descent.hpp>
#include <descent/ranks/parallel.hpp>

void f(descent::parameters<float> const& params) {
  int comm = 3;
  descent::optimizer opt{params, descent::sgd{}, descent::replicated{comm}};
}
