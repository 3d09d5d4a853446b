/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the unit that programs use at compile time. `task_t` has room for four clusters, whatever the machine
 * has. */
#ifndef SPIN_CONF_H
#define SPIN_CONF_H

#ifndef NB_CORES
#define NB_CORES 8
#endif
#ifndef NB_CLUSTERS
#ifdef FPSPIN
#define NB_CLUSTERS 2
#else
#define NB_CLUSTERS 4
#endif
#endif
#ifndef PKT_SIZE
#define PKT_SIZE 1024
#endif

#define CORE_COUNT (NB_CORES * NB_CLUSTERS)
#define NUM_CLUSTER_HPUS NB_CORES
/* Number of packets that the queue of the published design holds. */
#define PacketQueueLength 32

#endif
