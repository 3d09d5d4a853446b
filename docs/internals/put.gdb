# Breakpoints of "Follow one put in a debugger" (put.md). Use: gdb -x docs/internals/put.gdb --args .venv/bin/spinrun -n 2 ./hello
set pagination off
set language rust
set breakpoint pending on


# 1. The first put: stop in the simulator, which has taken over the call.
tbreak main
run
rbreak nic::portals::transfers::.*::put::
continue
delete

# 2. to 8. The path of the message, in the order of the stops.
rbreak nic::pipeline::transmit::.*::send::
rbreak nic::pipeline::transmit::.*::depart::
rbreak nic::card::receive::.*::take::
rbreak nic::portals::matching::.*::match_request::h
rbreak nic::spin::handlers::.*::packet::
rbreak accel::sc17::interface::.*::offer::
rbreak accel::sc17::schedule::.*::run_after::
rbreak nic::spin::commands::.*::execute::
rbreak nic::spin::commands::transfers::.*::transfer_done::
rbreak nic::spin::handlers::.*::ended::
rbreak nic::card::finish::.*::finish_if_done::
rbreak nic::portals::delivery::.*::finish_delivery::
rbreak world::pauses::.*::resume::
