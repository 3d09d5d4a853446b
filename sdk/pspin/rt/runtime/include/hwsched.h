/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the HPU driver, through which the runtime gets its tasks and handlers issue commands. Each HPU has its
 * own at the same addresses; all are words. A load may wait for its result. */
#ifndef HWSCHED_H
#define HWSCHED_H

#include <stdint.h>

#define HWSCHED_BASE 0x1B205000u

/* The task: a load of the function waits for one. `task_t` starts at HWSCHED_TASK. */
#define HWSCHED_HANDLER_FUN_ADDR (HWSCHED_BASE + 0x00u)
#define HWSCHED_HANDLER_FUN_SIZE (HWSCHED_BASE + 0x04u)
#define HWSCHED_TASK (HWSCHED_BASE + 0x08u)
/* An access ends the task. */
#define HWSCHED_DOORBELL (HWSCHED_BASE + 0x50u)
/* A store of a cause marks the task as failed; the doorbell still ends it. */
#define HWSCHED_ERROR (HWSCHED_BASE + 0x54u)

/* Commands: information and words first, then a load of CMD_ISSUE, which returns the command's number and waits while
 * four are in flight. A store of a number to CMD_WAIT waits for that command; after one to CMD_TEST, a load returns
 * whether it is done. */
#define CMD_ISSUE (HWSCHED_BASE + 0x80u)
#define CMD_WAIT (HWSCHED_BASE + 0x84u)
#define CMD_TEST (HWSCHED_BASE + 0x88u)
#define CMD_INFO (HWSCHED_BASE + 0x8Cu)
#define CMD_WORD0 (HWSCHED_BASE + 0x90u)
#define CMD_WORD1 (HWSCHED_BASE + 0x94u)
#define CMD_WORD2 (HWSCHED_BASE + 0x98u)
#define CMD_WORD3 (HWSCHED_BASE + 0x9Cu)
#define CMD_WORD4 (HWSCHED_BASE + 0xA0u)
#define CMD_WORD5 (HWSCHED_BASE + 0xA4u)
#define CMD_WORD6 (HWSCHED_BASE + 0xA8u)

/* Values of CMD_INFO: the kind of the command, and the flag for an event to the host on completion. */
#define CMD_INFO_HOST_DMA 0u
#define CMD_INFO_EVENT 1u
#define CMD_INFO_NIC 2u
#define CMD_INFO_HOST_DIRECT 4u

/* DMA engine of the cluster: addresses and size first, then a load of DMA_LAUNCH, which returns the number of the
 * transfer. Numbers of an HPU increase from 1; all transfers up to DMA_DONE are done. */
#define DMA_BASE (HWSCHED_BASE + 0x100u)
#define DMA_SOURCE (DMA_BASE + 0x00u)
#define DMA_DESTINATION (DMA_BASE + 0x08u)
#define DMA_BYTES (DMA_BASE + 0x10u)
#define DMA_LAUNCH (DMA_BASE + 0x18u)
#define DMA_DONE (DMA_BASE + 0x20u)

#ifdef SPIN_NATIVE
#include "native.h"
#define MMIO_READ(address) native_read(address)
#define MMIO_WRITE(address, value) native_write(address, (uint32_t)(value))
#else
#define MMIO_READ(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define MMIO_WRITE(address, value) (*(volatile uint32_t *)(uintptr_t)(address) = (uint32_t)(value))
#endif

#endif
