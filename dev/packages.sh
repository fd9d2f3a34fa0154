# shellcheck shell=bash
# Sourced by the scripts of dev and tools: which Debian packages the project needs, and how to get them.

# packages_for PURPOSE...: their names, a line each.
packages_for() {
  local purpose
  for purpose in "$@"; do
    case $purpose in
      build)
        printf '%s\n' g++ cmake ninja-build pkg-config libboost-dev liburing-dev libspdlog-dev \
          libisal-dev libcli11-dev nlohmann-json3-dev catch2 ccache python3 python3-jsonschema \
          help2man libibverbs-dev librdmacm-dev
        ;;
      # tests/network: network namespaces and what connects them.
      network) printf '%s\n' iproute2 nftables ethtool ;;
      # tests/wireshark: tshark, the versions of Lua that Wireshark has or had, and ethtool for captures.
      wireshark) printf '%s\n' tshark lua5.2 lua5.3 lua5.4 iproute2 ethtool ;;
      # diwarp-compare: the program it is compared with, and what makes its plots. It runs without them.
      compare) printf '%s\n' libfabric-bin ucx-utils gnuplot-nox ;;
      # diwarp-lab: what draws, and what its tests read tables and schemas with. It runs without them.
      lab) printf '%s\n' python3-matplotlib python3-pandas python3-jsonschema ;;
      # tests/format and dev/format: this version, as each formats differently.
      format) printf '%s\n' clang-format-14 ;;
      # dev/tidy: this version, whose checks .clang-tidy chooses from.
      tidy) printf '%s\n' clang-tidy-14 ;;
      # dev/instructions: what counts them.
      instructions) printf '%s\n' valgrind ;;
      # tests/drop_in: the programs that run over the drop-ins. Those that are missing are skipped.
      drop-in)
        printf '%s\n' rdmacm-utils ibverbs-utils perftest libfabric-bin libfabric1 qperf fio ucx-utils libucx0 \
          tgt python3-pyverbs openmpi-bin libopenmpi-dev netpipe-openmpi hpcc librpma0 librpma-dev \
          libdapl2 dapl2-utils libiscsi-bin qemu-system-x86 qemu-utils qemu-block-extra seabios
        ;;
      # Clang with the sanitizers' libraries and libFuzzer, and what shows coverage.
      clang) printf '%s\n' clang-14 clang libclang-rt-14-dev llvm-14 ;;
      # tests/interop: the peers, the capture check, the virtual machine and what goes into it.
      interop)
        printf '%s\n' tshark qemu-system-x86 cpio kmod xz-utils gcc-12 \
          make binutils busybox-static rdma-core ibverbs-utils ibverbs-providers rdmacm-utils \
          perftest iproute2 ethtool tcpdump strace libspdlog1.10 libfmt9 liburing2 libgcc-s1 libstdc++6
        ;;
      *) echo "packages_for: no such purpose: $purpose" >&2 && return 1 ;;
    esac
  done
}

# missing_of PACKAGE...: those that are not installed; all of them where there is no dpkg.
missing_of() {
  local installed package
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "installed $package" <<<"$installed" || echo "$package"
  done
}

# as_root COMMAND...
as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    sudo "$@"
  fi
}

# apt_install LOG PACKAGE...: with the package lists as they are, then with fresh ones.
apt_install() {
  local log=$1
  shift
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=120)
  as_root "${apt[@]}" install --no-install-recommends "$@" >"$log" 2>&1 && return
  { as_root "${apt[@]}" update && as_root "${apt[@]}" install --no-install-recommends "$@"; } \
    >"$log" 2>&1
}

# configures: whether CMake finds all it needs, installed by whatever means.
configures() {
  local folder status=0
  folder=$(mktemp -d)
  cmake -S "$(dirname "${BASH_SOURCE[0]}")/.." -B "$folder" -G Ninja -DDIWARP_TESTS=ON >/dev/null 2>&1 || status=1
  rm -rf "$folder"
  return $status
}

# install_packages PURPOSE...: installs what is missing and says what; silent if nothing is.
install_packages() {
  local names missing log problem
  mapfile -t names < <(packages_for "$@")
  mapfile -t missing < <(missing_of "${names[@]}")
  if ((${#missing[@]} == 0)); then
    return
  fi
  if ! command -v apt-get >/dev/null; then
    configures && return
    problem="there is no apt-get here"
  elif ((EUID != 0)) && ! command -v sudo >/dev/null; then
    problem="this is not root, and there is no sudo"
  else
    echo "Installing (apt-get): ${missing[*]}"
    log=$(mktemp)
    if apt_install "$log" "${missing[@]}"; then
      rm -f "$log"
      return
    fi
    tail -n 20 "$log" >&2
    rm -f "$log"
    problem="apt-get failed"
  fi
  if configures; then
    echo "Going on, as CMake finds what it needs (${problem})."
    return
  fi
  echo "Please install these by hand, as $problem (names as in Debian 12): ${missing[*]}" >&2
  return 1
}
