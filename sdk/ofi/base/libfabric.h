/* SPDX-License-Identifier: Apache-2.0 */
/* Binary interface of libfabric, as far as a provider of reliable datagram endpoints needs it.
 *
 * Names, numbers and layouts are those of the libfabric programming interface, 1.17 to 2.5: fabric(7), fi_getinfo(3),
 * fi_endpoint(3), fi_cq(3) and the pages that they name. The provider so builds without libfabric's headers; a test
 * compares these declarations with installed headers. From version to version, structures only grow at their ends. Each
 * table of operations begins with its size, so libfabric never calls an operation that a table leaves out. */
#ifndef OFI_LIBFABRIC_H
#define OFI_LIBFABRIC_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define FI_VERSION(major, minor) (((uint32_t)(major) << 16) | (minor))

/* ---- Capabilities, flags and modes ------------------------------------------------------------------------------ */

#define FI_BIT(n) (1ull << (n))

#define FI_MSG FI_BIT(1)
#define FI_RMA FI_BIT(2)
#define FI_TAGGED FI_BIT(3)
#define FI_ATOMIC FI_BIT(4)
#define FI_READ FI_BIT(8)
#define FI_WRITE FI_BIT(9)
#define FI_RECV FI_BIT(10)
#define FI_SEND FI_BIT(11)
#define FI_TRANSMIT FI_SEND
#define FI_REMOTE_READ FI_BIT(12)
#define FI_REMOTE_WRITE FI_BIT(13)
#define FI_MULTI_RECV FI_BIT(16)
#define FI_REMOTE_CQ_DATA FI_BIT(17)
#define FI_MORE FI_BIT(18)
#define FI_PEEK FI_BIT(19)
#define FI_TRIGGER FI_BIT(20)
#define FI_FENCE FI_BIT(21)
#define FI_COMPLETION FI_BIT(24)
#define FI_INJECT FI_BIT(25)
#define FI_INJECT_COMPLETE FI_BIT(26)
#define FI_TRANSMIT_COMPLETE FI_BIT(27)
#define FI_DELIVERY_COMPLETE FI_BIT(28)
#define FI_MATCH_COMPLETE FI_BIT(31)
#define FI_LOCAL_COMM FI_BIT(51)
#define FI_REMOTE_COMM FI_BIT(52)
#define FI_NUMERICHOST FI_BIT(55)
#define FI_SOURCE FI_BIT(57)
#define FI_DIRECTED_RECV FI_BIT(59)
/* Flags of receives */
#define FI_CLAIM FI_BIT(59)
#define FI_DISCARD FI_BIT(58)
/* Flag of fi_av_insert: its context is an array with an error number for each address */
#define FI_SYNC_ERR FI_BIT(58)
/* Flags of fi_query_atomic */
#define FI_FETCH_ATOMIC FI_BIT(58)
#define FI_COMPARE_ATOMIC FI_BIT(59)
/* Flag of fi_ep_bind */
#define FI_SELECTIVE_COMPLETION FI_BIT(59)

#define FI_ADDR_UNSPEC UINT64_MAX
#define FI_ADDR_NOTAVAIL UINT64_MAX
#define FI_KEY_NOTAVAIL UINT64_MAX
#define FI_PROV_SPECIFIC (1u << 31)
enum { FI_FORMAT_UNSPEC = 0 };
typedef uint64_t fi_addr_t;

enum fi_av_type { FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE };

enum { FI_MR_UNSPEC, FI_MR_BASIC, FI_MR_SCALABLE };
#define FI_MR_VIRT_ADDR (1 << 4)
#define FI_MR_ALLOCATED (1 << 5)
#define FI_MR_PROV_KEY (1 << 6)

enum fi_progress { FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL };
enum fi_threading {
    FI_THREAD_UNSPEC,
    FI_THREAD_SAFE,
    FI_THREAD_FID,
    FI_THREAD_DOMAIN,
    FI_THREAD_COMPLETION,
    FI_THREAD_ENDPOINT
};
enum fi_resource_mgmt { FI_RM_UNSPEC, FI_RM_DISABLED, FI_RM_ENABLED };
enum fi_ep_type { FI_EP_UNSPEC, FI_EP_MSG, FI_EP_DGRAM, FI_EP_RDM };

