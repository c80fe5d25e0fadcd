// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/engine/cuda/error.hpp>
#include <descent/core/detail/containers.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// Streams and events.
namespace descent::detail {

struct stream_destroy {
  void operator()(cudaStream_t s) const noexcept { cudaStreamDestroy(s); }
};
struct event_destroy {
  void operator()(cudaEvent_t e) const noexcept { cudaEventDestroy(e); }
};
using owned_stream = sole_handle<cudaStream_t, stream_destroy>;
using owned_event = sole_handle<cudaEvent_t, event_destroy>;

/// A stream of the highest priority that does not synchronize with the default stream.
inline owned_stream new_stream() {
  int least = 0, greatest = 0;
  require_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t s = nullptr;
  require_cuda(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, greatest), "cudaStreamCreateWithPriority");
  return owned_stream(s);
}
inline owned_event new_event() {
  cudaEvent_t e = nullptr;
  require_cuda(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return owned_event(e);
}
inline bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  require_cuda(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}
inline void refuse_capturing(cudaStream_t stream, char const* what) {
  if (is_capturing(stream))
    throw std::logic_error(std::string(what) +
                           " waits for the stream, which is capturing: call it after the graph has run");
}
/// The same for the first call of what then allocates, which would break the capture.
inline void refuse_allocating(cudaStream_t stream, char const* what) {
  if (is_capturing(stream))
    throw std::logic_error(std::string("the first ") + what +
                           " allocates memory, and the stream is capturing: call it once before the capture");
}
/// Makes later work on `behind` wait for the work enqueued on `ahead` so far.
inline void order(cudaStream_t ahead, cudaStream_t behind, owned_event const& by) {
  require_cuda(cudaEventRecord(by.get(), ahead), "cudaEventRecord");
  require_cuda(cudaStreamWaitEvent(behind, by.get(), 0), "cudaStreamWaitEvent");
}

/// Runs f with `current` set to another stream, in order with the work before and after it on `current`. No order can
/// be added if only the other stream is capturing.
template <class F> void run_elsewhere(cudaStream_t& current, cudaStream_t other, owned_event& event, F const& f) {
  cudaStream_t const own = current;
  if (other == own) return f();
  bool const orders = !is_capturing(other) || is_capturing(own);
  if (!event) event = new_event();
  if (orders) order(own, other, event);
  current = other;
  try {
    f();
  } catch (...) {
    current = own;
    if (orders) try {
        order(other, own, event);
      } catch (cuda_error const&) {}  // the first exception is rethrown
    throw;
  }
  current = own;
  if (orders) order(other, own, event);
}

/// Marks on several streams, for another one to wait for.
class stream_marks {
 public:
  /// Marks the work enqueued on the stream so far.
  void mark(cudaStream_t stream) {
    one* known = nullptr;
    for (one& m : marks_)
      if (m.stream == stream) known = &m;
    if (!known) known = &marks_.emplace_back(one{stream, new_event(), false});
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
