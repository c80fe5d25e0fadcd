// expect: loader: cuda needs #include <descent/data/device_loader.hpp>
#include <descent/backends/cuda.hpp>
#include <descent/data/loader.hpp>
#include <descent/data/sources.hpp>

void f(descent::in_memory<descent::field<"x", float>> const& source) {
  descent::loader data{source, descent::batches{1}, descent::sequential{}, descent::workers{}, descent::cuda{}};
}
