//! Ranks as processes: calls, memory, deaths, output, threads.

mod common;

use abi::mailbox::Op;
use abi::portals::{self, Event, Md, NiLimits, Rc};
use common::{compile, exit_code, job};
use host::job::{Call, Job, Pause, Reply};
use sim::Time;

fn call(pause: Pause, op: Op) -> Call {
    match pause {
        Pause::Call(call) if call.op == op => call,
        other => panic!("expected {op:?}, not {other:?}"),
    }
}

/// Answers a call with `PTL_OK` at time zero.
fn ok(job: &mut Job, call: &Call) -> Pause {
    job.resume(call.caller, Time::ZERO, &Reply::new(Rc::Ok))
}

#[test]
fn a_call_carries_arguments_there_and_results_back() {
    let program = compile(
        r#"
        #include <portals4.h>
        #include <spin.h>
        int main(void) {
            ptl_handle_ni_t ni;
            ptl_ni_limits_t want = {.max_entries = 7, .max_cycles_per_byte = 9}, have;
            if (PtlNIFini(1) != PTL_NO_INIT || PtlInit() != PTL_OK) return 1;
            if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, &want, &have, &ni)) return 2;
            if (ni != 0x12345678 || have.max_entries != 8 || have.max_cycles_per_byte != 10) return 3;
            ptl_md_t md = {.start = (void *)16, .length = 32, .options = 1, .eq_handle = PTL_EQ_NONE, .ct_handle = 5};
            ptl_handle_md_t mdh = 99;
            if (PtlMDBind(ni, &md, &mdh) != PTL_NO_SPACE || mdh != 99) return 4;
            if (PtlMDBind(ni, NULL, &mdh) != PTL_ARG_INVALID) return 5;
            ptl_process_t target = {.phys = {.nid = 3, .pid = 4}};
            if (PtlPut(1, 2, 3, PTL_CT_ACK_REQ, target, 5, 6, 7, (void *)8, 9) != PTL_OK) return 6;
            ptl_event_t event;
            if (PtlEQWait(1, &event) != PTL_EQ_DROPPED || event.type != PTL_EVENT_ACK || event.mlength != 77) return 7;
            if (event.initiator.phys.pid != 6 || spin_time_ps() != 5000) return 8;
            ptl_ct_event_t inc = {11, 12};
            if (PtlTriggeredCTInc(1, inc, 2, 3) != PTL_OK) return 9;
            PtlFini();
            return spin_rank() == 0 && spin_size() == 1 ? 42 : 10;
        }"#,
    );
    let mut job = job(&program, 1);
    let attach = call(job.start(0).unwrap(), Op::SpinAttach);
    let init = call(ok(&mut job, &attach), Op::PtlNIInit);
    assert_eq!(init.args[..4], [0, 5, u64::from(portals::ID_ANY), 1]);
    let mut limits: NiLimits = job.data(init.caller);
    assert_eq!((limits.max_entries, limits.max_cycles_per_byte), (7, 9));
    (limits.max_entries, limits.max_cycles_per_byte) = (8, 10);

    let pause = job.resume(init.caller, Time::ZERO, &Reply::value(0x1234_5678).with(&limits));
    let bind = call(pause, Op::PtlMDBind);
    assert_eq!(bind.args[0], 0x1234_5678);
    let md = Md { start: 16, length: 32, options: 1, eq_handle: portals::EQ_NONE, ct_handle: 5, pad: 0 };
    assert_eq!(Md { pad: 0, ..job.data::<Md>(bind.caller) }, md);

    let put = call(job.resume(bind.caller, Time::ZERO, &Reply::new(Rc::NoSpace)), Op::PtlPut);
    assert_eq!(put.args[..10], [1, 2, 3, 2, 3 | 4 << 32, 5, 6, 7, 8, 9]);

    let wait = call(ok(&mut job, &put), Op::PtlEQWait);
    let mut event = Event { kind: portals::EventKind::Ack as u8, mlength: 77, ..Event::default() };
    event.initiator.pid = 6;
    let pause = job.resume(wait.caller, Time::from_ns(5), &Reply::new(Rc::EqDropped).with(&event));
    let inc = call(pause, Op::PtlTriggeredCTInc);
    assert_eq!(inc.args[..3], [1, 2, 3]);
    assert_eq!(job.data::<portals::CtEvent>(inc.caller), portals::CtEvent { success: 11, failure: 12 });
    let detach = call(ok(&mut job, &inc), Op::SpinDetach);
    assert_eq!(exit_code(ok(&mut job, &detach)), Some(42));
}
