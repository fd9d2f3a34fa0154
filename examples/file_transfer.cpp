// SPDX-License-Identifier: Apache-2.0
// A file goes to another process over RC, in Sends of 64 KiB and with its CRC32C at the end:
//   file_transfer receive ADDRESS[:PORT] FOLDER     takes one file, and never replaces one
//   file_transfer send ADDRESS:PORT FILE
#include <diwarp/verbs.h>

#include <array>
#include <boost/crc.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "common.h"

using example::check, example::next, example::text_of;
using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;
constexpr uint64_t kChunk = 64 << 10, kSlots = 8, kMaxSize = uint64_t{1} << 40;

[[noreturn]] void fail(const std::string& sentence) { throw std::runtime_error(sentence); }

/// An end with memory for some chunks on their way, which the requests use in turn. It needs no
/// flow control: Sends that find no receive wait in the connection (ReceiveNotReady::hold).
struct Party : example::End {
  explicit Party(const diwarp::Address& local)
      : End(diwarp::Device::open(local), diwarp::QpType::rc) {}
  std::byte* slot(uint64_t request) { return &memory[request % kSlots * kChunk]; }
  diwarp::Sge sge(uint64_t request, size_t length = kChunk) const {
    return chunks.sge(request % kSlots * kChunk, length);
  }
  void post_recv(uint64_t request) {
    check(qp.post_recv({.wr_id = request, .sges = sge(request)}));
  }
  std::vector<std::byte> memory = std::vector<std::byte>(kSlots * kChunk);
  diwarp::MemoryRegion chunks{pd, memory};
};

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
File open(const std::filesystem::path& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode), std::fclose);
  if (!file) throw std::system_error(errno, std::generic_category(), path.filename().string());
  return file;
}

void show_progress(uint64_t done, uint64_t size) {
  std::printf("\r%llu %%", static_cast<unsigned long long>(size == 0 ? 100 : done * 100 / size));
  if (done == size) std::puts("");
  std::fflush(stdout);
}

/// A new file in a folder, under a name that the peer chose: letters, digits and some signs, so
/// that it leads nowhere else. It goes again unless it is kept.
struct Target {
  Target(const std::filesystem::path& folder, const std::string& name) : path(folder / name) {
    const std::string first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (name.empty() || name.size() > 255 || first.find(name[0]) == std::string::npos ||
        name.find_first_not_of(first + ".-+ ") != std::string::npos)
      fail("no file may be called \"" + name + "\" here");
    file = open(path, "wbx");  // x: fails if there is anything of this name
  }
  ~Target() {
    if (file) std::remove(path.c_str());
  }
  void write(const std::byte* bytes, size_t length) {
    if (std::fwrite(bytes, 1, length, file.get()) != length)
      throw std::system_error(errno, std::generic_category(), path.filename().string());
  }
  void keep() {
    if (std::fflush(file.get()) != 0)
      throw std::system_error(errno, std::generic_category(), path.filename().string());
    file.reset();
  }
  std::filesystem::path path;
  File file{nullptr, std::fclose};
};

/// What the sender promises: "SIZE NAME".
struct Offer {
  explicit Offer(const std::string& text)
      : size(example::number(text.substr(0, text.find(' ')), kMaxSize)),
        name(text.substr(std::min(text.find(' '), text.size() - 1) + 1)) {}
  uint64_t size;
  std::string name;
};

/// Takes the chunks, and then the checksum of them all.
void take(Party& receiver, Target& target, uint64_t size) {
  Crc32c crc;
  for (uint64_t request = 0, got = 0;; ++request) {
    show_progress(got, size);
    const uint32_t length = next(receiver.cq).byte_count;
    const std::byte* chunk = receiver.slot(request);
    if (got == size) {
      if (text_of({chunk, length}) != std::to_string(crc.checksum())) fail("the checksum is wrong");
      return;
    }
    if (length == 0 || length > size - got) fail("the sender sends something else than it offered");
    target.write(chunk, length);
    crc.process_bytes(chunk, length);
    got += length;
    receiver.post_recv(request + kSlots);
  }
}

void receive(const diwarp::Address& local, const char* folder) {
  if (!std::filesystem::is_directory(folder)) fail(std::string(folder) + " is no folder");
  Party receiver(local.with_port(0));
  diwarp::Listener listener(receiver.device, local.port());
  std::printf("listening at %s\n", listener.address().to_string().c_str());
  std::fflush(stdout);
  auto request = listener.get_request(std::chrono::hours(1));
  if (!request) fail("nobody sent a file");
  std::unique_ptr<Target> target;
  uint64_t size = 0;
  try {
    const Offer offer(text_of(request->private_data()));
    target = std::make_unique<Target>(folder, offer.name);
    size = offer.size;
  } catch (const std::exception& error) {
    request->reject(example::bytes_of(std::string_view(error.what()).substr(0, 500)));
    throw;
  }
  for (uint64_t slot = 0; slot < kSlots; ++slot) receiver.post_recv(slot);
  request->accept(receiver.qp);
  take(receiver, *target, size);
  target->keep();
  example::send_text(receiver, "taken");
  next(receiver.cq);
  std::printf("%s: %llu bytes\n", target->path.filename().c_str(),
              static_cast<unsigned long long>(size));
  receiver.qp.wait_disconnected(example::kPatience);
}

void send(const diwarp::Address& peer, const std::filesystem::path& path) {
  const File file = open(path, "rb");
  const uint64_t size = std::filesystem::file_size(path);
  Party sender(diwarp::Address::any(peer.family()));
  std::array<std::byte, 64> answer{};
  diwarp::MemoryRegion in(sender.pd, answer);
  check(sender.qp.post_recv({.sges = in.sge()}));
  const std::string offer = std::to_string(size) + " " + path.filename().string();
  sender.qp.connect(peer, {.private_data = example::bytes_of(offer)});

  Crc32c crc;
  for (uint64_t request = 0, sent = 0; sent < size; ++request) {
    if (request >= kSlots) next(sender.cq);  // the slot's Send before: they complete in order
    const size_t length = std::min(kChunk, size - sent);
    if (std::fread(sender.slot(request), 1, length, file.get()) != length)
      fail(path.string() + " became shorter, or cannot be read");
    crc.process_bytes(sender.slot(request), length);
    check(sender.qp.post_send({.sges = sender.sge(request, length)}));
    show_progress(sent += length, size);
  }
  example::send_text(sender, std::to_string(crc.checksum()));
  auto wc = next(sender.cq);
  while (wc.opcode != diwarp::WcOpcode::recv) wc = next(sender.cq);
  if (text_of({answer.data(), wc.byte_count}) != "taken") fail("the receiver has no receipt");
  std::printf("%s was taken\n", path.filename().c_str());
  sender.qp.disconnect();
}

int main(int argc, char** argv) try {
  const std::string role = argc == 4 ? argv[1] : "";
  if (role == "receive")
    receive(diwarp::Address::parse(argv[2]), argv[3]);
  else if (role == "send")
    send(diwarp::Address::parse(argv[2]), argv[3]);
  else
    fail("usage: file_transfer receive ADDRESS[:PORT] FOLDER, or send ADDRESS:PORT FILE");
} catch (const diwarp::RejectedError& error) {
  std::fprintf(stderr, "file_transfer: the receiver says no: %s\n",
               text_of(error.private_data()).c_str());
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "file_transfer: %s\n", error.what());
  return 1;
}
