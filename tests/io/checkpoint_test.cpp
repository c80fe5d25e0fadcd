// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
// Runs as files: what was saved goes on to the bit, and what does not fit is refused with nothing changed.
#include <descent/any_optimizer.hpp>
#include <descent/io/checkpoint.hpp>
#include <descent/io/collect.hpp>
#include <descent/optimizer.hpp>
#include <descent/policies/accumulate.hpp>
#include <descent/policies/average.hpp>
#include <descent/policies/clip.hpp>
#include <descent/policies/loss_scale.hpp>
#include <descent/policies/storage.hpp>
#include <descent/rules/adamw.hpp>
#include <descent/rules/nadam.hpp>
#include <descent/schedules/plateau.hpp>
#include <descent/training/loss_scaler.hpp>
#include <descent/version.hpp>

#include <doctest/doctest.h>

#include "support/computing.hpp"
#include "support/message.hpp"
#include "support/run_file.hpp"
#include "support/saved_objects.hpp"
#include "support/temporary_folder.hpp"

#include <bit>
#include <random>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ds = descent;
using ds::half, ds::named;
using test::contents, test::copied, test::edited, test::listed, test::message, test::put, test::replace;
using test::bytes, test::counters, test::loader_of, test::temporary_folder;
using strings = std::vector<std::string>;

namespace {

/// A matrix W of Value, a vector b of float in another group, and a tensor without elements.
template <class Value> struct model {
  using types = std::conditional_t<std::is_same_v<Value, float>, float, ds::mixed<Value, float>>;
  std::vector<Value> w = std::vector<Value>(120), dw = w;
  std::vector<float> b = std::vector<float>(3), db = b;

  model() {
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = ds::narrow<Value>(std::sin(1.7f * float(i + 1)));
  }
  ds::parameters<types> parameters() {
    ds::parameters<types> p;
    p.add("W", w.data(), dw.data(), ds::shape{24, 5});
    p.add("b", b.data(), db.data(), 3, ds::group{1});
    p.add("none", static_cast<float*>(nullptr), static_cast<float*>(nullptr), 0);
    return p;
  }
  void backward(int t, float scale) {
    auto const slope = [&](float x, std::size_t i) {
      return scale * (0.1f * x + 0.1f * std::cos(float(t) * 3.1f + float(i) * 0.7f));
    };
    for (std::size_t i = 0; i < w.size(); ++i) dw[i] = ds::narrow<Value>(slope(ds::widen<float>(w[i]), i));
    for (std::size_t i = 0; i < b.size(); ++i) db[i] = slope(b[i], i);
  }
};

/// Momentum with fields of all kinds.
struct odd {
  double lr = 0.1, momentum = 0.5, third = 0, tiny = 0, most = 0, minus = 0;
  float single = 0;
  int whole = 0;
  std::uint64_t seed = 0;
  bool flag = true, other = false;

  template <class Real> struct state { Real b; };
  template <class Real> struct terms { Real lr, mu; };
  static constexpr char const* slots[] = {"b"};
  DESCENT_HD terms<double> at(std::int64_t) const { return {lr, momentum}; }
  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>& s, terms<Real> const& k) {
    s.b = k.mu * s.b + g;
    return p - k.lr * s.b;
  }
  void check() const { ds::detail::require_nonnegative("odd", "lr", lr); }
};

auto full(model<half>& m) {
  return ds::optimizer{m.parameters(),        ds::adamw{.lr = 1e-2}, ds::master<float>{},
                       ds::ema{.decay = 0.9}, ds::lookahead{.k = 3}, ds::dynamic_loss_scale{.init = 64, .interval = 5},
                       ds::clip_norm{1}};
}
auto remembering(model<float>& m) { return ds::optimizer{m.parameters(), ds::nadam{.lr = 1e-2}}; }
auto own(model<float>& m, odd const& rule = {}) {
  return ds::optimizer{m.parameters(), rule, ds::accumulate{2}, ds::on_plateau{}};
}

template <class Opt, class Value> void train(Opt& opt, model<Value>& m, int from, int to) {
  for (int t = from; t <= to; ++t) m.backward(t, float(opt.loss_scale())), opt.step();
}

