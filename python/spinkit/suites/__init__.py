# SPDX-License-Identifier: Apache-2.0
"""Suites: conformance tests, MPI test suites, benchmarks, peers.

- `_peers`: the command `spinkit peers`.
- `_bench`: the command `spinkit bench`.
- `_aims`: aims of the benchmarks.
- `_conformance`: the project's Portals 4 tests.
- `_mpi_suites`: the command `spinkit mpi-tests`.
- `_mpich_suite`: MPICH's test suite.
- `_mpi4py_suite`: mpi4py's test suite.
- `_mpi_cases`: cases and outcomes that both MPI suites share.
"""
