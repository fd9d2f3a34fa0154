// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace diwarp::rnic {

/// Memory for one operation of Asio's that waits at a time, so that beginning it cannot fail for
/// want of memory. An operation that does not fit, or comes while it is in use, takes the heap's.
class HandlerMemory {
 public:
  HandlerMemory() = default;
  HandlerMemory(const HandlerMemory&) = delete;
  HandlerMemory& operator=(const HandlerMemory&) = delete;

  void* allocate(size_t bytes) {
    if (used_ || bytes > bytes_.size()) return ::operator new(bytes);
    used_ = true;
    return bytes_.data();
  }
  void deallocate(void* memory) noexcept {
    if (memory == bytes_.data())
      used_ = false;
    else
      ::operator delete(memory);
  }

 private:
  alignas(std::max_align_t) std::array<std::byte, 512> bytes_;
  bool used_ = false;
};

/// The allocator over it that Asio asks a handler for.
template <class T>
class HandlerAllocator {
 public:
  using value_type = T;

  explicit HandlerAllocator(HandlerMemory& memory) : memory_(&memory) {}
  template <class U>
  HandlerAllocator(const HandlerAllocator<U>& other) : memory_(&other.memory()) {}

  T* allocate(size_t count) { return static_cast<T*>(memory_->allocate(count * sizeof(T))); }
  void deallocate(T* memory, size_t) noexcept { memory_->deallocate(memory); }
  HandlerMemory& memory() const { return *memory_; }

  template <class U>
  friend bool operator==(const HandlerAllocator& a, const HandlerAllocator<U>& b) {
    return &a.memory() == &b.memory();
  }

 private:
  HandlerMemory* memory_;
};

/// A handler of a member function, whose owner it keeps alive, in memory of the owner's.
template <class Owner, void (Owner::*Method)(const boost::system::error_code&)>
class MemberHandler {
 public:
  using allocator_type = HandlerAllocator<void>;

  MemberHandler(std::shared_ptr<Owner> owner, HandlerMemory& memory)
      : owner_(std::move(owner)), memory_(&memory) {}

  allocator_type get_allocator() const { return allocator_type(*memory_); }
  void operator()(const boost::system::error_code& error) { ((*owner_).*Method)(error); }

 private:
  std::shared_ptr<Owner> owner_;
  HandlerMemory* memory_;
};

}  // namespace diwarp::rnic
