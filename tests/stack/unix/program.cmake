# Once more over the example of a backend, Unix-domain sockets, by the same objects. The
# peers with plain sockets have Unix-domain sockets, too. Left out are the cases with these tags:
#   [plain]    a descriptor of a UDP socket is handed in; this backend adopts those of streams alone
#   [reserve]  a listener refuses connections by a descriptor that it has kept; these listeners keep none
#   [groups]   groups, and what else is IP's alone: ports that are shared, datagrams beyond the path MTU
#   [any]      a device is on all addresses of the host, which these sockets do not know
#   [window]   a hundred datagrams are on the way, where these sockets hold ten
#   [kernel]   what is observed is the kernel's TCP or UDP: its routes, its errors, its options
diwarp_test(stack_unix "stack;threaded"
  SOURCES unix/choice_test.cpp unix/raw_unix_sockets.cpp unix/table.cpp unix/unix_abort.cpp
    unix/unix_backend.cpp unix/unix_connector.cpp unix/unix_datagrams.cpp unix/unix_name.cpp
    unix/unix_stream.cpp
  LINKS stack_over_sockets stack_cases
  CASES "~[plain]~[reserve]~[groups]~[any]~[kernel]~[window]")
