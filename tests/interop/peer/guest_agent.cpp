// SPDX-License-Identifier: Apache-2.0
// Runs in the guest: a client of its TCP port sends a shell command, ended by a zero byte, and gets
// its output, then a line "status N". The command "quit" ends the agent.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

namespace {

int listening_socket(uint16_t port) {
  const int one = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  return bound && ::listen(fd, 64) == 0 ? fd : -1;
}

std::optional<std::string> read_command(int fd) {
  std::string command;
  char c = 0;
  while (::read(fd, &c, 1) == 1) {
    if (c == 0) return command;
    command += c;
  }
  return std::nullopt;
}

int run(const std::string& command, int output) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    ::execlp("bash", "bash", "-c", command.c_str(), static_cast<char*>(nullptr));
    std::_Exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// True if the agent is to end.
bool serve(int fd) {
  const auto command = read_command(fd);
  if (!command) return false;
  if (*command == "quit") return true;
  if (::fork() == 0) {
    ::signal(SIGCHLD, SIG_DFL);
    const std::string last = "\nstatus " + std::to_string(run(*command, fd)) + "\n";
    (void)!::write(fd, last.data(), last.size());
    std::_Exit(0);
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGCHLD, SIG_IGN);  // the kernel reaps the processes that serve commands
  const int listener = listening_socket(static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0));
  if (listener < 0) {
    std::cerr << "guest_agent: cannot listen\n";
    return 1;
  }
  while (true) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    if (serve(fd)) return 0;
    ::close(fd);
  }
}
