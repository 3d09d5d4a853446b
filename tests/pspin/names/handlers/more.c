/* SPDX-License-Identifier: Apache-2.0 */
#include <handler.h>

int answer(void);

int answer(void) { return ANSWER; }
