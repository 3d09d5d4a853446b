# SPDX-License-Identifier: Apache-2.0
# Shared parts of these folders' Makefiles: options of a build, and the same handlers for this computer.
#
#   DEFINITIONS   -D… for handlers and driver, documented on the handlers' pages
#   SPIN_HPU      rv32imac, or rv32imac-corev with the CORE-V extensions
#   make host     host_NAME: the handlers on the cores of this computer (../host)

HOST_COMPILE = gcc -std=gnu11 -O3 -march=native -rdynamic -pthread -I../host -I../common -I../generic_driver \
    -I"$(PSPIN_RT)/runtime/include" -I"$(PSPIN_HW)/verilator_model/include" $(DEFINITIONS)
HOST_SOURCES = $(SPIN_APP_SRCS) driver/driver.c ../host/measure.c
CASE_HEADERS = $(wildcard *.h) ../common/case.h ../common/card.h

.PHONY: host

# Other options cause a rebuild.
build/options: FORCE
	@mkdir -p build
	@echo '$(SPIN_HPU) $(DEFINITIONS)' | cmp -s - $@ || echo '$(SPIN_HPU) $(DEFINITIONS)' > $@

FORCE:

build/$(SPIN_APP_NAME) sim_$(SPIN_APP_NAME) sim_$(SPIN_APP_NAME)_debug: build/options $(CASE_HEADERS)

host: host_$(SPIN_APP_NAME)

host_$(SPIN_APP_NAME): $(HOST_SOURCES) $(CASE_HEADERS) build/options ../host/handler.h
	$(HOST_COMPILE) $(HOST_SOURCES) -ldl -o $@

clean::
	rm -f host_$(SPIN_APP_NAME)