/// Everything that a run consists of.
template <class Opt, class Value> std::map<std::string, bytes> all_of(Opt& opt, model<Value> const& m) {
  std::map<std::string, bytes> all{{"W", copied(m.w)}, {"b", copied(m.b)}};
  opt.save([&](std::string const& name, auto elements) { all[name] = copied(std::as_bytes(elements)); });
  std::string fields = opt.explain();  // says which groups are frozen
  for (int g = 0; g < 2; ++g)
    ds::each_field(opt.group(g), [&](auto const&, auto& x) { fields += " " + ds::detail::text_of_setting(x); });
  all["fields"] = copied(std::as_bytes(std::span(fields)));
  return all;
}

/// A run goes on to the bit, through a file, and both runs are then saved as the same bytes.
template <class Value, class Make, class As, class To> void goes_on(Make const& make, As const& as, To const& to) {
  temporary_folder const folder;
  model<Value> a, b;
  auto first = as(make(a));
  first.freeze(1);
  train(first, a, 1, 4);
  first.freeze(1, false);
  train(first, a, 5, 8);
  ds::save_file(folder / "run", first);
  auto second = to(make(b));
  train(second, b, 1, 2);
  auto const report = ds::load_file(folder / "run", second);
  CHECK(report.same_configuration);
  CHECK((copied(a.w) == copied(b.w) && a.b == b.b));
  train(first, a, 9, 14), train(second, b, 9, 14);
  CHECK((copied(a.w) == copied(b.w) && a.b == b.b));
  ds::save_file(folder / "one", first), ds::save_file(folder / "other", second);
  CHECK(contents(folder / "one") == contents(folder / "other"));
}

auto const typed = [](auto opt) { return opt; };
auto const any = [](auto opt) { return ds::any_optimizer(std::move(opt)); };

}  // namespace

TEST_CASE("texts of a file's metadata: as many objects as a file has tensors are read one by one") {
  // If each object looked at those before it, these would be 5 * 10^9.
  constexpr int n = 100000;
  std::string text = "{\"[[[[[[\\\"[\": {\"begin\": 7, \"shape\": [1]}";
  for (int i = 0; i < n; ++i) text += ", \"" + std::to_string(i) + "\": {\"begin\": 0, \"shape\": [2, 3]}";
  auto const ranges = ds::detail::ranges_in("file", text + "}");
  CHECK(ranges.size() == n + 1);
  CHECK(ranges.at("[[[[[[\"[").begin == 7);
}

TEST_CASE("checkpoint files: a run resumes bit for bit") {
  goes_on<half>(full, typed, typed);
  goes_on<float>([](auto& m) { return own(m); }, typed, typed);
  SUBCASE("of an optimizer whose type is known only at run time, too") {
    goes_on<float>(remembering, typed, typed);
    goes_on<float>(remembering, any, any);
    goes_on<float>(remembering, typed, any);
    goes_on<float>(remembering, any, typed);
  }
}

