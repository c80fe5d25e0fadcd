// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/comm/detail/handshake.hpp>
#include <descent/comm/detail/socket.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <type_traits>
#include <vector>

/// The connection of each rank to rank 0, besides the communicator: rank 0's addresses, and non-blocking messages.
namespace descent::detail {

/// Where rank 0 listens, and the keys by which both sides recognize each other: a rank sends `asks`, rank 0 `answers`.
struct endpoint {
  using key = std::array<std::uint64_t, 2>;
  struct address {
    std::uint32_t family = 0;
    unsigned char bytes[16] = {};
  };
  key asks{}, answers{};
  std::uint16_t port = 0;  // 0: rank 0 does not listen
  std::uint16_t count = 0;
  std::array<address, 24> at{};
};
static_assert(std::is_trivially_copyable_v<endpoint>);

/// The first message of a rank.
struct introduction {
  endpoint::key asks{};
  std::int32_t rank = 0, size = 0;
};

/// Compares keys in constant time.
inline bool same_key(endpoint::key const& a, endpoint::key const& b) { return ((a[0] ^ b[0]) | (a[1] ^ b[1])) == 0; }

/// Lists the addresses of this machine that others may reach, followed by its loopback addresses.
inline void list_addresses(endpoint& to) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;
  for (bool loopback : {false, true})
    for (ifaddrs const* i = all; i && to.count < to.at.size(); i = i->ifa_next) {
      if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || bool(i->ifa_flags & IFF_LOOPBACK) != loopback) continue;
      endpoint::address a;
      a.family = i->ifa_addr->sa_family;
      if (a.family == AF_INET) {
        std::memcpy(a.bytes, &reinterpret_cast<sockaddr_in const*>(i->ifa_addr)->sin_addr, 4);
      } else if (a.family == AF_INET6) {
        in6_addr const& ip = reinterpret_cast<sockaddr_in6 const*>(i->ifa_addr)->sin6_addr;
        if (IN6_IS_ADDR_LINKLOCAL(&ip)) continue;  // valid only with an interface name of this machine
        std::memcpy(a.bytes, &ip, 16);
      } else {
        continue;
      }
      // The last entry is reserved for a loopback address.
      if (loopback || to.count + 1u < to.at.size()) to.at[to.count++] = a;
    }
  ::freeifaddrs(all);
}

inline socklen_t socket_address(endpoint::address const& a, int port, sockaddr_storage& to) {
  to = {};
  to.ss_family = sa_family_t(a.family);
  if (a.family == AF_INET6) {
    auto& in = reinterpret_cast<sockaddr_in6&>(to);
    in.sin6_port = htons(std::uint16_t(port));
    std::memcpy(&in.sin6_addr, a.bytes, 16);
    return sizeof in;
  }
  auto& in = reinterpret_cast<sockaddr_in&>(to);
  in.sin_port = htons(std::uint16_t(port));
  std::memcpy(&in.sin_addr, a.bytes, 4);
  return sizeof in;
}

