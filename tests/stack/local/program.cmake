# The cases over sockets once more, by devices whose datagrams within the host go through shared
# memory alone. Left out are the cases with these tags, and a few by name:
#   [groups]   groups go by UDP
#   [kernel]   what is observed is the kernel's UDP: its sockets, routes, errors and options
#   [nobody]   nobody receives at the destination: then there is no ring, and nothing is sent
diwarp_test(stack_local "stack;threaded"
  SOURCES local/choice_test.cpp local/table.cpp
  LINKS stack_over_sockets raw_ip_sockets
  CASES "~[groups]~[kernel]~[nobody]")
