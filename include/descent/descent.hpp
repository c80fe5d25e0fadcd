// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

/// All of descent that a host compiler can build.
#include <descent/accumulate.hpp>
#include <descent/amp.hpp>
#include <descent/average.hpp>
#include <descent/clip.hpp>
#include <descent/cost.hpp>
#include <descent/host.hpp>
#include <descent/loss_scale.hpp>
#include <descent/loss_scaler.hpp>
#include <descent/noise.hpp>
#include <descent/optimizer.hpp>
#include <descent/parallel.hpp>
#include <descent/parameters.hpp>
#include <descent/rounding.hpp>
#include <descent/rules/adam.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/dog.hpp>
#include <descent/rules/lamb.hpp>
#include <descent/rules/lars.hpp>
#include <descent/rules/lion.hpp>
#include <descent/rules/rmsprop.hpp>
#include <descent/rules/sgd.hpp>
#include <descent/schedules/constant.hpp>
#include <descent/schedules/cosine.hpp>
#include <descent/schedules/linear.hpp>
#include <descent/schedules/step.hpp>
#include <descent/schedules/warmup.hpp>
#include <descent/storage.hpp>
#include <descent/vary.hpp>
#include <descent/zero_grad.hpp>
