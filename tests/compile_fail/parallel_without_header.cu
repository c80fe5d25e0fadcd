// expect: replicated and sharded on a device: #include <descent/policies/parallel.cuh>
#include <descent/descent.cuh>
#include <descent/policies/parallel.hpp>

struct own_ranks {
  static constexpr bool on_device = true;
  int rank() const { return 0; }
  int size() const { return 1; }
  void abort(std::string const&) noexcept {}
};

void f(descent::parameters<float> const& params, own_ranks& ranks) {
  descent::optimizer opt{params, descent::sgd{}, descent::replicated{ranks}, descent::cuda{}};
}
