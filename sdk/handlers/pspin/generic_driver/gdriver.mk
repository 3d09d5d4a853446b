# SPDX-License-Identifier: Apache-2.0
# Build of a program's host side with the generic driver. The program's Makefile includes this file after
# $(PSPIN_RT)/rules/spin-handlers.mk; its own part is driver/driver.c.
#
#   SPIN_DRIVER_CFLAGS, SPIN_DRIVER_LDFLAGS   flags for the driver

SPIN_DRIVER_CC ?= gcc

GDRIVER_SOURCES = driver/driver.c ../generic_driver/gdriver.c
GDRIVER_COMPILE = $(SPIN_DRIVER_CC) -std=c99 -O2 -g -I../generic_driver -I"$(PSPIN_RT)/runtime/include" \
    -I"$(PSPIN_HW)/verilator_model/include" $(SPIN_DRIVER_CFLAGS) $(GDRIVER_SOURCES) -L"$(PSPIN_HW)/verilator_model/lib"

all:: deploy driver driver_debug

driver: sim_$(SPIN_APP_NAME)
driver_debug: sim_$(SPIN_APP_NAME)_debug

sim_$(SPIN_APP_NAME): $(GDRIVER_SOURCES) ../generic_driver/gdriver.h
	$(GDRIVER_COMPILE) -lpspin $(SPIN_DRIVER_LDFLAGS) -o $@

sim_$(SPIN_APP_NAME)_debug: $(GDRIVER_SOURCES) ../generic_driver/gdriver.h
	$(GDRIVER_COMPILE) -lpspin_debug $(SPIN_DRIVER_LDFLAGS) -o $@

clean::
	rm -f sim_$(SPIN_APP_NAME) sim_$(SPIN_APP_NAME)_debug transcript $(SPIN_APP_NAME).pftrace waves.pftrace
