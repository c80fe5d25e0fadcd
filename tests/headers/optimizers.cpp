// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// Optimizers for which cost.py measures what one more of them adds to a program: the functions whose names contain its
/// word, for the first word that matches.
///
///     optimizer: muon   muon
///     optimizer: mixed  __half
///     optimizer: sgd    descent::sgd
///     optimizer: lamb   descent::lamb
///     optimizer: adamw  descent::adamw
#include <descent/descent.hpp>
#include <descent/matrices/host.hpp>
#include <descent/rules/muon.hpp>

namespace ds = descent;

void sgd(ds::parameters<float> const& params) { ds::optimizer{params, ds::sgd{}}.step(); }
void adamw(ds::parameters<float> const& params) { ds::optimizer{params, ds::adamw{}}.step(); }
void mixed(ds::parameters<ds::half> const& params) {
  ds::optimizer{params, ds::adamw{}, ds::master<float>{}, ds::dynamic_loss_scale{}, ds::clip_norm{}, ds::ema{},
                ds::zero_grad{}}.step();
}
void lamb(ds::parameters<float> const& params) { ds::optimizer{params, ds::lamb{}}.step(); }
void muon(ds::parameters<float> const& params) { ds::optimizer{params, ds::adamw{}, ds::matrices{ds::muon{}}}.step(); }
