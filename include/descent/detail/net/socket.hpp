// SPDX-FileCopyrightText: 2026 the descent authors
// SPDX-License-Identifier: MIT
#pragma once

#include <descent/core/communicator.hpp>
#include <descent/detail/net/meeting.hpp>

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

/// TCP with a time limit on everything but the look-up of names. Sockets do not block.
namespace descent::detail {

using addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// What the name stands for; none, and why.
inline addresses addresses_of(std::string const& name, int port, bool to_listen, std::string& why) {
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

/// Waits for the socket. False: the limit has passed.
inline bool wait_for(descriptor const& socket, short events, time_limit const& limit) {
  for (pollfd fd{socket.get(), events, 0};;) {
    if (::poll(&fd, 1, limit.milliseconds()) > 0) return true;
    if (limit.passed()) return false;
  }
}

/// Throws comm_error where nobody can listen there.
inline descriptor listen_at(std::string const& who, std::string const& name, int port, int backlog) {
  std::string why;
  addresses const all = addresses_of(name, port, true, why);
  for (addrinfo const* a = all.get(); a; a = a->ai_next) {
    descriptor s = socket_for(*a);
    int const on = 1;  // a port whose connections have just ended is free; not one where somebody listens
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

/// The next connection and where it comes from. False: none, by errno.
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

/// A connection to itself, which TCP makes where a port without a listener is also the one that it comes from.
inline bool to_itself(descriptor const& socket) {
  sockaddr_storage here{}, there{};
  socklen_t n = sizeof here, m = sizeof there;
  return ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &n) == 0 &&
         ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&there), &m) == 0 && n == m &&
         std::memcmp(&here, &there, n) == 0;
}

/// Tries until somebody listens. None: the limit has passed; why it failed last.
inline descriptor connect_to(std::string const& name, int port, time_limit& limit, std::string& why) {
  for (;; limit.pause()) {
    addresses const all = addresses_of(name, port, false, why);
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

/// Up to so many bytes: 0 where the other has left, negative where there is nothing yet.
inline std::ptrdiff_t receive_some(descriptor const& socket, std::span<std::byte> to) {
  ssize_t const n = ::recv(socket.get(), to.data(), to.size(), 0);
  if (n >= 0) return n;
  return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK ? -1 : 0;
}

/// All bytes, however they come. Why not, or nothing.
inline std::string receive_all(descriptor const& socket, std::span<std::byte> to, time_limit const& limit) {
  while (!to.empty()) {
    if (!wait_for(socket, POLLIN, limit)) return "nothing came in " + limit.text();
    std::ptrdiff_t const n = receive_some(socket, to);
    if (n == 0) return "the connection ended, " + std::to_string(to.size()) + " bytes were to come";
    if (n > 0) to = to.subspan(std::size_t(n));
  }
  return "";
}

inline std::string send_all(descriptor const& socket, std::span<std::byte const> from, time_limit const& limit) {
  while (!from.empty()) {
    ssize_t const n = ::send(socket.get(), from.data(), from.size(), MSG_NOSIGNAL);
    if (n >= 0) from = from.subspan(std::size_t(n));
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket, POLLOUT, limit)) return "nothing was taken in " + limit.text();
    } else if (errno != EINTR)
      return system_message(errno);
  }
  return "";
}

}  // namespace descent::detail
