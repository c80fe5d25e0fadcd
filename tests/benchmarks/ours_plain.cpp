// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "ours.hpp"
#include "settings.hpp"

namespace bench {
namespace {

recipe const sgd("sgd", make<float>(1, 1, ds::sgd{.lr = lr}));
recipe const heavy("momentum", make<float>(1, 1, ds::sgd{.lr = lr, .momentum = momentum}));
recipe const lion("lion", make<float>(1, 1, ds::lion{.lr = lion_lr, .beta1 = beta1, .beta2 = lion_beta2,
                                                     .weight_decay = decay}));
recipe const lamb("lamb", make<float>(1, 1, ds::lamb{.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps,
                                                     .weight_decay = decay}));
recipe const lars("lars", make<float>(1, 1, ds::lars{.lr = lars_lr, .momentum = momentum, .weight_decay = decay,
                                                     .trust = lars_trust}));

}  // namespace
}  // namespace bench
