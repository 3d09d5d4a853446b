/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions shared by handlers and host. */
#ifndef HOST_DIRECT_H
#define HOST_DIRECT_H

/* Offset of a packet's data in host memory, by its IP identification. */
#define HOST_DIRECT_PLACE(identification) ((identification) * 8)

#endif
