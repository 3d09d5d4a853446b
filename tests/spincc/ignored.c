/* Ignores a return code: the compiler warns. A cast suppresses the warning. */
#include <spin.h>

int main(void) {
    PtlInit();
    (void)PtlInit();
    PtlFini();
    return 0;
}
