// expect: matrices cannot be combined with replicated or sharded
#include <descent/comm/threads.hpp>
#include <descent/descent.hpp>
#include <descent/policies/matrices.hpp>
#include <descent/rules/muon.hpp>

void f(descent::parameters<float> const& params, descent::comm::threads::member& comm) {
  descent::optimizer opt{params, descent::adamw{}, descent::matrices{descent::muon{}}, descent::replicated{comm}};
}
