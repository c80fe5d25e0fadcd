// expect: batch: only ragged fields have lengths
#include <descent/data/batch.hpp>

auto f(descent::batch<descent::fields<descent::field<"x", float>>> const& b) { return b.lengths<"x">(); }
