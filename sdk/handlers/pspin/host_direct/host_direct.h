/* What the handlers and the host agree on. */
#ifndef HOST_DIRECT_H
#define HOST_DIRECT_H

/* Where the data of a packet is in host memory, by its IP identification. */
#define HOST_DIRECT_PLACE(identification) ((identification) * 8)

#endif
