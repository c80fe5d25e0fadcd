// expect: model_parallel on a device: #include <descent/policies/model_parallel.cuh>
#include <descent/descent.cuh>
#include <descent/policies/model_parallel.hpp>

struct own_ranks {
  static constexpr bool on_device = true;
  int rank() const { return 0; }
  int size() const { return 1; }
  void abort(std::string const&) noexcept {}
};

void f(descent::parameters<float> const& params, own_ranks& ranks) {
  descent::optimizer opt{params, descent::sgd{}, descent::model_parallel{ranks}, descent::cuda{}};
}
