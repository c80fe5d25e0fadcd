// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// The memory and the streams of the client, on the host or on a device.
#pragma once

#include <cstddef>

void* take(std::size_t bytes);
void give_back(void* p);
void put(void* to, void const* from, std::size_t bytes, void* stream);
void get(void* to, void const* from, std::size_t bytes, void* stream);  // waits
void* make_stream();
void end_stream(void* stream);
/// Makes later work on `behind` wait for that on `ahead`.
void order(void* ahead, void* behind);
