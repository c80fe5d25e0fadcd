// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// The update kernel of every rule in float, with what guard.py checks, as in update.cu: gradient, value and each
/// member of the state in accesses of 16 bytes, no spills, no local memory, no arithmetic in double, and at most the
/// given number of registers. Code that chooses between kinds of state that may be absent has
/// several pieces, at most the given number.
#include <descent/descent.cuh>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/sm3.hpp>

namespace ds = descent;
namespace detail = descent::detail;

/// Rules around a rule, with names of their own.
namespace descent {
struct larc_of_sgd : larc<sgd> {};
struct larc_of_adam : larc<adam> {};
struct layerwise_adam : layerwise<adam> {};
struct layerwise_rmsprop : layerwise<rmsprop> {};
}  // namespace descent

#define RULE(rule) \
  template __global__ void detail::each_packet(detail::update_packets<detail::plan<float, float, ds::rule>>);
RULE(acprop)               // guard: loads 8 stores 6 registers 80
RULE(adabelief)            // guard: loads 8 stores 6 registers 80
RULE(adabound)             // guard: loads 10 stores 8 registers 128 pieces 8 terms 12
RULE(adadelta)             // guard: loads 8 stores 6 registers 80
RULE(adafactor)            // guard: loads 8 stores 6 registers 80 pieces 6
RULE(adagrad)              // guard: loads 6 stores 4 registers 80
RULE(adam)                 // guard: loads 8 stores 6 registers 80
RULE(adamax)               // guard: loads 8 stores 6 registers 80
RULE(adamw)                // guard: loads 8 stores 6 registers 80
RULE(adan)                 // guard: loads 12 stores 10 registers 128 terms 16
RULE(ademamix)             // guard: loads 10 stores 8 registers 128 terms 13
RULE(adopt)                // guard: loads 8 stores 6 registers 80
RULE(amsgrad)              // guard: loads 10 stores 8 registers 128
RULE(asgd)                 // guard: loads 6 stores 4 registers 80 pieces 3
RULE(cocob)                // guard: loads 14 stores 12 registers 128
RULE(dadapt_adamw)         // guard: loads 10 stores 8 registers 128
RULE(dog)                  // guard: loads 4 stores 2 registers 80
RULE(dowg)                 // guard: loads 4 stores 2 registers 80
RULE(fromage)              // guard: loads 4 stores 2 registers 80
RULE(heavy_ball)           // guard: loads 6 stores 4 registers 80 pieces 4
RULE(lamb)                 // guard: loads 8 stores 6 registers 80
RULE(laprop)               // guard: loads 8 stores 6 registers 80
RULE(larc_of_sgd)          // guard: loads 6 stores 4 registers 80 pieces 4
RULE(larc_of_adam)         // guard: loads 8 stores 6 registers 80
RULE(layerwise_adam)       // guard: loads 8 stores 6 registers 80
RULE(layerwise_rmsprop)    // guard: loads 10 stores 8 registers 128 pieces 8 terms 12
RULE(lars)                 // guard: loads 6 stores 4 registers 80 pieces 4
RULE(lion)                 // guard: loads 6 stores 4 registers 80
RULE(madgrad)              // guard: loads 10 stores 8 registers 128
RULE(momo)                 // guard: loads 6 stores 4 registers 80
RULE(nadam)                // guard: loads 8 stores 6 registers 80
RULE(novograd)             // guard: loads 6 stores 4 registers 80
RULE(optimistic)           // guard: loads 6 stores 4 registers 80
RULE(optimistic_adam)      // guard: loads 10 stores 8 registers 128 terms 12
RULE(padam)                // guard: loads 10 stores 8 registers 128 pieces 8
RULE(polyak)               // guard: loads 4 stores 2 registers 80
RULE(prodigy)              // guard: loads 10 stores 8 registers 128
RULE(qhadam)               // guard: loads 8 stores 6 registers 80 pieces 6 terms 13
RULE(qhm)                  // guard: loads 6 stores 4 registers 80 pieces 4
RULE(radam)                // guard: loads 8 stores 6 registers 80
RULE(rmsprop)              // guard: loads 10 stores 8 registers 128 pieces 8
RULE(rprop)                // guard: loads 8 stores 6 registers 80
RULE(schedule_free_adamw)  // guard: loads 8 stores 6 registers 80
RULE(schedule_free_sgd)    // guard: loads 6 stores 4 registers 80
RULE(sgd)                  // guard: loads 6 stores 4 registers 80 pieces 4
RULE(signsgd)              // guard: loads 4 stores 2 registers 80
RULE(signum)               // guard: loads 6 stores 4 registers 80
RULE(sm3)                  // guard: loads 8 stores 6 registers 80 pieces 6
RULE(sophia)               // guard: loads 8 stores 6 registers 80
RULE(yellowfin)            // guard: loads 8 stores 6 registers 80
RULE(yogi)                 // guard: loads 8 stores 6 registers 80
