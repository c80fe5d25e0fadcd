// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/error.hpp>
#include <descent/engine/cuda/stream.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace descent::detail {

/// Marks on several streams, for another one to wait for.
class stream_marks {
 public:
  /// Marks the work enqueued on the stream so far.
  void mark(cudaStream_t stream) {
    auto known = std::find_if(marks_.begin(), marks_.end(), [&](auto const& m) { return m.stream == stream; });
    if (known == marks_.end()) known = marks_.insert(known, {stream, new_event(), false});
    require_cuda(cudaEventRecord(known->event.get(), stream), "cudaEventRecord");
    known->waits = true;
  }
  /// Makes later work on `behind` wait for the marks, once.
  void order_before(cudaStream_t behind) {
    for (auto& m : marks_)
      if (std::exchange(m.waits, false))
        require_cuda(cudaStreamWaitEvent(behind, m.event.get(), 0), "cudaStreamWaitEvent");
  }

 private:
  struct one {
    cudaStream_t stream;
    owned_event event;
    bool waits;
  };
  std::vector<one> marks_;
};

}  // namespace descent::detail
