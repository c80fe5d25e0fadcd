// expect: loader: after the workers it takes a rank_slice or a communicator, and a backend
#include <descent/data/loader.hpp>
#include <descent/data/sources.hpp>

void f(descent::in_memory<descent::field<"x", float>> const& source) {
  descent::loader data{source, descent::batches{1}, descent::sequential{}, descent::workers{}, 5};
}
