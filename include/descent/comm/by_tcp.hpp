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

/// A rendezvous over TCP (IPv4 or IPv6): gives rank 0's value to all ranks. Rank 0 listens on the address and port,
/// where the other ranks must be able to reach it.
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
  struct guest {
    detail::descriptor socket;
    std::string from;
    detail::note head{};
    std::size_t have = 0;
    int rank = -1;
  };
  /// Rank 0's view of the connections.
  struct hall {
    std::vector<guest> guests;
    std::vector<bool> came, left;
    std::vector<std::string> refused;  // the first eight

    std::vector<int> missing() const {
      std::vector<int> ranks;
      for (std::size_t r = 1; r < came.size(); ++r)
        if (!came[r]) ranks.push_back(int(r));
      return ranks;
    }
  };

  std::string place(int of_rank_0) const { return by.address + " port " + std::to_string(of_rank_0); }

  void give(std::span<std::byte const> value) const {
    detail::time_limit limit(by.deadline);
    detail::descriptor const listener = detail::listen_at("by_tcp", by.address, by.port, own.size);
    int const bound = detail::port_of(listener);
    if (by.listening) by.listening(bound);
    hall h;
    h.came.assign(std::size_t(own.size), false);
    h.left = h.came;
    while (!h.missing().empty()) {
      if (limit.passed()) {
        std::string why =
            "rank 0 waited " + limit.text() + " at " + place(bound) + " for " + detail::rank_list(h.missing());
        for (int r : h.missing())
          if (h.left[std::size_t(r)]) why += "; rank " + std::to_string(r) + " connected and left";
        for (std::string const& text : h.refused) why += "; rejected: " + text;
        fail(h, why);
      }
      std::vector<pollfd> fds{{listener.get(), POLLIN, 0}};
      for (guest const& g : h.guests) fds.push_back({g.socket.get(), POLLIN, 0});
      if (::poll(fds.data(), nfds_t(fds.size()), limit.milliseconds()) <= 0) continue;
      for (std::size_t i = h.guests.size(); i-- > 0;)
        if (fds[i + 1].revents && !hear(h, i)) h.guests.erase(h.guests.begin() + std::ptrdiff_t(i));
      if (fds[0].revents) welcome(h, listener, limit);
    }
    detail::note head = own;
    head.kind = detail::note::value;
    auto const bytes = detail::sealed(head, value);
    for (guest const& g : h.guests)
      if (g.rank > 0)
        if (auto const why = detail::send_all(g.socket, bytes, limit); !why.empty())
          fail(h, "rank 0 cannot send the value to rank " + std::to_string(g.rank) + ": " + why);
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
    if (head.bytes != value.size() && !(refused && head.bytes < 4096))
      check("it has " + std::to_string(head.bytes) + " bytes instead of " + std::to_string(value.size()));
    std::vector<std::byte> body(head.bytes);
    check(detail::receive_all(socket, body, limit));
    if (head.sum != detail::sum_of(head, body)) check("its checksum is wrong");
    if (refused) throw comm_error(me + std::string(reinterpret_cast<char const*>(body.data()), body.size()));
    if (!body.empty()) std::memcpy(value.data(), body.data(), body.size());
  }

 private:
  void welcome(hall& h, detail::descriptor const& listener, detail::time_limit& limit) const {
    guest g;
    if (!detail::accept_from(listener, g.socket, g.from)) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        fail(h, "rank 0 cannot accept another connection, has " + std::to_string(h.guests.size()) + ": " +
                    detail::system_message(errno) + " (ulimit -n)");
      return limit.pause();
    }
    h.guests.push_back(std::move(g));
  }

  /// Reads what guest i has sent. False: drop the connection.
  bool hear(hall& h, std::size_t i) const {
    guest& g = h.guests[i];
    std::byte more;
    auto const room = g.rank < 0 ? std::as_writable_bytes(std::span(&g.head, 1)).subspan(g.have) : std::span(&more, 1);
    std::ptrdiff_t const n = detail::receive_some(g.socket, room);
    if (n < 0) return true;
    if (n == 0 || g.rank > 0) {
      if (g.rank > 0) h.came[std::size_t(g.rank)] = false, h.left[std::size_t(g.rank)] = true;
      return false;
    }
    g.have += std::size_t(n);
    if (g.have < sizeof g.head) return true;
    std::string why = detail::problem_of(g.head, own);
    if (why.empty() && g.head.sum != detail::sum_of(g.head, {})) why = "its checksum is wrong";
    if (why.empty() && g.head.rank == 0) why = "rank 0 is the listener itself";
    if (why.empty() && h.came[std::size_t(g.head.rank)])
      why = "rank " + std::to_string(g.head.rank) + " has already connected";
    if (why.empty()) {
      g.rank = g.head.rank;
      h.came[std::size_t(g.rank)] = true;
      h.left[std::size_t(g.rank)] = false;
      return true;
    }
    if (h.refused.size() < 8) h.refused.push_back(g.from + ", rank " + std::to_string(g.head.rank) + ": " + why);
    if (g.head.magic == detail::note::our_magic) turn_away(g, "rank 0 rejected this rank: " + why);
    return false;
  }

  void turn_away(guest const& g, std::string const& why) const {
    detail::note head = own;
    head.kind = detail::note::refused;
    std::memset(head.token, 0, sizeof head.token);
    detail::time_limit limit(std::chrono::milliseconds(100));
    auto const text = std::as_bytes(std::span(why)).first(std::min<std::size_t>(why.size(), 4000));
    (void)detail::send_all(g.socket, detail::sealed(head, text), limit);
  }

  [[noreturn]] void fail(hall const& h, std::string const& why) const {
    for (guest const& g : h.guests)
      if (g.rank > 0) turn_away(g, why);
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
