// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// The update kernel of every rule in float. Read by guard.py, as in update.cu: gradient, value and each member of the
/// state in accesses of 16 bytes, no spills, no local memory, no arithmetic in double; 64 registers where the state has
/// up to two members, else 128. Code that chooses between kinds of state that may be absent has several pieces, at most
/// these.
///
///     guard: update_packets  acprop>                    loads 8 stores 6 registers 64
///     guard: update_packets  adabelief>                 loads 8 stores 6 registers 64
///     guard: update_packets  adabound>                  loads 10 stores 8 registers 128 pieces 8 terms 12
///     guard: update_packets  adadelta>                  loads 8 stores 6 registers 64
///     guard: update_packets  adafactor>                 loads 8 stores 6 registers 64 pieces 6
///     guard: update_packets  adagrad>                   loads 6 stores 4 registers 64
///     guard: update_packets  adam>                      loads 8 stores 6 registers 64
///     guard: update_packets  adamax>                    loads 8 stores 6 registers 64
///     guard: update_packets  adamw>                     loads 8 stores 6 registers 64
///     guard: update_packets  adan>                      loads 12 stores 10 registers 128 terms 15
///     guard: update_packets  ademamix>                  loads 10 stores 8 registers 128 terms 12
///     guard: update_packets  adopt>                     loads 8 stores 6 registers 64
///     guard: update_packets  amsgrad>                   loads 10 stores 8 registers 128
///     guard: update_packets  asgd>                      loads 6 stores 4 registers 64 pieces 3
///     guard: update_packets  cocob>                     loads 14 stores 12 registers 128
///     guard: update_packets  dadapt_adamw>              loads 10 stores 8 registers 128
///     guard: update_packets  dog>                       loads 4 stores 2 registers 64
///     guard: update_packets  dowg>                      loads 4 stores 2 registers 64
///     guard: update_packets  fromage>                   loads 4 stores 2 registers 64
///     guard: update_packets  heavy_ball>                loads 6 stores 4 registers 64 pieces 4
///     guard: update_packets  lamb>                      loads 8 stores 6 registers 64
///     guard: update_packets  larc_of_sgd>               loads 6 stores 4 registers 64 pieces 4
///     guard: update_packets  larc_of_adam>              loads 8 stores 6 registers 64
///     guard: update_packets  layerwise_adam>            loads 8 stores 6 registers 64
///     guard: update_packets  layerwise_rmsprop>         loads 10 stores 8 registers 128 pieces 8 terms 12
///     guard: update_packets  lars>                      loads 6 stores 4 registers 64 pieces 4
///     guard: update_packets  lion>                      loads 6 stores 4 registers 64
///     guard: update_packets  madgrad>                   loads 10 stores 8 registers 128
///     guard: update_packets  momo>                      loads 6 stores 4 registers 64
///     guard: update_packets  nadam>                     loads 8 stores 6 registers 64
///     guard: update_packets  novograd>                  loads 6 stores 4 registers 64
///     guard: update_packets  optimistic>                loads 6 stores 4 registers 64
///     guard: update_packets  optimistic_adam>           loads 10 stores 8 registers 128
///     guard: update_packets  padam>                     loads 10 stores 8 registers 128 pieces 8
///     guard: update_packets  polyak>                    loads 4 stores 2 registers 64
///     guard: update_packets  prodigy>                   loads 10 stores 8 registers 128
///     guard: update_packets  qhadam>                    loads 8 stores 6 registers 64 pieces 6 terms 12
///     guard: update_packets  qhm>                       loads 6 stores 4 registers 64 pieces 4
///     guard: update_packets  radam>                     loads 8 stores 6 registers 64
///     guard: update_packets  rmsprop>                   loads 10 stores 8 registers 128 pieces 8
///     guard: update_packets  rprop>                     loads 8 stores 6 registers 64
///     guard: update_packets  schedule_free_adamw>       loads 8 stores 6 registers 64
///     guard: update_packets  schedule_free_sgd>         loads 6 stores 4 registers 64
///     guard: update_packets  sgd>                       loads 6 stores 4 registers 64 pieces 4
///     guard: update_packets  signsgd>                   loads 4 stores 2 registers 64
///     guard: update_packets  signum>                    loads 6 stores 4 registers 64
///     guard: update_packets  sm3>                       loads 8 stores 6 registers 64 pieces 6
///     guard: update_packets  sophia>                    loads 8 stores 6 registers 64
///     guard: update_packets  yellowfin>                 loads 8 stores 6 registers 64
///     guard: update_packets  yogi>                      loads 8 stores 6 registers 64
#include <descent/descent.cuh>
#include <descent/rules/adafactor.hpp>
#include <descent/rules/sm3.hpp>

namespace ds = descent;
namespace detail = descent::detail;

/// Rules around a rule, under names of their own.
namespace descent {
struct larc_of_sgd : larc<sgd> {};
struct larc_of_adam : larc<adam> {};
struct layerwise_adam : layerwise<adam> {};
struct layerwise_rmsprop : layerwise<rmsprop> {};
}  // namespace descent

#define RULE(rule) \
  template __global__ void detail::each_packet(detail::update_packets<detail::plan<float, float, ds::rule>>);
RULE(acprop)
RULE(adabelief)
RULE(adabound)
RULE(adadelta)
RULE(adafactor)
RULE(adagrad)
RULE(adam)
RULE(adamax)
RULE(adamw)
RULE(adan)
RULE(ademamix)
RULE(adopt)
RULE(amsgrad)
RULE(asgd)
RULE(cocob)
RULE(dadapt_adamw)
RULE(dog)
RULE(dowg)
RULE(fromage)
RULE(heavy_ball)
RULE(lamb)
RULE(larc_of_sgd)
RULE(larc_of_adam)
RULE(layerwise_adam)
RULE(layerwise_rmsprop)
RULE(lars)
RULE(lion)
RULE(madgrad)
RULE(momo)
RULE(nadam)
RULE(novograd)
RULE(optimistic)
RULE(optimistic_adam)
RULE(padam)
RULE(polyak)
RULE(prodigy)
RULE(qhadam)
RULE(qhm)
RULE(radam)
RULE(rmsprop)
RULE(rprop)
RULE(schedule_free_adamw)
RULE(schedule_free_sgd)
RULE(sgd)
RULE(signsgd)
RULE(signum)
RULE(sm3)
RULE(sophia)
RULE(yellowfin)
RULE(yogi)