TEST_CASE("checkpoint files: names, types, shapes and texts are those that are documented") {
  temporary_folder const folder;
  std::string const path = folder / "run.safetensors";
  model<half> m;
  auto opt = full(m);
  train(opt, m, 1, 3);
  opt.group(1).lr = 1.0 / 3;
  opt.freeze(1);
  ds::save_file(path, opt);
  CHECK(listed(path) == strings{"W F16 [24, 5]", "W.average F32 [24, 5]", "W.master F32 [24, 5]", "W.slow F32 [24, 5]",
                                "W.state.m F32 [24, 5]", "W.state.v F32 [24, 5]", "b F32 [3]", "b.average F32 [3]",
                                "b.slow F32 [3]", "b.state.m F32 [3]", "b.state.v F32 [3]", "loss_scale U8 [1, 16]",
                                "none F32 [0]", "step I64 [1]"});
  ds::safetensors_file const file(path);
  std::string made_by;
  opt.save([&]<class T>(std::string const& name, std::span<T const> x) {
    if (name == "made_by") made_by.assign(reinterpret_cast<char const*>(x.data()), x.size());
    else if (name == "b.master") CHECK_FALSE(file.find(name));  // is b
    else CHECK(copied(file.bytes(*file.find(name))) == copied(std::as_bytes(x)));
  });
  CHECK(copied(file.bytes(*file.find("W"))) == copied(m.w));
  auto texts = file.metadata();
  CHECK(texts.at("fingerprint").find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(texts.at("fingerprint").size() == 16);
  texts.erase("fingerprint");
  auto const group = [](std::string const& lr, std::string const& frozen) {
    return "{\"lr\": " + lr +
           R"(, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08, "weight_decay": 0.01, "eps_hat": false, )" +
           R"("bias_correction": true, "decay_after": false, "decay_corrected": false, "frozen": )" + frozen + "}";
  };
  CHECK(texts ==
        ds::text_map{{"groups", "[" + group("0.01", "false") + ", " + group("0.3333333333333333", "true") + "]"},
                     {"library", ds::version},
                     {"made_by", made_by},
                     {"parameters", R"([["W", 0], ["b", 1], ["none", 0]])"},
                     {"step", "3"}});

  model<float> other;
  auto with_memory = remembering(other);
  auto with_plateau = own(other);
  ds::save_file(path, named("m", with_memory), named("p", with_plateau), named("x", 5),
                named("text", std::string("no")));
  CHECK(listed(path) == strings{"m.W F32 [24, 5]", "m.W.state.m F32 [24, 5]", "m.W.state.v F32 [24, 5]", "m.b F32 [3]",
                                "m.b.state.m F32 [3]", "m.b.state.v F32 [3]", "m.memory U8 [2, 8]", "m.none F32 [0]",
                                "m.step I64 [1]", "p.W F32 [24, 5]", "p.W.state.b F32 [24, 5]", "p.b F32 [3]",
                                "p.b.state.b F32 [3]", "p.none F32 [0]", "p.plateau U8 [1, 48]", "p.step I64 [1]",
                                "text U8 [2]", "x I32 []"});
  strings keys;
  ds::safetensors_file const two(path);
  for (auto const& [key, text] : two.metadata()) keys.push_back(key);
  CHECK(keys == strings{"library", "m.fingerprint", "m.groups", "m.made_by", "m.parameters", "m.step", "p.fingerprint",
                        "p.groups", "p.made_by", "p.parameters", "p.step"});
}

TEST_CASE("checkpoint files: hyperparameters and frozen groups come back exactly, or are kept") {
  using limits = std::numeric_limits<double>;
  temporary_folder const folder;
  model<float> a;
  auto from = own(a);
  odd const wanted{.lr = 0x1.fffffffffffffp-4,
                   .momentum = 0.1,
                   .third = 1.0 / 3,
                   .tiny = limits::denorm_min(),
                   .most = limits::infinity(),
                   .minus = -0.0,
                   .single = 1.0f / 3,
                   .whole = std::numeric_limits<int>::min(),
                   .seed = ~std::uint64_t{0},
                   .flag = false,
                   .other = true};
  from.group(0) = wanted;
  from.group(1).most = -limits::max(), from.group(1).minus = limits::quiet_NaN(), from.group(1).tiny = 1e22;
  from.group(1).seed = (std::uint64_t{1} << 53) + 1;
  from.freeze(1);
  ds::save_file(folder / "run", from);

  model<float> b;
  auto to = own(b);
  auto const before = all_of(to, b);
  CHECK_FALSE(ds::load_file(folder / "run", ds::load_options{.hyperparameters = false}, to).same_configuration);
  CHECK(all_of(to, b) == before);
  CHECK(ds::load_file(folder / "run", to).same_configuration);
  CHECK(all_of(to, b) == all_of(from, a));
  for (int rounding : test::roundings) {
    auto const saved = all_of(from, a);
    to.group(0) = odd{};
    to.commit_groups();
    bool same = false;
    {
      test::computing const as(rounding, true);
      same = ds::load_file(folder / "run", to).same_configuration;
    }
    CHECK((same && all_of(to, b) == saved));
  }
  odd const got = to.group(0);
  CHECK(std::memcmp(&got.lr, &wanted.lr, 6 * sizeof(double)) == 0);
  CHECK((got.single == wanted.single && got.whole == wanted.whole && got.seed == wanted.seed));
  CHECK((!got.flag && got.other));
  CHECK((to.group(1).most == -limits::max() && std::isnan(to.group(1).minus) && to.group(1).tiny == 1e22));
  CHECK(to.group(1).seed == (std::uint64_t{1} << 53) + 1);
  auto const b_before = b.b;
  train(to, b, 1, 4);
  CHECK((b.b == b_before && b.w != a.w));  // it is frozen

  CHECK(ds::load_file(folder / "run", ds::load_options{.hyperparameters = false}, to).same_configuration);
  ds::optimizer other{b.parameters(), odd{}, ds::accumulate{2}, ds::on_plateau{}, ds::clip_norm{1}};
  CHECK_FALSE(ds::load_file(folder / "run", other).same_configuration);
}

namespace {
/// A rule of a user, with fields that no rule of the library has.
struct own_fields {
  enum class sign { plus, minus, far = 1000 };
  struct limits { double low = -1, high[2] = {1, 2}; };
  struct inner { double lr = 1, depth = 1; };
  double lr = 1, strength = 1;
  sign of = sign::plus;
  limits within = {};
  inner rule = {};

  template <class Real> struct state {};
  template <class Real> struct terms { Real step; };
  DESCENT_HD terms<double> at(std::int64_t) const {
    return {lr * strength * within.high[1] * rule.depth * (of == sign::minus ? -1 : 1)};
  }
  template <class Real> DESCENT_HD static Real update(Real p, Real g, state<Real>&, terms<Real> const& k) {
    return p - k.step * g;
  }
};
/// It lists the fields that are not in the rule inside.
struct own_list : own_fields {
  double more = 1;
  template <class F> void each_field(F const& f) { f("lr", lr), f("strength", strength), f("more", more); }
};
}  // namespace

TEST_CASE("checkpoint files: all fields of any rule come back: those of a user, enumerations, lists and structures") {
  temporary_folder const folder;
  std::vector<float> w(1, 2), g(1, 1);
  ds::parameters<float> list;
  list.add("w", w.data(), g.data(), 1);
  ds::optimizer first{list, own_fields{.strength = 3, .of = own_fields::sign::minus, .within = {.high = {1, 4}}}};
  first.step();
  ds::save_file(folder / "run", first);
  first.step();
  CHECK(w[0] == 2 + 2 * 12);
  ds::optimizer resumed{list, own_fields{}};
  w[0] = 2 + 12;
  ds::load_file(folder / "run", resumed);
  resumed.step();
  CHECK(w[0] == 2 + 2 * 12);
  CHECK((resumed.group(0).of == own_fields::sign::minus && resumed.group(0).within.high[1] == 4));
  for (auto const& [text, value] :
       {std::pair("plus", own_fields::sign::plus), std::pair("1000", own_fields::sign::far)}) {
    auto read = own_fields::sign::minus;
    CHECK((ds::detail::text_of_setting(value) == text && ds::detail::set_from_text(read, text) && read == value));
  }
  own_list listed;
  listed.rule.depth = 5, listed.more = 6;
  std::string names;
  ds::detail::each_setting(listed, "", [&](std::string const& name, auto const& x) {
    names += name + " " + ds::detail::text_of_setting(x) + " ";
  });
  CHECK(names == "lr 1 strength 1 more 6 rule.lr 1 rule.depth 5 ");
  int numbers = 0;
  CHECK((ds::detail::each_number(own_fields(), [&](auto) { ++numbers; }) && numbers == 8));  // with an array
  auto kept = own_fields::sign::minus;
  for (char const* text : {"1", "31", "", "minu", "minus ", "3e3"}) CHECK_FALSE(ds::detail::set_from_text(kept, text));
  CHECK(kept == own_fields::sign::minus);
}

TEST_CASE("checkpoint files: hyperparameters that the rule cannot have are refused") {
  temporary_folder const folder;
  model<float> a, b;
  auto from = own(a), to = own(b);
  from.group(1).lr = 0.25;
  ds::save_file(folder / "run", from);
  auto const before = all_of(to, b);
  auto const refusal = [&](std::string const& what, std::string const& by, char const* in = "groups") {
    auto const path =
        edited(folder / "run", folder / "edited", [&](auto&, auto& texts) { replace(texts.at(in), what, by); });
    auto const text = message<std::exception>([&] { ds::load_file(path, to); });
    CHECK(all_of(to, b) == before);
    auto const again = message<std::exception>([&] { ds::load_file(path, {.hyperparameters = false}, to); });
    CHECK(again == (text.find("unreadable") != text.npos ? text : ""));
    to = own(b);
    return text;
  };
  CHECK(refusal("\"lr\": 0.25", "\"lr\": -0.25") == "group 1: odd: lr must be finite and at least 0, is -0.25");
  CHECK(refusal("\"lr\": 0.25", "\"lr\": \"nan\"") == "group 1: odd: lr must be finite and at least 0, is nan");
  CHECK(refusal("\"lr\": 0.25", "\"lr\": 1e300").find("not finite") != std::string::npos);
  CHECK(refusal("\"lr\": 0.25, ", "") == "group 1: the file has no field 'lr'");
  CHECK(refusal("\"lr\"", "\"rate\": 1, \"lr\"") == "group 0: the rule has no field 'rate'");
  CHECK(refusal(", \"frozen\": false", "") == "group 0: the file does not say whether it is frozen");
  CHECK(refusal("\"frozen\": false", "\"frozen\": 0") == "group 0: the file does not say whether it is frozen");
  CHECK(refusal("\"flag\": true", "\"flag\": 1") == "group 0: the field 'flag' cannot hold 1");
  CHECK(refusal("\"seed\": 0", "\"seed\": 0.5") == "group 0: the field 'seed' cannot hold 0.5");
  CHECK(refusal("\"seed\": 0", "\"seed\": -1") == "group 0: the field 'seed' cannot hold -1");
  CHECK(refusal("\"whole\": 0", "\"whole\": 2147483648") == "group 0: the field 'whole' cannot hold 2147483648");
  CHECK(refusal("\"tiny\": 0", "\"tiny\": \"0x\"") == "group 0: the field 'tiny' cannot hold 0x");
  CHECK(refusal("[{", "[{}, {") == "the file has 3 groups, the optimizer 2");
  for (std::string const nonsense : {"[[[[[[", "{", "[{\"lr\": [1]}, ", "[{\"lr\": null}, ", "[{\"lr\": 1e999}, "}) {
    CAPTURE(nonsense);
    auto const text = refusal("[", nonsense);
    CHECK(text.starts_with((folder / "edited") + ": __metadata__: 'groups' is unreadable: "));
    CHECK(text.ends_with(", must be JSON as save_file() writes it"));
  }
  CHECK(refusal("[", "[[[[[0]]]], ").find("unreadable: too deep, must be") != std::string::npos);
  auto const path = edited(folder / "run", folder / "edited", [](auto&, auto& texts) { texts.erase("groups"); });
  CHECK(message([&] { ds::load_file(path, to); }) ==
        path +
            " does not fit:\n  missing: hyperparameters, 'groups'; load_options{.hyperparameters = false} keeps those "
            "of the program");
  CHECK(ds::load_file(path, {.hyperparameters = false}, to).tensors == 7);
}

TEST_CASE("checkpoint files: all that does not fit is in one message") {
  temporary_folder const folder;
  model<half> m;
  model<float> f;
  auto const saved = full(m);
  auto opt = remembering(f);
  auto const before = all_of(opt, f);
  std::vector<float> x(4), y(2);
  std::string text;
  ds::save_file(folder / "run", saved, named("x", x), named("y", y), named("text", 1));
  std::vector<float> longer(5);
  auto const refusal =
      message([&] { ds::load_file(folder / "run", opt, named("x", longer), named("z", y), named("text", text)); });
  CHECK(refusal == (folder / "run") + R"( does not fit:
  saved by 'adamw, state float, master float, ema float, lookahead float, dynamic_loss_scale', )"
                                      R"(loaded by 'nadam, state float'
  'W' is F16 [24, 5] in the file, must be F32 [24, 5]
  'x' is F32 [4] in the file, must be F32 [5]
  'text' is I32 [] in the file, must be U8 [0]
  missing: 'memory'
  missing: 'z'
  left over: 'W.average'
  left over: 'W.master'
  left over: 'W.slow'
  left over: 'b.average'
  left over: 'b.slow'
  left over: 'loss_scale'
  left over: 'y')");
  CHECK(all_of(opt, f) == before);
  CHECK(message([&] { ds::load_file(folder / "run", named("a", opt)); }).find("missing: 'a.made_by'") !=
        std::string::npos);
}

