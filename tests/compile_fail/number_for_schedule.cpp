// expect: a schedule must be trivially copyable and have 'double operator()(std::int64_t step) const'
#include <descent/descent.hpp>
namespace ds = descent;

auto const policy = ds::vary<&ds::adamw::eps>(1e-8);
