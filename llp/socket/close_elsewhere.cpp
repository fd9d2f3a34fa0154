// SPDX-License-Identifier: Apache-2.0
#include "llp/socket/close_elsewhere.h"

#include <unistd.h>

#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace diwarp::llp {
namespace {

/// Has one thread while there is something to close.
class Closer {
 public:
  /// Throws std::system_error or std::bad_alloc, and then nothing is closed.
  void add(UniqueFd& descriptor) {
    const std::lock_guard lock(mutex_);
    waiting_.reserve(waiting_.size() + 1);
    // A forked child does not have the thread.
    if (runs_in_ != ::getpid()) std::thread([this] { run(); }).detach();
    runs_in_ = ::getpid();
    waiting_.push_back(std::move(descriptor));
  }

 private:
  void run() {
    for (;;) {
      std::vector<UniqueFd> some;
      {
        const std::lock_guard lock(mutex_);
        some.swap(waiting_);
        if (some.empty()) {
          runs_in_ = 0;
          return;
        }
      }
    }
  }

  std::mutex mutex_;
  std::vector<UniqueFd> waiting_;
  pid_t runs_in_ = 0;  // the process that has the thread
};

}  // namespace

void close_elsewhere(UniqueFd descriptor) {
  static Closer& closer = *new Closer;  // its thread may outlive main()
  try {
    closer.add(descriptor);
  } catch (const std::exception&) {
    descriptor.reset();  // better late than never
  }
}

}  // namespace diwarp::llp
