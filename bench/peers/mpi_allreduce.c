/* The peer: Open MPI over TCP, yielding. One member, started by mpirun from bench/allreduce.py.
 *   mpi_allreduce REPEATS WARMUP BYTES...
 * Prints one JSON line a size (rank 0): seconds of each repetition, all members' CPU seconds, whether the sum was right. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static double cpu_seconds(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 4) {
    if (rank == 0) fprintf(stderr, "usage: mpi_allreduce REPEATS WARMUP BYTES...\n");
    MPI_Finalize();
    return 2;
  }
  const int repeats = atoi(argv[1]), warmup = atoi(argv[2]);
  double* times = malloc(sizeof(double) * repeats);
  for (int a = 3; a < argc; ++a) {
    const size_t bytes = strtoull(argv[a], NULL, 10);
    const int count = (int)(bytes / 4);
    float *in = malloc(bytes + 4), *out = malloc(bytes + 4);
    for (int i = 0; i < count; ++i) in[i] = (float)(rank + 1);
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    int right = 1;
    for (int i = 0; i < count; ++i) right &= out[i] == size * (size + 1) / 2.0f;
    for (int i = 0; i < warmup; ++i) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    const double cpu = cpu_seconds();
    for (int i = 0; i < repeats; ++i) {
      const double begin = MPI_Wtime();
      MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      times[i] = MPI_Wtime() - begin;
    }
    double spent = cpu_seconds() - cpu, all = 0;
    MPI_Reduce(&spent, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      printf("{\"bytes\": %zu, \"times\": [", bytes);
      for (int i = 0; i < repeats; ++i) printf("%s%.9f", i ? ", " : "", times[i]);
      printf("], \"cpu\": %.6f, \"right\": %s}\n", all / repeats, right ? "true" : "false");
      fflush(stdout);
    }
    free(in);
    free(out);
  }
  free(times);
  MPI_Finalize();
  return 0;
}