TEST_CASE("checkpoint files: a run of a transposed matrix is refused, with its states") {
  temporary_folder const folder;
  model<float> m, n;
  auto const saved = remembering(m);
  ds::save_file(folder / "run", saved);
  ds::parameters<float> turned;
  turned.add("W", n.w, n.dw, ds::shape{5, 24});
  turned.add("b", n.b, n.db, ds::group{1});
  turned.add("none", static_cast<float*>(nullptr), static_cast<float*>(nullptr), 0);
  ds::optimizer opt{turned, ds::nadam{.lr = 1e-2}};
  CHECK(message([&] { ds::load_file(folder / "run", opt); }) == (folder / "run") + R"( does not fit:
  'W' is F32 [24, 5] in the file, must be F32 [5, 24]
  'W.state.m' is F32 [24, 5] in the file, must be F32 [5, 24]
  'W.state.v' is F32 [24, 5] in the file, must be F32 [5, 24])");
}

namespace {

/// An optimizer and what a program has beside it.
struct whole_run {
  model<half> m;
  decltype(full(std::declval<model<half>&>())) opt = full(m);
  counters first, last;
  ds::loss_scaler<> scaler;
  decltype(loader_of(1)) data = loader_of(1);
  std::vector<double> numbers{1, 2, 3};
  std::string text = "hello";

