// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/detail/home_process.hpp>
#include <descent/io/checkpoint.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace descent {

/// Saves runs in the background: save() takes a snapshot, a thread writes it, and training continues.
///
///     async_save saver;
///     for (...) {
///       opt.step();
///       if (step % 1000 == 0) saver.save("run.safetensors", opt, batches);
///     }
///     saver.wait();
///
/// The snapshot is kept for the next save: as many bytes as the file, in pinned memory with cuda{}. With ranks, all of
/// them make the same calls, including the destructor, and the optimizer outlives the async_save. A save that has
/// not been waited for when fork() makes a child is the parent's: in the child wait() and save() throw
/// std::logic_error.
class async_save {
 public:
  async_save() = default;
  async_save(async_save const&) = delete;
  async_save& operator=(async_save const&) = delete;
  /// Like wait(), but while an exception is on its way only waits for this rank's thread.
  ~async_save() noexcept(false) {
    if (!home_.is_here()) {
      // The future of a thread that is not here would wait for ever.
      if (writing_.valid()) static_cast<void>(new std::future<std::string>(std::move(writing_)));
      return;
    }
    if (std::uncaught_exceptions() > exceptions_) {
      if (writing_.valid()) writing_.wait();
    } else {
      wait();
    }
  }

  /// Waits for the save before, then saves like save_file(). Returns when the snapshot is enqueued on the stream (on
  /// the host: is taken), so that the next steps may follow. Throws like wait(), and like save_file() if the parts
  /// cannot be saved.
  template <class... Parts> void save(std::string const& path, Parts&&... parts) {
    start(path, detail::make_parts(parts...));
  }
  /// Waits until the last save is in its file. Throws what went wrong, once; the previous file is then unchanged.
  void wait() {
    if (!writing_.valid()) return;
    if (!home_.is_here())
      throw std::logic_error("async_save: process " + std::to_string(::getpid()) +
                             " cannot wait: the thread that writes is one of process " + std::to_string(home_.id()) +
                             ", from which fork() made this one");
    auto const job = *std::exchange(job_, std::nullopt);
    detail::finish_save(job, files_, *image_, [this] { return writing_.get(); });
    image_.reset(), parts_.clear();
  }
  /// Whether a save has not been waited for.
  bool pending() const { return writing_.valid(); }

 private:
  friend class checkpoints;

  void start(std::string const& path, std::vector<detail::named_part> parts, text_map const& texts = {}) {
    wait();
    detail::job_ranks const job(parts);
    auto prepared = detail::prepare_save(job, path, parts, texts);
    auto& image = prepared.first;
    files_ = std::move(prepared.second);
    if (!image.divided() && files_.rank != 0) image.entries.clear();
    std::vector<detail::sole_function<>> copied;
    job.meet([&] {
      copied = snapshot(image);
      return std::string();
    });
    image_ = std::move(image), parts_ = std::move(parts), job_ = job;
    writing_ = std::async(std::launch::async, [this, copied = std::move(copied)] {
      for (auto const& wait_for : copied) wait_for();
      if (image_->divided()) return files_.write_part(*image_);
      if (files_.rank == 0) files_.write_main(*image_, {});
      return std::string();
    });
  }

  /// Copies all elements, and makes the entries refer to the copies.
  std::vector<detail::sole_function<>> snapshot(detail::run_image& image) {
    std::size_t bytes = 0;
    detail::run_memory* device = nullptr;
    for (auto const& e : image.entries) {
      if (!e.piece.own) bytes += rounded(e.piece.bytes());
      if (!e.memory->on_host()) device = e.memory;
    }
    if (bytes > room_ || (device != nullptr) != pinned_) {
      staging_ = nullptr, room_ = 0;
      staging_ = (device ? *device : host_).staging(bytes);
      room_ = bytes, pinned_ = device != nullptr;
    }
    std::vector<detail::run_memory*> used;
    std::byte* to = staging_.get();
    for (auto& e : image.entries) {
      if (e.piece.own) continue;
      if (e.piece.bytes() > 0) e.memory->copy(to, e.piece.data, e.piece.bytes());
      if (std::ranges::find(used, e.memory) == used.end()) used.push_back(e.memory);
      e.piece.data = to, to += rounded(e.piece.bytes());
      e.memory = &host_;
    }
    std::vector<detail::sole_function<>> copied;
    for (auto* memory : used) copied.push_back(memory->mark());
    return copied;
  }
  static constexpr std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  detail::home_process home_;
  int exceptions_ = std::uncaught_exceptions();
  detail::run_memory host_;
  detail::staging_memory staging_;
  std::size_t room_ = 0;
  bool pinned_ = false;
  std::optional<detail::run_image> image_;
  detail::run_files files_{};
  std::vector<detail::named_part> parts_;
  std::optional<detail::job_ranks> job_;
  std::future<std::string> writing_;
};

}  // namespace descent
