# SPDX-License-Identifier: Apache-2.0
# Build of a program's card side. The program's Makefile sets SPIN_APP_NAME, SPIN_APP_SRCS, SPIN_CFLAGS and SPIN_LDFLAGS
# before it includes this file. A Makefile whose driver has another name than its handlers sets SPIN_KERNEL_NAME and
# SPIN_KERNEL_SRCS for these, and SPIN_APP_NAME for the driver. Rules with two colons may be extended.
#
#   SPIN_HPU         the kind of the cores: rv32imac, or rv32imac-corev with the CORE-V extensions
#   SPIN_INTERFACE   pspin, or fpspin: headers with the names of the network card FPsPIN

SPIN_HPU ?= rv32imac
SPIN_INTERFACE ?= pspin
PSPIN_CC ?= $(PSPIN_RT)/bin/pspin-cc
SPIN_KERNEL_NAME ?= $(SPIN_APP_NAME)
SPIN_KERNEL_SRCS ?= $(SPIN_APP_SRCS)
SPIN_APP_NAME ?= $(SPIN_KERNEL_NAME)
SPIN_MACROS = $(if $(filter fpspin,$(SPIN_INTERFACE)),-DFPSPIN)

# A folder of the program may have one of these names.
.PHONY: all deploy clean driver driver_debug run trace info stats

all::

# The generic driver of the published examples makes its option parser.
ifneq ($(wildcard ../generic_driver/gdriver_args.ggo),)
ifeq ($(shell command -v gengetopt),)
$(warning ../generic_driver needs gengetopt: apt-get install gengetopt)
endif
endif

deploy: build/slm_files/program.elf

build/$(SPIN_KERNEL_NAME): $(SPIN_KERNEL_SRCS) $(wildcard handlers/*.h)
	@mkdir -p build
	"$(PSPIN_CC)" --hpu $(SPIN_HPU) $(SPIN_MACROS) $(SPIN_CFLAGS) $(SPIN_KERNEL_SRCS) $(SPIN_LDFLAGS) -o $@

# The simulation loads the contents of this folder, which drivers pass to it.
build/slm_files/program.elf: build/$(SPIN_KERNEL_NAME)
	@mkdir -p build/slm_files
	cp $< $@

clean::
	rm -rf build

# Commands that run the driver build it first. Other makefiles of the program may define the run.
SPIN_RUNS = $(shell grep -ls '^run::' $(filter-out %spin-handlers.mk,$(MAKEFILE_LIST)))

run:: deploy driver
	$(if $(SPIN_RUNS),,./sim_$(SPIN_APP_NAME) > transcript; status=$$?; cat transcript; exit $$status)

# A timeline for ui.perfetto.dev
trace:: deploy driver
	SPINKIT_PSPIN_TRACE=$(SPIN_APP_NAME).pftrace ./sim_$(SPIN_APP_NAME)

# Latencies, cycles of handlers, commands and memory accesses
info:: deploy driver
	SPINKIT_PSPIN_JSON=build/info.json ./sim_$(SPIN_APP_NAME) > /dev/null
	cat build/info.json

# The statistics of the last `make run`
stats::
	@test -f transcript || { echo "there is no transcript: make run" >&2; exit 1; }
	@sed -n '/###### Statistics/,$$p' transcript