  template <class F> auto with(F const& f) {
    return f(opt, named("first", first), named("scaler", scaler), named("numbers", numbers), named("text", text), data,
             named("last", last));
  }
  void save(std::string const& path) {
    with([&](auto&&... parts) { ds::save_file(path, parts...); });
  }
  ds::load_report load(std::string const& path) {
    return with([&](auto&&... parts) { return ds::load_file(path, parts...); });
  }
  void change() {
    train(opt, m, 1, 7);
    opt.group(0).lr = 0.5;
    first.n = {4, 5, 6}, last.n = {7, 8, 9}, numbers = {4, 5, 6}, text = "good bye";
    scaler.set_state({.scale = 8, .good = 3});
    for (int i = 0; i < 5; ++i) data.next();
  }
  auto all() {
    auto run = all_of(opt, m);
    run["counters"] = copied(first.n), run["last"] = copied(last.n), run["numbers"] = copied(numbers);
    run["text"] = copied(std::as_bytes(std::span(text)));
    auto const scale = scaler.state();
    run["scaler"] = copied(std::as_bytes(std::span(&scale, 1)));
    auto const at = data.position();
    run["data"] = copied(std::as_bytes(std::span(&at, 1)));
    return run;
  }
};

}  // namespace

TEST_CASE("checkpoint files: nothing changes if a file cannot be loaded") {
  temporary_folder const folder;
  whole_run saved, run;
  saved.change();
  saved.save(folder / "run");
  auto const before = run.all();
  REQUIRE(before != saved.all());

  std::string const whole = contents(folder / "run");
  ds::safetensors_file const file(folder / "run");
  std::int64_t end = 0;
  for (auto const& t : file.tensors()) end = t.offset + t.bytes;
  for (auto const& t : file.tensors()) {
    if (t.bytes == 0) continue;
    CAPTURE(t.name);
    std::string damaged = whole;
    damaged[whole.size() - std::size_t(end - t.offset - t.bytes) - 1] ^= 4;
    CHECK(message<ds::data_error>([&] { run.load(folder.write("damaged", damaged)); }).find("XXH3") !=
          std::string::npos);
    CHECK(run.all() == before);
  }

  using state = ds::loss_scale_state;
  auto const refusal = [&](std::string const& name, auto const& x) {
    auto const path = edited(folder / "run", folder / "edited", [&](auto& data, auto&) { put(data.at(name), x); });
    auto const text = message<std::exception>([&] { run.load(path); });
    CHECK(run.all() == before);
    return text;
  };
  CHECK(refusal("last.n", std::array<std::int64_t, 3>{-1, 0, 0}) == "counters: must be at least 0");
  CHECK(refusal("first.n", std::array<std::int64_t, 3>{-1, 0, 0}) == "counters: must be at least 0");
  CHECK(refusal("loader.fingerprint", std::uint64_t{1}) ==
        "loader: the position was saved with other records, batches, order or random numbers");
  CHECK(refusal("loader.position", std::array<std::int64_t, 2>{1, 3}) == "loader: the batch must be in [0, 3), is 3");
  CHECK(refusal("loss_scale", state{.scale = 0.25}) == "loss scale: the scale must be in [1, 1.67772e+07], is 0.25");
  CHECK(refusal("scaler.loss_scale", state{.scale = 8, .left = 2}) ==
        "loss scale: the count of overflows left must be in [0, 1], is 2");
  CHECK(refusal("step", std::int64_t{-1}) == "set_step: the step must be in [0, 2^62], is -1");
  auto const path = edited(folder / "run", folder / "edited",
                           [&](auto&, auto& texts) { replace(texts.at("groups"), "\"lr\": 0.5", "\"lr\": -1"); });
  CHECK(message([&] { run.load(path); }) == "group 0: adamw: lr must be finite and at least 0, is -1");
  CHECK(run.all() == before);
  CHECK(message<std::runtime_error>([&] { run.load(folder / "nowhere"); }).starts_with(folder / "nowhere: "));

  CHECK(run.load(folder / "run").same_configuration);
  CHECK(run.all() == saved.all());
}

