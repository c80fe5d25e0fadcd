// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/data/loader.hpp>
#include <descent/data/detail/device_slots.hpp>

/// loader with cuda{stream}: batches are in device memory, on the device that is current at the construction.
///
///     loader data{source, batches{.size = 64}, shuffled{}, workers{.threads = 4}, cuda{stream}};
///     for (auto const& batch : data.epoch()) step<<<..., stream>>>(batch.get<"x">().data(), batch.size());
///
/// Slots are pinned memory, from which workers start copies on the loader's own stream. A batch is ready in the order
/// of `stream`. Its memory may be overwritten after the work that is enqueued on `stream` before the next batch is
/// requested. Taking a batch enqueues an event and a wait, and synchronizes nothing; without threads it waits for the
/// copy of an earlier batch. It throws std::logic_error while the stream is capturing. The destructor waits for the
/// device. It compiles without nvcc; link the CUDA runtime.
