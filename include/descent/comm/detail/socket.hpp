// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/comm/detail/handshake.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <vector>

/// TCP with a time limit on everything except name lookup. Sockets are non-blocking.
namespace descent::detail {

using address_list = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// Looks up a name. On failure empty, with `why`.
inline address_list addresses_of(std::string const& name, int port, bool to_listen, std::string& why) {
  addrinfo hints{}, *first = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  int const error = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &first);
  if (error) why = "cannot look up '" + name + "': " + ::gai_strerror(error), first = nullptr;
  return {first, [](addrinfo* a) {
            if (a) ::freeaddrinfo(a);
          }};
}

inline descriptor socket_for(addrinfo const& a) {
  return descriptor(::socket(a.ai_family, a.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a.ai_protocol));
}

/// Waits for events on the socket. False: the limit has passed.
inline bool wait_for(descriptor const& socket, short events, time_limit const& limit) {
  for (pollfd fd{socket.get(), events, 0};;) {
    if (::poll(&fd, 1, limit.milliseconds()) > 0) return true;
    if (limit.passed()) return false;
  }
}

/// Listens at an address. Throws comm_error if that is not possible.
inline descriptor listen_at(std::string const& who, std::string const& name, int port, int backlog) {
  std::string why;
  address_list const all = addresses_of(name, port, true, why);
  for (addrinfo const* a = all.get(); a; a = a->ai_next) {
    descriptor s = socket_for(*a);
    int const on = 1;  // allows a port with recently closed connections, but not one with a listener
    if (s && ::setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(s.get(), a->ai_addr, a->ai_addrlen) == 0 && ::listen(s.get(), backlog) == 0)
      return s;
    why = system_message(errno);
  }
  throw comm_error(who + ": rank 0 cannot listen at " + name + " port " + std::to_string(port) + ": " + why);
}

inline int port_in(sockaddr_storage const& a) {
  if (a.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6 const&>(a).sin6_port);
  return ntohs(reinterpret_cast<sockaddr_in const&>(a).sin_port);
}
inline int port_of(descriptor const& socket) {
  sockaddr_storage a{};
  socklen_t n = sizeof a;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&a), &n);
  return port_in(a);
}

/// Accepts the next connection and tells where it comes from. False: there is none, see errno.
inline bool accept_from(descriptor const& listener, descriptor& to, std::string& from) {
  sockaddr_storage a{};
  socklen_t n = sizeof a;
  to = descriptor(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&a), &n, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!to) return false;
  char host[NI_MAXHOST] = "?";
  ::getnameinfo(reinterpret_cast<sockaddr const*>(&a), n, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  from = host;
  return true;
}

/// Whether a socket is connected to itself. TCP does this if the source port equals a target port without a listener.
inline bool to_itself(descriptor const& socket) {
  sockaddr_storage here{}, there{};
  socklen_t n = sizeof here, m = sizeof there;
  return ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &n) == 0 &&
         ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&there), &m) == 0 && n == m &&
         std::memcmp(&here, &there, n) == 0;
}

/// Retries until the connection succeeds. Empty if the limit has passed; `why` is then the last error.
inline descriptor connect_to(std::string const& name, int port, time_limit& limit, std::string& why) {
  for (;; limit.pause()) {
    address_list const all = addresses_of(name, port, false, why);
    for (addrinfo const* a = all.get(); a && !limit.passed(); a = a->ai_next) {
      descriptor s = socket_for(*a);
      int error = s ? 0 : errno;
      if (s && ::connect(s.get(), a->ai_addr, a->ai_addrlen) != 0) {
        error = errno;
        if (error == EINPROGRESS || error == EINTR) {
          socklen_t n = sizeof error;
          if (!wait_for(s, POLLOUT, limit)) error = ETIMEDOUT;
          else if (::getsockopt(s.get(), SOL_SOCKET, SO_ERROR, &error, &n) != 0) error = errno;
        }
      }
      if (error == 0 && to_itself(s)) error = ECONNREFUSED;
      if (error == 0) return s;
      why = system_message(error);
    }
    if (limit.passed()) return descriptor();
  }
}

/// Receives up to to.size() bytes. Returns 0 if the peer has closed, a negative number if there is no data yet.
inline std::ptrdiff_t receive_some(descriptor const& socket, std::span<std::byte> to) {
  ssize_t const n = ::recv(socket.get(), to.data(), to.size(), 0);
  if (n >= 0) return n;
  return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK ? -1 : 0;
}

/// Receives exactly to.size() bytes. Returns an error, or an empty string.
inline std::string receive_all(descriptor const& socket, std::span<std::byte> to, time_limit const& limit) {
  while (!to.empty()) {
    if (!wait_for(socket, POLLIN, limit)) return "nothing was received in " + limit.text();
    std::ptrdiff_t const n = receive_some(socket, to);
    if (n == 0) return "the connection ended, " + std::to_string(to.size()) + " bytes are missing";
    if (n > 0) to = to.subspan(std::size_t(n));
  }
  return "";
}

inline std::string send_all(descriptor const& socket, std::span<std::byte const> from, time_limit const& limit) {
  while (!from.empty()) {
    ssize_t const n = ::send(socket.get(), from.data(), from.size(), MSG_NOSIGNAL);
    if (n >= 0) from = from.subspan(std::size_t(n));
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket, POLLOUT, limit)) return "nothing could be sent in " + limit.text();
    } else if (errno != EINTR) return system_message(errno);
  }
  return "";
}

}  // namespace descent::detail
