/* SPDX-License-Identifier: Apache-2.0 */
/* Simulation of a card, for drivers: one in a process. All calls must come from one thread, also within callbacks. They
 * return SPIN_SUCCESS, or SPIN_ERR after a message on standard error. Times are picoseconds of simulated time. */
#ifndef PSPINSIM_H
#define PSPINSIM_H

#include <stddef.h>
#include <stdint.h>

#include "spin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parameters of the published simulation. The machine file overrides these sizes and rates. */
typedef struct ni_conf {
    uint32_t axi_aw_buffer;
    uint32_t axi_w_buffer;
    uint32_t axi_b_buffer;
} ni_conf_t;

typedef struct no_conf {
    uint32_t axi_ar_buffer;
    uint32_t axi_r_buffer;
    double network_G; /* ns per byte; 0 is no limit */
    uint32_t max_pkt_size;
    uint32_t max_network_queue_len;
} no_conf_t;

typedef struct pcie_slv_conf {
    uint32_t axi_aw_buffer;
    uint32_t axi_w_buffer;
    uint32_t axi_ar_buffer;
    uint32_t axi_b_buffer;
    uint32_t axi_r_buffer;
    uint32_t pcie_L; /* cycles */
    double pcie_G;   /* ns per byte */
} pcie_slv_conf_t;

typedef struct pspin_conf {
    const char *slm_files_path; /* folder into which `make deploy` wrote the program */
    ni_conf_t ni_conf;
    no_conf_t no_conf;
    pcie_slv_conf_t pcie_slv_conf;
} pspin_conf_t;

typedef void (*pkt_out_cb_t)(uint8_t *data, size_t len);
typedef void (*pkt_feedback_cb_t)(uint64_t user_ptr, uint64_t nic_arrival_time, uint64_t pspin_arrival_time,
                                  uint64_t feedback_time);
typedef void (*pcie_slv_write_cb_t)(uint64_t addr, uint8_t *data, size_t len);
typedef void (*pcie_slv_read_cb_t)(uint64_t addr, uint8_t *data, size_t len);
typedef void (*pcie_mst_write_cb_t)(void *user_ptr);
typedef void (*pcie_mst_read_cb_t)(void *user_ptr);

/* Fills in the values of the published simulation. */
int pspinsim_default_conf(pspin_conf_t *conf);

/* Starts the card and loads the program. The arguments are those of the driver, in any form; without `conf`,
 * pspinsim_default_conf applies. */
int pspinsim_init(int argc, char **argv, pspin_conf_t *conf);

/* Runs until all packets are fed back and pspinsim_packet_eos was called, or no event remains, which is an error. */
int pspinsim_run(void);

/* Runs one cycle. Sets `done` to 1 at the end, else to 0. */
int pspinsim_run_tick(uint8_t *done);

/* Prints statistics, and frees all. */
int pspinsim_fini(void);

/* Returns the simulated time. */
uint64_t pspinsim_time(void);

/* Adds a packet of `pkt_len` bytes behind the earlier ones; the next one arrives `wait_cycles` later, at least one.
 * `pkt_l1_len` bytes are copied to L1. Data and context are copied during the call. */
int pspinsim_packet_add(spin_ec_t *ec, uint32_t msgid, uint8_t *pkt_data, size_t pkt_len, size_t pkt_l1_len,
                        uint8_t eom, uint32_t wait_cycles, uint64_t user_ptr);

/* Adds packets of a trace: one line of 13 numbers for each in `pkt_file_path`, and their bytes in `data_file_path`. */
int pspinsim_packet_trace_read(const char *pkt_file_path, const char *data_file_path);

/* Sets the priority of message queue `fmq_id` to `prio`: in its turn, it gives up to `prio` + 1 tasks before the next
 * queue that has some. Initially all queues have priority 0. The queue of a message is its number modulo the number of
 * queues. A queue that does not exist, or a priority with SPINKIT_PSPIN_ENGINE=rtl, is an error of the next run. */
void pspinsim_set_fmq_prio(uint32_t fmq_id, uint8_t prio);

/* Announces the end of packets. */
int pspinsim_packet_eos(void);

/* Callbacks: a packet left; a packet is done; the card writes to or reads from the host, in parts of at most 64 bytes;
 * a spin_nicmem_write or spin_nicmem_read is done. The data belongs to the simulation. */
int pspinsim_cb_set_pkt_out(pkt_out_cb_t cb);
int pspinsim_cb_set_pkt_feedback(pkt_feedback_cb_t cb);
int pspinsim_cb_set_pcie_slv_write(pcie_slv_write_cb_t cb);
int pspinsim_cb_set_pcie_slv_read(pcie_slv_read_cb_t cb);
int pspinsim_cb_set_pcie_mst_write_completion(pcie_mst_write_cb_t cb);
int pspinsim_cb_set_pcie_mst_read_completion(pcie_mst_read_cb_t cb);

#ifdef __cplusplus
}
#endif

#endif
