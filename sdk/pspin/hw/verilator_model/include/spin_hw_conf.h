/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and addresses of the unit that drivers use at compile time. */
#ifndef SPIN_HW_CONF_H
#define SPIN_HW_CONF_H

#define NUM_CLUSTERS 4
#define NUM_CORES 8
/* Bits of the message numbers in the published design; here, numbers have 32. */
#define C_MSGID_WIDTH 10

/* L1 of a cluster: runtime, packets, scratchpads. Scratchpad addresses in spin_ec_t are relative to the start of the
 * scratchpads. */
#define L1_CLUSTER_BASE 0x10000000
#define L1_CLUSTER_MEM_SIZE 0x00400000
#define L1_CLUSTER_ACTUAL_MEM_SIZE 0x00100000
#define L1_RUNTIME_OFFSET 0x400
#define L1_RUNTIME_SIZE 0x4000
#define L1_PKT_BUFF_OFFSET (L1_RUNTIME_OFFSET + L1_RUNTIME_SIZE)
#define L1_PKT_BUFF_SIZE 0x8000
#define L1_SCRATCHPAD_OFFSET (L1_PKT_BUFF_OFFSET + L1_PKT_BUFF_SIZE)
#define L1_SCRATCHPAD_SIZE (L1_CLUSTER_ACTUAL_MEM_SIZE - L1_SCRATCHPAD_OFFSET)

#define L2_PKT_BUFF_START 0x1c400000
#define L2_PKT_BUFF_SIZE (4 * 1024 * 1024)

/* First host address reachable by the card. */
#define PCIE_START_ADDR ((uint64_t)1 << 60)

#endif