#define FI_ORDER_NONE 0ull
#define FI_ORDER_STRICT 0x1ffull
#define FI_ORDER_DATA FI_BIT(16)
#define FI_ORDER_RMA_RAR FI_BIT(32)
#define FI_ORDER_RMA_RAW FI_BIT(33)
#define FI_ORDER_RMA_WAR FI_BIT(34)
#define FI_ORDER_RMA_WAW FI_BIT(35)
#define FI_ORDER_ATOMIC_RAR FI_BIT(36)
#define FI_ORDER_ATOMIC_RAW FI_BIT(37)
#define FI_ORDER_ATOMIC_WAR FI_BIT(38)
#define FI_ORDER_ATOMIC_WAW FI_BIT(39)

/* ---- Errors besides those of <errno.h> --------------------------------------------------------------------------- */

enum {
    FI_EOTHER = 256,
    FI_ETOOSMALL = 257,
    FI_EOPBADSTATE = 258,
    FI_EAVAIL = 259,
    FI_EBADFLAGS = 260,
    FI_ENOEQ = 261,
    FI_EDOMAIN = 262,
    FI_ENOCQ = 263,
    FI_ETRUNC = 265,
    FI_ENOKEY = 266,
    FI_ENOAV = 267,
    FI_EOVERRUN = 268
};

/* ---- Results of fi_getinfo --------------------------------------------------------------------------------------- */

struct fid;
struct fid_fabric;
struct fid_domain;

struct fi_tx_attr {
    uint64_t caps;
    uint64_t mode;
    uint64_t op_flags;
    uint64_t msg_order;
    uint64_t comp_order;
    size_t inject_size;
    size_t size;
    size_t iov_limit;
    size_t rma_iov_limit;
    uint32_t tclass;
};

struct fi_rx_attr {
    uint64_t caps;
    uint64_t mode;
    uint64_t op_flags;
    uint64_t msg_order;
    uint64_t comp_order;
    size_t total_buffered_recv;
    size_t size;
    size_t iov_limit;
};

struct fi_ep_attr {
    enum fi_ep_type type;
    uint32_t protocol;
    uint32_t protocol_version;
    size_t max_msg_size;
    size_t msg_prefix_size;
    size_t max_order_raw_size;
    size_t max_order_war_size;
    size_t max_order_waw_size;
    uint64_t mem_tag_format;
    size_t tx_ctx_cnt;
    size_t rx_ctx_cnt;
    size_t auth_key_size;
    uint8_t *auth_key;
};

struct fi_domain_attr {
    struct fid_domain *domain;
    char *name;
    enum fi_threading threading;
    enum fi_progress control_progress;
    enum fi_progress data_progress;
    enum fi_resource_mgmt resource_mgmt;
    enum fi_av_type av_type;
    int mr_mode;
    size_t mr_key_size;
    size_t cq_data_size;
    size_t cq_cnt;
    size_t ep_cnt;
    size_t tx_ctx_cnt;
    size_t rx_ctx_cnt;
    size_t max_ep_tx_ctx;
    size_t max_ep_rx_ctx;
    size_t max_ep_stx_ctx;
    size_t max_ep_srx_ctx;
    size_t cntr_cnt;
    size_t mr_iov_limit;
    uint64_t caps;
    uint64_t mode;
    uint8_t *auth_key;
    size_t auth_key_size;
    size_t max_err_data;
    size_t mr_cnt;
    uint32_t tclass;
};

struct fi_fabric_attr {
    struct fid_fabric *fabric;
    char *name;
    char *prov_name;
    uint32_t prov_version;
    uint32_t api_version;
};

struct fid_nic;
struct fi_info {
    struct fi_info *next;
    uint64_t caps;
    uint64_t mode;
    uint32_t addr_format;
    size_t src_addrlen;
    size_t dest_addrlen;
    void *src_addr;
    void *dest_addr;
    struct fid *handle;
    struct fi_tx_attr *tx_attr;
    struct fi_rx_attr *rx_attr;
    struct fi_ep_attr *ep_attr;
    struct fi_domain_attr *domain_attr;
    struct fi_fabric_attr *fabric_attr;
    struct fid_nic *nic;
};

struct fi_context {
    void *internal[4];
};

struct fi_provider {
    uint32_t version;
    uint32_t fi_version;
    struct fi_context context;
    const char *name;
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info);
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
    void (*cleanup)(void);
};

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

enum {
    FI_CLASS_UNSPEC,
    FI_CLASS_FABRIC,
    FI_CLASS_DOMAIN,
    FI_CLASS_EP,
    FI_CLASS_SEP,
    FI_CLASS_RX_CTX,
    FI_CLASS_SRX_CTX,
    FI_CLASS_TX_CTX,
    FI_CLASS_STX_CTX,
    FI_CLASS_PEP,
    FI_CLASS_INTERFACE,
    FI_CLASS_AV,
    FI_CLASS_MR,
    FI_CLASS_EQ,
    FI_CLASS_CQ,
    FI_CLASS_CNTR
};

