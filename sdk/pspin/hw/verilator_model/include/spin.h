/* SPDX-License-Identifier: Apache-2.0 */
/* Execution contexts, and program and memory of the card, for drivers. All calls must come from the thread that runs
 * the simulation, also within its callbacks. They return SPIN_SUCCESS, or SPIN_ERR after a message on standard
 * error. */
#ifndef SPIN_DRIVER_H
#define SPIN_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "spin_hw_conf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPIN_SUCCESS 0
#define SPIN_ERR 1

/* Addresses of the card and of the host. */
typedef uint32_t mem_addr_t;
typedef uint32_t mem_size_t;
typedef uint32_t spin_nic_addr_t;
typedef uint64_t host_addr_t;

/* Execution context of packets. Address 0 means no handler. */
typedef struct spin_ec {
    mem_addr_t handler_mem_addr;
    mem_size_t handler_mem_size;
    host_addr_t host_mem_addr;
    mem_size_t host_mem_size;
    mem_addr_t hh_addr;
    mem_size_t hh_size;
    mem_addr_t ph_addr;
    mem_size_t ph_size;
    mem_addr_t th_addr;
    mem_size_t th_size;
    mem_addr_t scratchpad_addr[NUM_CLUSTERS];
    mem_size_t scratchpad_size[NUM_CLUSTERS];
} __attribute__((__packed__)) spin_ec_t;

/* Copies `size` bytes at `data`, now, and writes them to address `addr` of the card while the simulation runs; the callback of
 * pspinsim_cb_set_pcie_mst_write_completion then gets `user_ptr`. */
int spin_nicmem_write(spin_nic_addr_t addr, void *data, size_t size, void *user_ptr);

/* Reads `size` bytes at address `addr` of the card into `data` while the simulation runs; the callback of
 * pspinsim_cb_set_pcie_mst_read_completion then gets `user_ptr`. `data` belongs to the simulation until then. */
int spin_nicmem_read(spin_nic_addr_t addr, void *data, size_t size, void *user_ptr);

/* Finds a function in the ELF file `binfile`. For an unknown name, `handler_addr` is unchanged, and the call
 * succeeds. */
int spin_find_handler_by_name(const char *binfile, const char *handler_name, spin_nic_addr_t *handler_addr,
                              size_t *handler_size);

#ifdef __cplusplus
}
#endif

#endif