namespace {

struct once : counters {
  int loads = 0;
  bool says_why = true;

  template <class F> void load(F const& f) {
    if (loads++ > 0 && !says_why) throw 1;
    if (loads > 1) throw std::runtime_error("once: must not be loaded twice");
    counters::load(f);
  }
};

}  // namespace

TEST_CASE("checkpoint files: after a failed load everything is restored, and the message names what cannot be") {
  temporary_folder const folder;
  counters first{{7}}, last{{-1}};
  once middle{{{8}}};
  auto const with = [&](auto const& f) {
    return f(folder / "run", named("first", first), named("middle", middle), named("last", last));
  };
  with([](auto const& path, auto&&... parts) { ds::save_file(path, parts...); });
  auto const load = [](auto const& path, auto&&... parts) { ds::load_file(path, parts...); };
  for (bool const says_why : {true, false}) {
    first.n = {1}, middle.n = {2}, last.n = {3};
    middle.loads = 0, middle.says_why = says_why;
    CHECK(message<std::runtime_error>([&] { with(load); }) ==
          std::string("counters: must be at least 0; what was loaded before cannot be put back: ") +
              (says_why ? "once: must not be loaded twice" : "something was thrown"));
    CHECK((first.n[0] == 1 && middle.n[0] == 8 && last.n[0] == 3));
  }
}

