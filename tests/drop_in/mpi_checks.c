// SPDX-License-Identifier: Apache-2.0
// A program for MPI, each of whose bytes is checked where it arrives: mpi_checks WORK..., of which
// there are ring, allreduce, alltoall, and wait, which prints the processes and never ends. Rank 0
// prints a line for each work, with the bytes that all ranks sent.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

static void fail(const char *work) {
  fprintf(stderr, "mpi_checks: rank %d: wrong bytes in %s\n", rank, work);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// What a rank sends to another one at an offset, in a round.
static unsigned char expected(int from, int to, int round, size_t offset) {
  return (unsigned char)(from * 131 + to * 31 + round * 7 + offset + (offset >> 8) * 13);
}

static void fill(unsigned char *bytes, size_t length, int from, int to, int round) {
  for (size_t i = 0; i < length; ++i) bytes[i] = expected(from, to, round, i);
}

static void check(const unsigned char *bytes, size_t length, int from, int to, int round,
                  const char *work) {
  for (size_t i = 0; i < length; ++i)
    if (bytes[i] != expected(from, to, round, i)) fail(work);
}

static void *memory(size_t length) {
  void *made = malloc(length);
  if (made == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return made;
}

// Sizes of messages that are sent at once, and of some that the receiver fetches.
static const int sizes[] = {1, 1000, 16384, 65536, 300000};
enum { size_count = sizeof sizes / sizeof *sizes, most = 300000 };

static unsigned long long ring(void) {
  unsigned char *own = memory(most), *theirs = memory(most);
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  unsigned long long sent = 0;
  for (int round = 0; round < 4 * size_count; ++round) {
    const int size = sizes[round % size_count];
    fill(own, size, rank, next, round);
    memset(theirs, 0, size);
    MPI_Sendrecv(own, size, MPI_BYTE, next, round, theirs, size, MPI_BYTE, previous, round,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(theirs, size, previous, rank, round, "ring");
    sent += size;
  }
  free(own);
  free(theirs);
  return sent;
}

static unsigned long long allreduce(void) {
  enum { count = 50000 };
  long *own = memory(count * sizeof *own), *sums = memory(count * sizeof *sums);
  for (long i = 0; i < count; ++i) own[i] = (rank + 1) * i;
  MPI_Allreduce(own, sums, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  const long ranks_sum = (long)ranks * (ranks + 1) / 2;
  for (long i = 0; i < count; ++i)
    if (sums[i] != ranks_sum * i) fail("allreduce");
  free(own);
  free(sums);
  return count * sizeof *own;
}

static unsigned long long alltoall(void) {
  unsigned char *own = memory((size_t)most * ranks), *theirs = memory((size_t)most * ranks);
  unsigned long long sent = 0;
  for (int round = 0; round < size_count; ++round) {
    const int size = sizes[round];
    for (int to = 0; to < ranks; ++to) fill(own + (size_t)to * size, size, rank, to, round);
    memset(theirs, 0, (size_t)ranks * size);
    MPI_Alltoall(own, size, MPI_BYTE, theirs, size, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; ++from)
      check(theirs + (size_t)from * size, size, from, rank, round, "alltoall");
    sent += (unsigned long long)size * (ranks - 1);
  }
  free(own);
  free(theirs);
  return sent;
}

static void wait_for_ever(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d is process %ld\n", rank, (long)getpid());
  fflush(stdout);
  for (int sum = 0;; usleep(1000)) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void work(const char *name) {
  unsigned long long sent = 0, all = 0;
  if (strcmp(name, "ring") == 0)
    sent = ring();
  else if (strcmp(name, "allreduce") == 0)
    sent = allreduce();
  else if (strcmp(name, "alltoall") == 0)
    sent = alltoall();
  else if (strcmp(name, "wait") == 0)
    wait_for_ever();
  else
    fail(name);
  MPI_Reduce(&sent, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %d ranks, %llu bytes\n", name, ranks, all);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i < argc; ++i) work(argv[i]);
  MPI_Finalize();
  return 0;
}
