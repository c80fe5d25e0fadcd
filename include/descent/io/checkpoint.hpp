// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/any_optimizer.hpp>
#include <descent/io/detail/loading.hpp>
#include <descent/io/detail/saving.hpp>
#include <descent/io/detail/simple_parts.hpp>
#include <descent/optimizer/detail/optimizer_part.hpp>
#include <descent/io/load_options.hpp>
#include <descent/optimizer.hpp>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// A run in a file: save_file() and load_file(). docs/checkpoints.md has the format.
namespace descent {

namespace detail {

template <class T> struct with_name {
  std::string name;
  T& of;
};
template <class T> struct of_each_rank { T& of; };
template <class Value, class Gradient, class Backend> struct values_of {
  parameters<Value, Gradient> params;
  Backend backend;
};

/// The part of an argument of save_file() and load_file(), which refers to it.
template <class T> struct part_maker;
template <class T> concept is_part = requires(T& x) { part_maker<T>::make(x); };

template <class V, class G, class R, class... Ps> struct part_maker<optimizer<V, G, R, Ps...>> {
  static named_part make(optimizer<V, G, R, Ps...>& of) {
    return {"", std::make_unique<run_access::part<optimizer<V, G, R, Ps...>>>(of)};
  }
};
template <> struct part_maker<any_optimizer> {
  static named_part make(any_optimizer& of) { return {"", run_access::part_of(of)}; }
};
template <class V, class G> struct part_maker<parameters<V, G>> {
  static named_part make(parameters<V, G>& of) {
    return {"", std::make_unique<values_part<V, G, host<>>>(of, host<>())};
  }
};
template <class V, class G, class Backend> struct part_maker<values_of<V, G, Backend>> {
  static named_part make(values_of<V, G, Backend>& of) {
    return {"", std::make_unique<values_part<V, G, Backend>>(of.params, of.backend)};
  }
};
template <class Policy, class Backend> struct part_maker<loss_scaler<Policy, Backend>> {
  static named_part make(loss_scaler<Policy, Backend>& of) {
    return {"", std::make_unique<scaler_part<Policy, Backend>>(of)};
  }
};
template <has_pieces Of> struct part_maker<Of> {
  static named_part make(Of& of) { return {"", std::make_unique<pieces_part<Of>>(of)}; }
};
template <class T> requires is_part<std::remove_cv_t<T>> struct part_maker<of_each_rank<T>> {
  static named_part make(of_each_rank<T>& x) {
    auto inner = part_maker<std::remove_cv_t<T>>::make(const_cast<std::remove_cv_t<T>&>(x.of));
    inner.each_rank = true;
    return inner;
  }
};
template <class T> struct part_maker<with_name<T>> {
  using named_type = std::remove_cv_t<T>;

  static named_part make(with_name<T>& x) {
    if constexpr (is_part<named_type>) {
      auto inner = part_maker<named_type>::make(const_cast<named_type&>(x.of));
      inner.prefix = x.name + "." + inner.prefix;
      return inner;
    } else if constexpr (std::is_same_v<named_type, std::string>) {
      return {"", std::make_unique<text_part>(x.name, const_cast<std::string&>(x.of))};
    } else if constexpr (std::is_same_v<std::remove_cv_t<std::remove_extent_t<T>>, char> && std::is_array_v<T>) {
      static_assert(std::is_same_v<T, void>, "named(name, x): a text x is a std::string");
    } else if constexpr (std::is_arithmetic_v<named_type> || storage_type<named_type>) {
      return tensor(x.name, &x.of, {}, 1);
    } else if constexpr (array<T&> || grid<T>) {
      auto const b = block_of(x.of);
      if (!b.row_major)
        throw std::invalid_argument("named(\"" + x.name + "\", x): x is not contiguous in row-major order");
      return tensor(x.name, b.at, b.columns == 1 ? std::vector{b.count} : std::vector{b.rows, b.columns}, b.count);
    } else {
      static_assert(std::is_same_v<T, void>,
                    "named(name, x): x is a part of a run, a number, a std::string, or a container or view of numbers");
    }
  }

 private:
  template <class E>
  static named_part tensor(std::string const& name, E* data, std::vector<std::int64_t> shape, std::int64_t count) {
    static_assert(file_element<std::remove_const_t<E>> || (std::is_class_v<E> && std::is_trivially_copyable_v<E>),
                  "named(name, x): the elements of x are numbers");
    return {"", std::make_unique<elements_part<E>>(name, data, std::move(shape), count)};
  }
};

template <class T> named_part make_part(T& x) {
  using part = std::remove_cv_t<T>;
  static_assert(is_part<part>,
                "save_file and load_file: a part is an optimizer, parameters, values(params, backend), a loss_scaler, "
                "a loader, an object with save(f) and load(f), named(name, x), or each_rank(part)");
  if constexpr (is_part<part>) return part_maker<part>::make(const_cast<part&>(x));
  else return {};
}
/// Whether load_file() can change what a part refers to.
template <class T> inline constexpr bool is_loadable = !std::is_const_v<T>;
template <class V, class G> inline constexpr bool is_loadable<parameters<V, G> const> = true;
template <class V, class G, class Backend> inline constexpr bool is_loadable<values_of<V, G, Backend> const> = true;
template <class T> requires(array<T&> || grid<T>) inline constexpr bool is_loadable<T> =
    !std::is_const_v<std::remove_pointer_t<decltype(block_of(std::declval<T&>()).at)>>;
template <class T> inline constexpr bool is_loadable<with_name<T>> = is_loadable<T>;
template <class T> inline constexpr bool is_loadable<with_name<T> const> = is_loadable<T>;
template <class T> inline constexpr bool is_loadable<of_each_rank<T>> = is_loadable<T>;
template <class T> inline constexpr bool is_loadable<of_each_rank<T> const> = is_loadable<T>;

template <class... Parts> std::vector<named_part> make_parts(Parts&... parts) {
  std::vector<named_part> all;
  (all.push_back(make_part(parts)), ...);
  return all;
}

}  // namespace detail

/// Names a part. All names of an optimizer, loader or the like then begin with "name."; a number, a std::string, or a
/// container or view of numbers in host memory becomes a tensor of that name. The object is used in place.
template <class T> detail::with_name<std::remove_reference_t<T>> named(std::string name, T&& part) {
  return {std::move(name), part};
}

/// A part that differs between ranks, such as a loader with its own seed, or an optimizer without ranks next to one of
/// all ranks. The file keeps one for each rank, under names that begin with "rank.0.", "rank.1." and so on, and as many
/// ranks must load it. All other parts must be the same on all ranks.
template <class T> detail::of_each_rank<std::remove_reference_t<T>> each_rank(T&& part) { return {part}; }

/// The values of parameters as a part, without an optimizer, in the memory of a backend.
template <class Value, class Gradient, class Backend = host<>>
detail::values_of<Value, Gradient, Backend> values(parameters<Value, Gradient> const& params, Backend backend = {}) {
  return {params, backend};
}

/// Saves a run as a safetensors file, which replaces the file at `path` as a whole: a run that is killed leaves the
/// file that was there, or the new one. Parts are
///
///     an optimizer, any_optimizer      values of its parameters, its pieces (see optimizer::save), hyperparameters
///     parameters, values(p, backend)   values, by the names of the parameters
///     loss_scaler, loader, resident    their states
///     an object with save(f), load(f)  its pieces
///     named(name, part)                the same under another name, or a tensor: see named()
///     each_rank(part)                  of each rank its own
///
/// Waits for the stream, and copies from a device through 64 MB of pinned memory. With ranks, all of them call it and
/// wait for each other, however long it takes. Rank 0 writes what all ranks have in common, after comparing a hash of
/// it. Ranks that shard the state, or have their own parts, each write a part file next to `path`, in one folder for
/// all, and then rank 0 writes `path`, which names them. Throws std::runtime_error if the system does, on all ranks if
/// one fails, std::invalid_argument if two parts have a name in common, or if ranks differ in what rank 0 would write
/// for all, and what optimizer::save throws. The file at `path` is then unchanged.
template <class... Parts> void save_file(std::string const& path, Parts&&... parts) {
  detail::save_run(path, detail::make_parts(parts...));
}

/// Restores parts that were made like the saved ones. Reads and checks everything first: the file, the hashes of the
/// tensors, and that names, types and shapes are those of the parts. On CUDA waits for the stream. With ranks, all of
/// them call it; any number of ranks may load what any number has saved, but each_rank(part).
///
/// Nothing changes, on any rank, if it throws: std::runtime_error (data_error) if the file cannot be read or is
/// damaged; std::invalid_argument with all that does not fit, and what optimizer::load throws; and what load(f) of a
/// part throws, which itself must change nothing then. Does not restore the counts in report() and captured graphs.
template <class... Parts>
load_report load_file(std::string const& path, load_options const& options, Parts&&... parts) {
  static_assert((detail::is_loadable<std::remove_reference_t<Parts>> && ...), "load_file: a part is const");
  return detail::load_run(path, options, detail::make_parts(parts...));
}
template <class First, class... Parts>
requires(!std::is_convertible_v<First, load_options>)
load_report load_file(std::string const& path, First&& first, Parts&&... parts) {
  return load_file(path, load_options(), first, parts...);
}

}  // namespace descent