TEST_CASE("checkpoint files: what cannot be saved now is refused, and the old file stays") {
  temporary_folder const folder;
  std::string const path = folder.write("run", "old");
  model<float> m;
  auto opt = own(m);
  CHECK(message<std::invalid_argument>([&] { ds::save_file(path, opt, named("step", 1)); }) ==
        "two parts have the name 'step': give one a prefix with named(\"...\", part)");
  train(opt, m, 1, 1);
  CHECK(message([&] { ds::save_file(path, opt); }) ==
        "save_file() or load_file() while micro-batches wait for their update: 1");
  opt.step();
  model<half> n;
  auto averaged = full(n);
  averaged.step(), averaged.swap_average();
  CHECK(message([&] { ds::save_file(path, opt, named("a", averaged)); }) ==
        "save_file() or load_file() between two calls of swap_average(): the values are the averages now");
  CHECK(message<std::invalid_argument>([&] {
          ds::save_file(path, opt, named(std::string(5000, 'x'), 1));
        }).find("4096") != std::string::npos);
  CHECK(message<std::runtime_error>([&] { ds::save_file(folder.path, opt); }) ==
        folder.path + ": cannot be written: Is a directory");
  ds::detail::file_calls::before = [](char const* name, std::size_t&) {
    return name == std::string("fsync") ? ENOSPC : 0;
  };
  auto const text = message<std::runtime_error>([&] { ds::save_file(path, opt); });
  ds::detail::file_calls::before = nullptr;
  CHECK(text == path + ": cannot be written: No space left on device");
  CHECK((contents(path) == "old" && folder.names() == strings{"run"}));
  ds::save_file(path, opt);
  opt.step();
  CHECK(message([&] { ds::load_file(path, opt); }) ==
        "save_file() or load_file() while micro-batches wait for their update: 1");
  opt.step();
  CHECK(ds::load_file(path, opt).same_configuration);
}

