// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT

/// A program without code for the present device: build it for one other architecture, without PTX.
#include "support.cuh"

#include <descent/cuda.cuh>
#include <descent/engine/cuda/error.hpp>
#include <descent/optimizer.hpp>
#include <descent/rules/adamw.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <cstdio>

namespace {

/// Discards standard error while it exists: a simulated device complains there.
class quiet {
 public:
  quiet() : saved_(dup(2)) {
    int const nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 2);
    close(nowhere);
  }
  ~quiet() { dup2(saved_, 2), close(saved_); }

 private:
  int saved_;
};

}  // namespace

TEST_CASE(
    "a program without code for the device says at construction what it carries and what the "
    "device is") {
  test::stream s;
  test::tensors<float> x{{{5}}, s};
  int major = 0, minor = 0;
  test::cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  test::cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  auto const device = std::to_string(major) + "." + std::to_string(minor);
  auto const arch = "sm_" + std::to_string(major) + std::to_string(minor);
  std::string text = "nothing was thrown";
  try {
    quiet const q;
    descent::optimizer{x.on_device(), descent::adamw{}, descent::cuda{s}};
  } catch (descent::cuda_error const& e) {
    text = e.what();
    CHECK((e.code == cudaErrorNoKernelImageForDevice || e.code == cudaErrorInvalidDeviceFunction));
  }
  INFO(text);
  CHECK(text.starts_with("this program carries code for the architectures "));
  CHECK(text.ends_with(", but device 0 is of compute capability " + device + ": compile with -arch=" + arch));
  CHECK(descent::detail::launches == 0);
  CHECK(cudaGetLastError() == cudaSuccess);
  test::cuda(cudaStreamSynchronize(s));
}
