// SPDX-License-Identifier: Apache-2.0
#include "llp/local/local_backend.h"

#include <bit>
#include <mutex>
#include <string>
#include <utility>

#include "base/log.h"
#include "diwarp/error.h"
#include "llp/local/local_connector.h"
#include "llp/local/local_link.h"
#include "llp/local/local_peers.h"

namespace diwarp::llp {
namespace {

LocalSettings settings_of(const DeviceOptions& options, bool observed) {
  const size_t ring = options.local_ring;
  if (!std::has_single_bit(ring) || ring < kLeastRing || ring > kMostRing)
    throw Error(make_error_code(Errc::invalid_argument),
                "DeviceOptions::local_ring is " + std::to_string(ring) +
                    ": give a power of two from 256 KiB to 8 MiB");
  return {.required = options.local == LocalPath::require,
          .after = options.local == LocalPath::require ? 0 : options.local_after,
          .ring = options.local_ring,
          .max_rings = options.max_local_peers,
          .crc = options.local_crc || observed};
}

class LocalBackend final : public Backend {
 public:
  LocalBackend(std::unique_ptr<Backend> inner, const BackendSetup& setup, bool observed)
      : inner_(std::move(inner)),
        settings_(settings_of(setup.options, observed)),
        address_(setup.address),
        counters_(setup.counters),
        clock_(setup.clock),
        connector_(inner_->connector(), [this] { return find_peers(); }) {}

  std::unique_ptr<DatagramLink> open_datagrams(const Address& local,
                                               const DatagramOptions& options) override {
    auto below = inner_->open_datagrams(local, options);
    // A descriptor of the application's may be read by others, and so may a shared port's.
    const bool own = options.descriptor < 0 && !options.share_port;
    LocalPeers* const peers = own ? find_peers() : nullptr;
    if (peers == nullptr) return below;
    return std::make_unique<LocalLink>(std::move(below), *peers);
  }
  Connector& connector() override { return connector_; }
  BackendDescription describe() const override {
    BackendDescription own = inner_->describe();
    const char* const within = settings_.required ? "; shared memory alone within the host"
                                                  : "; shared memory within the host";
    own.datagrams += within;
    own.streams += within;
    return own;
  }
  DatagramSocketAttributes query_datagrams(const Address& local) const override {
    return inner_->query_datagrams(local);
  }
  void on_ready(std::function<void()> callback) override { inner_->on_ready(std::move(callback)); }

 private:
  /// Made with the first queue pair that may need them. Null where the system has no means: then it
  /// is not asked again.
  LocalPeers* find_peers() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(looked_for_, true)) return peers_.get();
    try {
      peers_ =
          std::make_unique<LocalPeers>(address_, settings_, inner_->connector(), counters_, clock_);
    } catch (const Error& error) {
      looked_for_ = !settings_.required;
      if (settings_.required) throw;
      log::tell(LogLevel::info, {}, [&] { return std::string(error.what()); });
    }
    return peers_.get();
  }

  const std::unique_ptr<Backend> inner_;
  const LocalSettings settings_;
  const Address address_;
  Counters& counters_;
  const Clock& clock_;
  std::mutex mutex_;
  bool looked_for_ = false;
  std::unique_ptr<LocalPeers> peers_;
  LocalConnector connector_;
};

}  // namespace

std::unique_ptr<Backend> local_as_asked(std::unique_ptr<Backend> inner, const BackendSetup& setup,
                                        bool observed) {
  if (setup.options.local == LocalPath::off || inner == nullptr) return inner;
  return std::make_unique<LocalBackend>(std::move(inner), setup, observed);
}

}  // namespace diwarp::llp
