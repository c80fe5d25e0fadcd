// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nvtx3/nvtx3.hpp>

#include <list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace example {

/// A tool for NVTX that is linked into the program and lists the ranges, where no profiler is at hand. If the program
/// runs under another tool, that one gets the ranges.
class nvtx_tool {
 public:
  /// Call it before the first range, in a unit that includes NVTX.
  static void attach() { InitializeInjectionNvtx2_fnptr = start; }
  /// The ranges that the calling thread has begun since the last call, as "domain: name", each indented by two spaces
  /// for every range around it.
  static std::vector<std::string> take() { return std::exchange(begun, {}); }

 private:
  static int start(NvtxGetExportTableFunc_t table_of) {
    auto const* const tables = static_cast<NvtxExportTableCallbacks const*>(table_of(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable functions = nullptr;
    if (!tables || !tables->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, nullptr)) return 0;
    *functions[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(create_domain);
    *functions[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(push);
    *functions[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
    return 1;
  }
  static nvtxDomainHandle_t create_domain(char const* name) {
    std::lock_guard const lock(mutex);
    return reinterpret_cast<nvtxDomainHandle_t>(&domains.emplace_back(name));
  }
  static int push(nvtxDomainHandle_t domain, nvtxEventAttributes_t const* range) {
    begun.push_back(std::string(std::size_t(2 * depth), ' ') + *reinterpret_cast<std::string const*>(domain) + ": " +
                    range->message.ascii);
    return depth++;
  }
  static int pop(nvtxDomainHandle_t) { return --depth; }

  static inline std::mutex mutex;
  static inline std::list<std::string> domains;
  static inline thread_local std::vector<std::string> begun;
  static inline thread_local int depth = 0;
};

}  // namespace example