/// Listens on a free port of all interfaces, IPv6 and IPv4 if the machine has both. On failure empty, with `why`.
inline descriptor listen_everywhere(int backlog, std::string& why) {
  for (std::uint32_t family : {std::uint32_t(AF_INET6), std::uint32_t(AF_INET)}) {
    descriptor s(::socket(int(family), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int const off = 0;
    sockaddr_storage any;
    socklen_t const n = socket_address({family, {}}, 0, any);
    if (s && (family == AF_INET || ::setsockopt(s.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) &&
        ::bind(s.get(), reinterpret_cast<sockaddr*>(&any), n) == 0 && ::listen(s.get(), backlog) == 0)
      return s;
    why = system_message(errno);
  }
  return descriptor();
}

/// One of several connection attempts, of which the first that is answered is used.
struct attempt {
  descriptor socket;
  bool spoke = false;
  endpoint::key heard{};
  std::size_t have = 0;

  enum outcome { goes_on, works, fails };
  outcome speak(introduction const& me, std::string& why) {
    int error = 0;
    socklen_t n = sizeof error;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &n) != 0) error = errno;
    if (error == 0 && to_itself(socket)) error = ECONNREFUSED;
    spoke = true;
    if (error == 0 && ::send(socket.get(), &me, sizeof me, MSG_NOSIGNAL) == ssize_t(sizeof me)) return goes_on;
    why = system_message(error ? error : errno);
    return fails;
  }
  outcome listen(endpoint const& to, std::string& why) {
    std::ptrdiff_t const n = receive_some(socket, std::as_writable_bytes(std::span(heard)).subspan(have));
    if (n == 0) return why = "rejected", fails;
    if (n > 0) have += std::size_t(n);
    if (have < sizeof heard) return goes_on;
    if (same_key(heard, to.answers)) return works;
    return why = "another program listens there", fails;
  }
};

/// Connects to rank 0. Tries the next address if none has answered for 250 ms, until one answers with the right key,
/// the limit has passed or stopped() is true. On failure empty, with `why`.
template <class Stopped>
descriptor reach(endpoint const& to, introduction const& me, time_limit& limit, Stopped const& stopped,
                 std::string& why) {
  std::vector<attempt> open;
  std::size_t next = 0;
  auto begin_at = deadline_clock::now();
  why = "no address of rank 0 is known";
  while (!limit.passed() && !stopped()) {
    auto const now = deadline_clock::now();
    if (next < to.count && (open.empty() || now >= begin_at)) {
      begin_at = now + std::chrono::milliseconds(250);
      sockaddr_storage there;
      socklen_t const n = socket_address(to.at[next++], to.port, there);
      attempt a{descriptor(::socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
      if (a.socket && (::connect(a.socket.get(), reinterpret_cast<sockaddr*>(&there), n) == 0 || errno == EINPROGRESS))
        open.push_back(std::move(a));
      else why = system_message(errno);
      continue;
    }
    if (open.empty()) {
      next = 0;
      limit.pause();
      continue;
    }
    std::vector<pollfd> fds;
    for (attempt const& a : open) fds.push_back({a.socket.get(), short(a.spoke ? POLLIN : POLLOUT), 0});
    if (::poll(fds.data(), nfds_t(fds.size()), std::min(limit.milliseconds(), 20)) <= 0) continue;
    for (std::size_t i = open.size(); i-- > 0;) {
      if (!fds[i].revents) continue;
      auto const is = open[i].spoke ? open[i].listen(to, why) : open[i].speak(me, why);
      if (is == attempt::works) return std::move(open[i].socket);
      if (is == attempt::fails) open.erase(open.begin() + std::ptrdiff_t(i));
    }
  }
  if (!open.empty()) why = "no answer in " + limit.text();
  return descriptor();
}

/// The header of a message; `bytes` of text follow.
struct heartbeat {
  enum kinds : std::uint32_t { alive = 1, failed, late, hurt, differs, verdict, goodbye };
  static constexpr std::uint32_t most = 4000;

  std::uint32_t kind = alive, bytes = 0;
  std::int64_t collective = 0, begun = 0, ended = 0;  // how far the sender is
};
static_assert(std::has_unique_object_representations_v<heartbeat>);

/// Messages in both directions. No call blocks: what cannot be sent now is sent later.
class heartbeat_line {
 public:
  enum class reads { nothing, message, end, nonsense };

  heartbeat_line() = default;
  explicit heartbeat_line(descriptor s) : socket_(std::move(s)) {}
  int get() const { return socket_.get(); }
  explicit operator bool() const { return bool(socket_); }
  bool sends_all() const { return out_.empty(); }

  void say(heartbeat b, std::string const& text) {
    if (!socket_) return;
    auto const body = std::as_bytes(std::span(text)).first(std::min<std::size_t>(text.size(), heartbeat::most));
    b.bytes = std::uint32_t(body.size());
    auto const head = std::as_bytes(std::span(&b, 1));
    out_.insert(out_.end(), head.begin(), head.end());
    out_.insert(out_.end(), body.begin(), body.end());
    flush();
  }
  void flush() {
    while (socket_ && !out_.empty()) {
      ssize_t const n = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
      if (n >= 0) out_.erase(out_.begin(), out_.begin() + n);
      else if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      else if (errno != EINTR) out_.clear();  // read() will report the end and what came before
    }
  }
  /// Reads the next message. Closes the socket at its end.
  reads read(heartbeat& b, std::string& text) {
    if (!socket_) return reads::nothing;
    bool ended = false;
    while (!whole()) {
      std::byte room[4096];
      std::ptrdiff_t const n = receive_some(socket_, room);
      if (n > 0) in_.insert(in_.end(), room, room + n);
      ended = n == 0;
      if (n <= 0) break;
    }
    if (nonsense_) return socket_ = descriptor(), reads::nonsense;
    if (!whole()) return ended ? (socket_ = descriptor(), reads::end) : reads::nothing;
    std::memcpy(&b, in_.data(), sizeof b);
    text.assign(reinterpret_cast<char const*>(in_.data()) + sizeof b, b.bytes);
    in_.erase(in_.begin(), in_.begin() + std::ptrdiff_t(sizeof b + b.bytes));
    return reads::message;
  }

 private:
  bool whole() {
    if (in_.size() < sizeof(heartbeat)) return false;
    heartbeat b;
    std::memcpy(&b, in_.data(), sizeof b);
    nonsense_ = b.kind < heartbeat::alive || b.kind > heartbeat::goodbye || b.bytes > heartbeat::most;
    return nonsense_ || in_.size() >= sizeof b + b.bytes;
  }

  descriptor socket_;
  std::vector<std::byte> in_, out_;
  bool nonsense_ = false;
};

}  // namespace descent::detail
