// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/comm/detail/handshake.hpp>
#include <descent/comm/detail/socket.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <poll.h>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace descent::comm {

/// A rendezvous over TCP (IPv4 or IPv6), for clusters without a folder that all ranks see: gives rank 0's value to all
/// ranks. Rank 0 listens on the address and port, where the other ranks must be able to reach it.
///
///     comm::by_tcp{.address = at.address, .port = 29600, .token = at.job}(rank, size, id);
///
/// Rank 0 answers when all ranks have connected. It rejects a connection with another token or size, or from a rank
/// that has already connected, and keeps waiting. The token only keeps jobs apart: it is sent unencrypted, like
/// everything that NCCL sends, so use trusted networks only. Throws comm_error on every rank at the deadline, with the
/// missing ranks and the rejected connections. A rank other than 0 waits up to the deadline to connect, then up to the
/// deadline plus one second for the answer. The system looks up names, with its own time limit.
struct by_tcp {
  std::string address = "127.0.0.1";  ///< of rank 0
  int port = 0;                       ///< rank 0 may give 0 for a free port, which `listening` must tell the others
  std::string token = {};             ///< the same on all ranks of a job
  std::chrono::nanoseconds deadline = std::chrono::seconds(120);  ///< the longest wait
  std::function<void(int port)> listening = {};  ///< called on rank 0 as soon as others can connect

  template <class T> void operator()(int rank, int size, T& value) const {
    static_assert(std::is_trivially_copyable_v<T>, "by_tcp: the value must be trivially copyable");
    exchange(rank, size, std::as_writable_bytes(std::span(&value, 1)));
  }

 private:
  struct call;
  void exchange(int rank, int size, std::span<std::byte> value) const;
};

struct by_tcp::call {
  by_tcp const& by;
  int rank;
  detail::note own;

  /// A connection. `rank` is set once its header was valid.
  struct connection {
    detail::descriptor socket;
    std::string from;
    detail::note head{};
    std::size_t have = 0;
    int rank = -1;
  };
  /// What rank 0 knows of the others.
  struct arrivals {
    std::vector<connection> connections;
    std::vector<bool> came, left;
    std::vector<std::string> refused;  // the first eight

    std::vector<int> missing() const { return detail::ranks_without(came); }
  };

  std::string place(int of_rank_0) const { return by.address + " port " + std::to_string(of_rank_0); }

  void give(std::span<std::byte const> value) const {
    detail::time_limit limit(by.deadline);
    detail::descriptor const listener = detail::listen_at("by_tcp", by.address, by.port, own.size);
    int const bound = detail::port_of(listener);
    if (by.listening) by.listening(bound);
    arrivals all;
    all.came.assign(std::size_t(own.size), false);
    all.left = all.came;
    all.came[0] = true;
    while (!all.missing().empty()) {
      if (limit.passed()) {
        std::string why =
            "rank 0 waited " + limit.text() + " at " + place(bound) + " for " + detail::rank_list(all.missing());
        for (int r : all.missing())
          if (all.left[std::size_t(r)]) why += "; rank " + std::to_string(r) + " connected and left";
        for (std::string const& text : all.refused) why += "; rejected: " + text;
        fail(all, why);
      }
      std::vector<pollfd> fds{{listener.get(), POLLIN, 0}};
      for (connection const& c : all.connections) fds.push_back({c.socket.get(), POLLIN, 0});
      if (::poll(fds.data(), nfds_t(fds.size()), limit.milliseconds()) <= 0) continue;
      for (std::size_t i = all.connections.size(); i-- > 0;)
        if (fds[i + 1].revents && !receive(all, i)) all.connections.erase(all.connections.begin() + std::ptrdiff_t(i));
      if (fds[0].revents) accept(all, listener, limit);
    }
    detail::note head = own;
    head.kind = detail::note::value;
    auto const bytes = detail::sealed(head, value);
    for (connection const& c : all.connections)
      if (c.rank > 0)
        if (auto const why = detail::send_all(c.socket, bytes, limit); !why.empty())
          fail(all, "rank 0 cannot send the value to rank " + std::to_string(c.rank) + ": " + why);
  }

