// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#include "before.hpp"

namespace {

class own_loop : public adam {
 public:
  own_loop(settings const& s, std::vector<tensor> const& tensors, float const* inverse_scale)
      : settings_(s), tensors_(tensors), inverse_scale_(inverse_scale) {}
  void step(std::vector<__half*> const& gradients, void*) override {
    factors const k = factors_at(settings_, ++t_);
    for (std::size_t n = 0; n < tensors_.size(); ++n)
      for (std::int64_t i = 0; i < tensors_[n].count; ++i) update(tensors_[n], gradients[n], i, *inverse_scale_, k);
  }

 private:
  settings settings_;
  std::vector<tensor> tensors_;
  float const* inverse_scale_;
  int t_ = 0;
};

}  // namespace

std::unique_ptr<adam> make_before(settings const& s, std::vector<tensor> const& tensors, float const* inverse_scale,
                                  void*) {
  return std::make_unique<own_loop>(s, tensors, inverse_scale);
}