/* Commands of control */
enum { FI_GETOPSFLAG = 2, FI_SETOPSFLAG = 3, FI_GETWAIT = 5, FI_ENABLE = 6 };

struct fi_ops {
    size_t size;
    int (*close)(struct fid *fid);
    int (*bind)(struct fid *fid, struct fid *other, uint64_t flags);
    int (*control)(struct fid *fid, int command, void *arg);
    int (*ops_open)(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
};

struct fid {
    size_t fclass;
    void *context;
    struct fi_ops *ops;
};

struct fid_eq;
struct fid_pep;
struct fid_wait;
struct fi_eq_attr;
struct fi_wait_attr;
struct fi_ops_fabric {
    size_t size;
    int (*domain)(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);
    int (*passive_ep)(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);
    int (*eq_open)(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);
    int (*wait_open)(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set);
    int (*trywait)(struct fid_fabric *fabric, struct fid **fids, int count);
};

struct fid_fabric {
    struct fid fid;
    struct fi_ops_fabric *ops;
    uint32_t api_version;
};

/* ---- Event queues, completion queues, counters ------------------------------------------------------------------- */

enum fi_wait_obj { FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_SET, FI_WAIT_FD };

struct fi_eq_attr {
    size_t size;
    uint64_t flags;
    enum fi_wait_obj wait_obj;
    int signaling_vector;
    struct fid_wait *wait_set;
};

struct fi_eq_err_entry;
struct fi_ops_eq {
    size_t size;
    ssize_t (*read)(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags);
    ssize_t (*readerr)(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags);
    ssize_t (*write)(struct fid_eq *eq, uint32_t event, const void *buf, size_t len, uint64_t flags);
    ssize_t (*sread)(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout, uint64_t flags);
    const char *(*strerror)(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf, size_t len);
};

struct fid_eq {
    struct fid fid;
    struct fi_ops_eq *ops;
};

enum fi_cq_format {
    FI_CQ_FORMAT_UNSPEC,
    FI_CQ_FORMAT_CONTEXT,
    FI_CQ_FORMAT_MSG,
    FI_CQ_FORMAT_DATA,
    FI_CQ_FORMAT_TAGGED
};

/* Entries of the other formats are beginnings of this one. */
struct fi_cq_tagged_entry {
    void *op_context;
    uint64_t flags;
    size_t len;
    void *buf;
    uint64_t data;
    uint64_t tag;
};

struct fi_cq_err_entry {
    void *op_context;
    uint64_t flags;
    size_t len;
    void *buf;
    uint64_t data;
    uint64_t tag;
    size_t olen;
    int err;
    int prov_errno;
    void *err_data;
    size_t err_data_size;
};

enum fi_cq_wait_cond { FI_CQ_COND_NONE, FI_CQ_COND_THRESHOLD };

struct fi_cq_attr {
    size_t size;
    uint64_t flags;
    enum fi_cq_format format;
    enum fi_wait_obj wait_obj;
    int signaling_vector;
    enum fi_cq_wait_cond wait_cond;
    struct fid_wait *wait_set;
};

struct fid_cq;
struct fi_ops_cq {
    size_t size;
    ssize_t (*read)(struct fid_cq *cq, void *buf, size_t count);
    ssize_t (*readfrom)(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr);
    ssize_t (*readerr)(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags);
    ssize_t (*sread)(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout);
    ssize_t (*sreadfrom)(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr, const void *cond,
                         int timeout);
    int (*signal)(struct fid_cq *cq);
    const char *(*strerror)(struct fid_cq *cq, int prov_errno, const void *err_data, char *buf, size_t len);
};

struct fid_cq {
    struct fid fid;
    struct fi_ops_cq *ops;
};

enum fi_cntr_events { FI_CNTR_EVENTS_COMP };

struct fi_cntr_attr {
    enum fi_cntr_events events;
    enum fi_wait_obj wait_obj;
    struct fid_wait *wait_set;
    uint64_t flags;
};

struct fid_cntr;
struct fi_ops_cntr {
    size_t size;
    uint64_t (*read)(struct fid_cntr *cntr);
    uint64_t (*readerr)(struct fid_cntr *cntr);
    int (*add)(struct fid_cntr *cntr, uint64_t value);
    int (*set)(struct fid_cntr *cntr, uint64_t value);
    int (*wait)(struct fid_cntr *cntr, uint64_t threshold, int timeout);
    int (*adderr)(struct fid_cntr *cntr, uint64_t value);
    int (*seterr)(struct fid_cntr *cntr, uint64_t value);
};

struct fid_cntr {
    struct fid fid;
    struct fi_ops_cntr *ops;
};

/* ---- Address vectors and memory regions -------------------------------------------------------------------------- */

struct fi_av_attr {
    enum fi_av_type type;
    int rx_ctx_bits;
    size_t count;
    size_t ep_per_node;
    const char *name;
    void *map_addr;
    uint64_t flags;
};

struct fid_av;
struct fi_ops_av {
    size_t size;
    int (*insert)(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr, uint64_t flags, void *context);
    int (*insertsvc)(struct fid_av *av, const char *node, const char *service, fi_addr_t *fi_addr, uint64_t flags,
                     void *context);
    int (*insertsym)(struct fid_av *av, const char *node, size_t nodecnt, const char *service, size_t svccnt,
                     fi_addr_t *fi_addr, uint64_t flags, void *context);
    int (*remove)(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags);
    int (*lookup)(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen);
    const char *(*straddr)(struct fid_av *av, const void *addr, char *buf, size_t *len);
};

struct fid_av {
    struct fid fid;
    struct fi_ops_av *ops;
};

struct fid_mr {
    struct fid fid;
    void *mem_desc;
    uint64_t key;
};

/* Beginning of the structure. Its further fields describe the memory of accelerators. */
struct fi_mr_attr {
    const struct iovec *mr_iov;
    size_t iov_count;
    uint64_t access;
    uint64_t offset;
    uint64_t requested_key;
    void *context;
};

struct fi_ops_mr {
    size_t size;
    int (*reg)(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t requested_key,
               uint64_t flags, struct fid_mr **mr, void *context);
    int (*regv)(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
                uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context);
    int (*regattr)(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr);
};

/* ---- Domains ----------------------------------------------------------------------------------------------------- */

enum fi_datatype {
    FI_INT8,
    FI_UINT8,
    FI_INT16,
    FI_UINT16,
    FI_INT32,
    FI_UINT32,
    FI_INT64,
    FI_UINT64,
    FI_FLOAT,
    FI_DOUBLE,
    FI_FLOAT_COMPLEX,
    FI_DOUBLE_COMPLEX,
    FI_LONG_DOUBLE,
    FI_LONG_DOUBLE_COMPLEX,
    FI_DATATYPE_LAST
};

enum fi_op {
    FI_MIN,
    FI_MAX,
    FI_SUM,
    FI_PROD,
    FI_LOR,
    FI_LAND,
    FI_BOR,
    FI_BAND,
    FI_LXOR,
    FI_BXOR,
    FI_ATOMIC_READ,
    FI_ATOMIC_WRITE,
    FI_CSWAP,
    FI_CSWAP_NE,
    FI_CSWAP_LE,
    FI_CSWAP_LT,
    FI_CSWAP_GE,
    FI_CSWAP_GT,
    FI_MSWAP
};

struct fi_atomic_attr {
    size_t count;
    size_t size;
};

struct fid_ep;
struct fid_poll;
struct fid_stx;
struct fi_poll_attr;
struct fi_ops_domain {
    size_t size;
    int (*av_open)(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
    int (*cq_open)(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
    int (*endpoint)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
    int (*scalable_ep)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context);
    int (*cntr_open)(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);
    int (*poll_open)(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set);
    int (*stx_ctx)(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context);
    int (*srx_ctx)(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep, void *context);
    int (*query_atomic)(struct fid_domain *domain, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr,
                        uint64_t flags);
};

struct fid_domain {
    struct fid fid;
    struct fi_ops_domain *ops;
    struct fi_ops_mr *mr;
};

/* ---- Endpoints --------------------------------------------------------------------------------------------------- */

struct fi_msg {
    const struct iovec *msg_iov;
    void **desc;
    size_t iov_count;
    fi_addr_t addr;
    void *context;
    uint64_t data;
};

struct fi_msg_tagged {
    const struct iovec *msg_iov;
    void **desc;
    size_t iov_count;
    fi_addr_t addr;
    uint64_t tag;
    uint64_t ignore;
    void *context;
    uint64_t data;
};

struct fi_rma_iov {
    uint64_t addr;
    size_t len;
    uint64_t key;
};

struct fi_msg_rma {
    const struct iovec *msg_iov;
    void **desc;
    size_t iov_count;
    fi_addr_t addr;
    const struct fi_rma_iov *rma_iov;
    size_t rma_iov_count;
    void *context;
    uint64_t data;
};

/* Memory in elements, not bytes */
struct fi_ioc {
    void *addr;
    size_t count;
};

struct fi_rma_ioc {
    uint64_t addr;
    size_t count;
    uint64_t key;
};

struct fi_msg_atomic {
    const struct fi_ioc *msg_iov;
    void **desc;
    size_t iov_count;
    fi_addr_t addr;
    const struct fi_rma_ioc *rma_iov;
    size_t rma_iov_count;
    enum fi_datatype datatype;
    enum fi_op op;
    void *context;
    uint64_t data;
};

enum { FI_OPT_ENDPOINT };
enum { FI_OPT_MIN_MULTI_RECV };

struct fi_ops_ep {
    size_t size;
    ssize_t (*cancel)(struct fid *fid, void *context);
    int (*getopt)(struct fid *fid, int level, int name, void *value, size_t *length);
    int (*setopt)(struct fid *fid, int level, int name, const void *value, size_t length);
    int (*tx_ctx)(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **ep, void *context);
    int (*rx_ctx)(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **ep, void *context);
    ssize_t (*rx_size_left)(struct fid_ep *ep);
    ssize_t (*tx_size_left)(struct fid_ep *ep);
};

struct fi_ops_cm {
    size_t size;
    int (*setname)(struct fid *fid, void *addr, size_t length);
    int (*getname)(struct fid *fid, void *addr, size_t *length);
};

struct fi_ops_msg {
    size_t size;
    ssize_t (*recv)(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, void *context);
    ssize_t (*recvv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
                     void *context);
    ssize_t (*recvmsg)(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
    ssize_t (*send)(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest, void *context);
    ssize_t (*sendv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
                     void *context);
    ssize_t (*sendmsg)(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
    ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest);
    ssize_t (*senddata)(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest,
                        void *context);
    ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest);
};

struct fi_ops_tagged {
    size_t size;
    ssize_t (*recv)(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag, uint64_t ignore,
                    void *context);
    ssize_t (*recvv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src, uint64_t tag,
                     uint64_t ignore, void *context);
    ssize_t (*recvmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
    ssize_t (*send)(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest, uint64_t tag,
                    void *context);
    ssize_t (*sendv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
                     uint64_t tag, void *context);
    ssize_t (*sendmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
    ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, uint64_t tag);
    ssize_t (*senddata)(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest,
                        uint64_t tag, void *context);
    ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest, uint64_t tag);
};

struct fi_ops_rma {
    size_t size;
    ssize_t (*read)(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t addr, uint64_t key,
                    void *context);
    ssize_t (*readv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
                     uint64_t addr, uint64_t key, void *context);
    ssize_t (*readmsg)(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
    ssize_t (*write)(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest, uint64_t addr,
                     uint64_t key, void *context);
    ssize_t (*writev)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
                      uint64_t addr, uint64_t key, void *context);
    ssize_t (*writemsg)(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
    ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, uint64_t addr, uint64_t key);
    ssize_t (*writedata)(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest,
                         uint64_t addr, uint64_t key, void *context);
    ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest, uint64_t addr,
                          uint64_t key);
};

struct fi_ops_atomic {
    size_t size;
    ssize_t (*write)(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t dest, uint64_t addr,
                     uint64_t key, enum fi_datatype type, enum fi_op op, void *context);
    ssize_t (*writev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t dest,
                      uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context);
    ssize_t (*writemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags);
    ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
                      enum fi_datatype type, enum fi_op op);
    ssize_t (*readwrite)(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc,
                         fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op,
                         void *context);
    ssize_t (*readwritev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
                          struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest,
                          uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context);
    ssize_t (*readwritemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
                            void **result_desc, size_t result_count, uint64_t flags);
    ssize_t (*compwrite)(struct fid_ep *ep, const void *buf, size_t count, void *desc, const void *compare,
                         void *compare_desc, void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
                         uint64_t key, enum fi_datatype type, enum fi_op op, void *context);
    ssize_t (*compwritev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
                          const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
                          struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest,
                          uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context);
    ssize_t (*compwritemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_ioc *comparev,
                            void **compare_desc, size_t compare_count, struct fi_ioc *resultv, void **result_desc,
                            size_t result_count, uint64_t flags);
    int (*writevalid)(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count);
    int (*readwritevalid)(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count);
    int (*compwritevalid)(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count);
};

struct fi_ops_collective;
struct fid_ep {
    struct fid fid;
    struct fi_ops_ep *ops;
    struct fi_ops_cm *cm;
    struct fi_ops_msg *msg;
    struct fi_ops_rma *rma;
    struct fi_ops_tagged *tagged;
    struct fi_ops_atomic *atomic;
    struct fi_ops_collective *collective;
};

#endif