TEST_CASE("checkpoint files: an undivided file that is collected is the same run") {
  temporary_folder const folder;
  whole_run saved, run;
  saved.change();
  saved.save(folder / "run");
  ds::collect(folder / "run", folder / "collected");
  CHECK(listed(folder / "collected") == listed(folder / "run"));
  CHECK(ds::safetensors_file(folder / "collected").metadata() == ds::safetensors_file(folder / "run").metadata());
  CHECK(run.load(folder / "collected").same_configuration);
  CHECK(run.all() == saved.all());
  std::string damaged = contents(folder / "run");
  damaged.back() ^= 1;
  std::string const before = contents(folder / "collected");
  CHECK(message<ds::data_error>([&] { ds::collect(folder.write("run", damaged), folder / "collected"); }) != "");
  CHECK((contents(folder / "collected") == before && folder.names() == strings{"collected", "run"}));
}

TEST_CASE("texts and conversions are exact or to nearest in every floating-point mode of the thread") {
  std::mt19937_64 random(5);
  std::vector<double> numbers{0, 0.1, -0.1, 1e-310, 5e-324, 65504, 65520 - 1e-9, 0x1p-24, 0x1.8p-24, 0x1p-130, 1e308};
  std::normal_distribution<double> normal;
  for (int i = 0; i < 300; ++i) numbers.push_back(std::ldexp(normal(random), i % 60 - 40));
  auto const all = [&] {
    std::vector<std::byte> bytes;
    for (double const x : numbers) {
      double back = 0;
      std::string const text = ds::detail::text_of_setting(x);
      bool const read = ds::detail::set_from_text(back, text);
      std::string const own = text + (read ? "" : " lost");
      for (char const c : own) bytes.push_back(std::byte(c));
      for (std::byte const b : std::bit_cast<std::array<std::byte, sizeof back>>(back)) bytes.push_back(b);
    }
    std::vector<float> singles;
    auto const convert = [&](ds::dtype from, auto const& of, ds::dtype to) {
      std::vector<std::byte> out(of.size() * 8);
      ds::detail::convert_elements(from, std::as_bytes(std::span(of)), to, out.data());
      bytes.insert(bytes.end(), out.begin(), out.end());
      if (from == ds::dtype::f64 && to == ds::dtype::f32)
        singles.resize(of.size()), std::memcpy(singles.data(), out.data(), of.size() * 4);
    };
    for (ds::dtype to : {ds::dtype::f32, ds::dtype::f16, ds::dtype::bf16}) convert(ds::dtype::f64, numbers, to);
    for (ds::dtype to : {ds::dtype::f64, ds::dtype::f16, ds::dtype::bf16}) convert(ds::dtype::f32, singles, to);
    return bytes;
  };
  auto const want = all();
  for (int rounding : test::roundings)
    for (bool flushes : {false, true}) {
      CAPTURE(rounding);
      CAPTURE(flushes);
      std::vector<std::byte> got;
      {
        test::computing const as(rounding, flushes);
        got = all();
      }
      CHECK(got == want);
    }
  for (double const x : numbers) {
    double back = 1;
    CHECK(ds::detail::set_from_text(back, ds::detail::text_of_setting(x)));
    CHECK(std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(x));
  }
}