  void take(std::span<std::byte> value) const {
    detail::time_limit reach(by.deadline);
    std::string why;
    detail::descriptor const socket = detail::connect_to(by.address, by.port, reach, why);
    std::string const me = "by_tcp: rank " + std::to_string(rank) + ": ";
    if (!socket) throw comm_error(me + "waited " + reach.text() + " for rank 0 at " + place(by.port) + ": " + why);
    detail::time_limit limit(detail::cut_wait(by.deadline) + std::chrono::seconds(1));
    auto const check = [&](std::string const& problem) {
      if (!problem.empty()) throw comm_error(me + "the answer of rank 0 at " + place(by.port) + ": " + problem);
    };
    check(detail::send_all(socket, detail::sealed(own), limit));
    detail::note head;
    check(detail::receive_all(socket, std::as_writable_bytes(std::span(&head, 1)), limit));
    bool const refused = head.magic == detail::note::our_magic && head.kind == detail::note::refused;
    if (!refused) check(detail::problem_of(head, own));
    if (!refused || head.bytes >= 4096) check(detail::wrong_size(head.bytes, value.size()));
    std::vector<std::byte> body(head.bytes);
    check(detail::receive_all(socket, body, limit));
    check(detail::wrong_sum(head, body));
    if (refused) throw comm_error(me + std::string(reinterpret_cast<char const*>(body.data()), body.size()));
    if (!body.empty()) std::memcpy(value.data(), body.data(), body.size());
  }

 private:
  void accept(arrivals& all, detail::descriptor const& listener, detail::time_limit& limit) const {
    connection c;
    if (!detail::accept_from(listener, c.socket, c.from)) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        fail(all, "rank 0 cannot accept another connection, has " + std::to_string(all.connections.size()) + ": " +
                      detail::system_message(errno) + " (ulimit -n)");
      return limit.pause();
    }
    all.connections.push_back(std::move(c));
  }

  /// Reads what connection i has sent. False: drop the connection.
  bool receive(arrivals& all, std::size_t i) const {
    connection& c = all.connections[i];
    std::byte more;
    auto const room = c.rank < 0 ? std::as_writable_bytes(std::span(&c.head, 1)).subspan(c.have) : std::span(&more, 1);
    std::ptrdiff_t const n = detail::receive_some(c.socket, room);
    if (n < 0) return true;
    if (n == 0 || c.rank > 0) {
      if (c.rank > 0) all.came[std::size_t(c.rank)] = false, all.left[std::size_t(c.rank)] = true;
      return false;
    }
    c.have += std::size_t(n);
    if (c.have < sizeof c.head) return true;
    std::string why = detail::problem_of(c.head, own);
    if (why.empty()) why = detail::wrong_sum(c.head, {});
    if (why.empty() && c.head.rank == 0) why = "rank 0 is the listener itself";
    if (why.empty() && all.came[std::size_t(c.head.rank)])
      why = "rank " + std::to_string(c.head.rank) + " has already connected";
    if (why.empty()) {
      c.rank = c.head.rank;
      all.came[std::size_t(c.rank)] = true;
      all.left[std::size_t(c.rank)] = false;
      return true;
    }
    if (all.refused.size() < 8) all.refused.push_back(c.from + ", rank " + std::to_string(c.head.rank) + ": " + why);
    if (c.head.magic == detail::note::our_magic) reject(c, "rank 0 rejected this rank: " + why);
    return false;
  }

  void reject(connection const& c, std::string const& why) const {
    detail::note head = own;
    head.kind = detail::note::refused;
    std::memset(head.token, 0, sizeof head.token);
    detail::time_limit limit(std::chrono::milliseconds(100));
    auto const text = std::as_bytes(std::span(why)).first(std::min<std::size_t>(why.size(), 4000));
    (void)detail::send_all(c.socket, detail::sealed(head, text), limit);
  }

  [[noreturn]] void fail(arrivals const& all, std::string const& why) const {
    for (connection const& c : all.connections)
      if (c.rank > 0) reject(c, why);
    throw comm_error("by_tcp: " + why);
  }
};

inline void by_tcp::exchange(int rank, int size, std::span<std::byte> value) const {
  detail::require_meeting("by_tcp", rank, size, "token", token, deadline);
  if (size == 1) return;
  if (address.empty())
    throw std::invalid_argument("by_tcp: address must be an address of rank 0 that all ranks can reach, is empty");
  if (port < (rank == 0 && listening ? 0 : 1) || port > 65535)
    throw std::invalid_argument(std::string("by_tcp: port must be in [1, 65535]") +
                                (rank == 0 ? ", or 0 with `listening` to tell the others" : "") + ", is " +
                                std::to_string(port));
  call const c{*this, rank, detail::make_note(detail::note::here, rank, size, value.size(), token)};
  if (rank == 0) c.give(value);
  else c.take(value);
}

}  // namespace descent::comm
