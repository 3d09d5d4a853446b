/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point of the library (fi_provider(7)). */
#define _GNU_SOURCE /* dladdr */

#include "fi.h"

#include <dlfcn.h>

static void cleanup(void) {}

static struct fi_provider provider = {
    .version = SPIN_VERSION,
    .fi_version = FI_VERSION(1, 17),
    .name = SPIN_NAME,
    .getinfo = spin_ofi_getinfo,
    .fabric = spin_ofi_fabric_open,
    .cleanup = cleanup,
};

/* Returns the version of the library that holds `caller`. It refuses providers of an older interface than the program
 * requests, and may refuse newer ones. The part of the interface that this provider uses has not changed since 1.17.
 * */
static uint32_t library_version(void *caller) {
    Dl_info library;
    if (!dladdr(caller, &library) || !library.dli_fname)
        return provider.fi_version;
    void *handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    uint32_t (*version)(void) = handle ? (uint32_t (*)(void))dlsym(handle, "fi_version") : NULL;
    uint32_t result = version ? version() : provider.fi_version;
    if (handle)
        dlclose(handle);
    return result;
}

/* libfabric calls it after loading the library from FI_PROVIDER_PATH. */
__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);
struct fi_provider *fi_prov_ini(void) {
    provider.fi_version = library_version(__builtin_return_address(0));
    return &provider;
}
