/* Does not look at a return code: the compiler warns. A cast says that it is meant. */
#include <spin.h>

int main(void) {
    PtlInit();
    (void)PtlInit();
    PtlFini();
    return 0;
}
