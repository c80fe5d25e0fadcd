// expect: a policy of a kind that no engine knows would do nothing: policy_kind is one of descent::kind
#include <descent/descent.hpp>
namespace ds = descent;

namespace mine {
struct kind_of_brake;
struct brake {
  using policy_kind = kind_of_brake;
  double most = 1;
};
}  // namespace mine

void f(ds::parameters<float> const& params) { ds::optimizer opt{params, ds::adamw{}, mine::brake{}}; }
