// SPDX-License-Identifier: Apache-2.0
//! Argument fields of each function's lines.

use crate::event::Operation;

/// Action of a function, as far as schedules represent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Send {
        blocking: bool,
    },
    Recv {
        blocking: bool,
    },
    SendRecv {
        blocking: bool,
    },
    SendRecvReplace {
        blocking: bool,
    },
    /// A probe for a matched receive.
    Match,
    RecvMatched {
        blocking: bool,
    },
    Prepare {
        sends: bool,
    },
    PrepareCollective(Operation),
    Start,
    WaitAll,
    WaitAny,
    Test,
    Free,
    Collective {
        operation: Operation,
        blocking: bool,
    },
    Dup,
    Split,
    OtherComm,
    /// Creation of a communicator by only some ranks of the parent.
    GroupComm,
    CommFree,
    WinCreate,
    WinFree,
    Fence,
    Lock,
    Unlock,
    Flush,
    FlushLocal,
    Access(Access),
    Finalize,
    /// No communication.
    Local,
    /// An action without a counterpart in schedules, reported by name.
    Other,
    /// An action that the trace records incompletely.
    Untold(&'static str),
}

/// Data moved by a one-sided access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Data to the target.
    Put,
    /// Data from the target.
    Get,
    /// Data in both directions.
    Exchange,
    /// One element to the target and back.
    Fetch,
    /// Two elements to the target, one back.
    Compare,
}

const GROUPS: &str = "a liballprof trace does not tell which ranks are in a group";
const TOPOLOGY: &str = "a liballprof trace does not tell who is whose neighbour";
const TYPES: &str = "a liballprof trace does not tell the sizes of several datatypes";
const SIDES: &str = "a liballprof trace does not tell who is in an intercommunicator";

/// Fields between the times, one letter each:
/// `b` anything, `n` count, `d` datatype, `r` rank, `t` tag, `c` communicator, `q` address of requests, `m` address of
/// a communicator, `a` address of a window, `w` window, `g` address of a matched message, `k` colour or key, `v` counts
/// (their address, then the counts), `x` displacements (like counts).
const CALLS: &[(&[&str], &str, Call)] = &[
    (&["send", "bsend", "ssend", "rsend"], "bndrtc", Call::Send { blocking: true }),
    (&["isend", "ibsend", "issend", "irsend"], "bndrtcq", Call::Send { blocking: false }),
    (&["recv"], "bndrtcb", Call::Recv { blocking: true }),
    (&["irecv"], "bndrtcq", Call::Recv { blocking: false }),
    (&["sendrecv"], "bndrtbndrtcb", Call::SendRecv { blocking: true }),
    (&["sendrecv_replace"], "bndrtrtcb", Call::SendRecvReplace { blocking: true }),
    (&["isendrecv"], "bndrtbndrtcq", Call::SendRecv { blocking: false }),
    (&["isendrecv_replace"], "bndrtrtcq", Call::SendRecvReplace { blocking: false }),
    (&["mprobe"], "rtcgb", Call::Match),
    (&["improbe"], "rtcbgb", Call::Match),
    (&["mrecv"], "bndgb", Call::RecvMatched { blocking: true }),
    (&["imrecv"], "bndgq", Call::RecvMatched { blocking: false }),
    (&["send_init", "bsend_init", "ssend_init", "rsend_init"], "bndrtcq", Call::Prepare { sends: true }),
    (&["recv_init"], "bndrtcq", Call::Prepare { sends: false }),
    (&["psend_init"], "bnndrtcbq", Call::Prepare { sends: true }),
    (&["precv_init"], "bnndrtcbq", Call::Prepare { sends: false }),
    (&["start"], "q", Call::Start),
    (&["startall"], "nq", Call::Start),
    (&["wait"], "qb", Call::WaitAll),
    (&["waitall"], "nqb", Call::WaitAll),
    (&["waitany"], "nqbb", Call::WaitAny),
    (&["waitsome"], "nqbbb", Call::WaitAny),
    (&["test"], "qbb", Call::Test),
    (&["testall"], "nqbb", Call::Test),
    (&["testany", "testsome"], "nqbbb", Call::Test),
    (&["request_free", "cancel"], "q", Call::Free),
    (&["comm_dup"], "cm", Call::Dup),
    (&["comm_dup_with_info"], "cbm", Call::Dup),
    (&["comm_idup"], "cmq", Call::Dup),
    (&["comm_idup_with_info"], "cbmq", Call::Dup),
    (&["comm_split"], "ckkm", Call::Split),
    (&["comm_create", "cart_sub"], "cbm", Call::OtherComm),
    (&["comm_split_type"], "cbbbm", Call::OtherComm),
    (&["cart_create", "graph_create"], "cbbbbm", Call::OtherComm),
    (&["dist_graph_create"], "cbbbbbbbm", Call::OtherComm),
    (&["dist_graph_create_adjacent"], "cbbbbbbbbm", Call::OtherComm),
    (&["comm_create_group"], "cbbm", Call::GroupComm),
    (&["intercomm_create", "intercomm_merge", "intercomm_create_from_groups"], "", Call::Untold(SIDES)),
    (&["comm_free", "comm_disconnect"], "m", Call::CommFree),
    (&["win_create"], "bbbbca", Call::WinCreate),
    (&["win_allocate", "win_allocate_shared"], "bbbcba", Call::WinCreate),
    (&["win_create_dynamic"], "bca", Call::WinCreate),
    (&["win_free"], "a", Call::WinFree),
    (&["win_fence"], "bw", Call::Fence),
    (&["win_lock"], "brbw", Call::Lock),
    (&["win_lock_all"], "bw", Call::Lock),
    (&["win_unlock"], "rw", Call::Unlock),
    (&["win_unlock_all"], "w", Call::Unlock),
    (&["win_flush"], "rw", Call::Flush),
    (&["win_flush_all"], "w", Call::Flush),
    (&["win_flush_local"], "rw", Call::FlushLocal),
    (&["win_flush_local_all"], "w", Call::FlushLocal),
    (&["win_post", "win_start", "win_complete", "win_wait", "win_test"], "", Call::Untold(GROUPS)),
    (&["fetch_and_op"], "bbdrbbw", Call::Access(Access::Fetch)),
    (&["compare_and_swap"], "bbbdrbw", Call::Access(Access::Compare)),
    (&["comm_create_from_group"], "", Call::Untold(GROUPS)),
    (&["alltoallw", "ialltoallw", "alltoallw_init"], "", Call::Untold(TYPES)),
    (&["finalize"], "", Call::Finalize),
];

/// Accesses that have a variant with an additional `r` in its name, which returns a request.
const ACCESSES: &[(&str, &str, Access)] = &[
    ("put", "bndrbndw", Access::Put),
    ("get", "bndrbndw", Access::Get),
    ("accumulate", "bndrbndbw", Access::Put),
    ("get_accumulate", "bndbndrbndbw", Access::Exchange),
];

const COLLECTIVES: &[(&str, &str, Operation)] = &[
    ("barrier", "c", Operation::Barrier),
    ("bcast", "bndrc", Operation::Bcast),
    ("reduce", "bbndbrc", Operation::Reduce),
    ("allreduce", "bbndbc", Operation::Allreduce),
    ("scan", "bbndbc", Operation::Scan),
    ("exscan", "bbndbc", Operation::Exscan),
    ("reduce_scatter", "bbvdbc", Operation::ReduceScatter),
    ("reduce_scatter_block", "bbndbc", Operation::ReduceScatterBlock),
    ("allgather", "bndbndc", Operation::Allgather),
    ("allgatherv", "bndbvxdc", Operation::Allgatherv),
    ("alltoall", "bndbndc", Operation::Alltoall),
    ("alltoallv", "bvxdbvxdc", Operation::Alltoallv),
    ("gather", "bndbndrc", Operation::Gather),
    ("gatherv", "bndbvxdrc", Operation::Gatherv),
    ("scatter", "bndbndrc", Operation::Scatter),
    ("scatterv", "bvxdbndrc", Operation::Scatterv),
];

/// Names, or prefixes of names (with `*`), of functions that move no data and do not wait; docs/mpi-calls.md lists all.
const LOCAL: &[&str] = &[
    "abi_*",
    "abort",
    "add_error_*",
    "address",
    "aint_*",
    "alloc_mem",
    "attr_*",
    "buffer_*",
    "cart_coords",
    "cart_get",
    "cart_map",
    "cart_rank",
    "cart_shift",
    "cartdim_get",
    "close_port",
    "comm_*_buffer",
    "comm_*attr",
    "comm_*errhandler",
    "comm_*info",
    "comm_*keyval",
    "comm_*name",
    "comm_c2f",
    "comm_compare",
    "comm_f2c",
    "comm_fromint",
    "comm_get_parent",
    "comm_group",
    "comm_rank",
    "comm_remote_group",
    "comm_remote_size",
    "comm_size",
    "comm_test_inter",
    "comm_toint",
    "dims_create",
    "dist_graph_neighbors*",
    "errhandler_*",
    "error_*",
    "file_c2f",
    "file_call_errhandler",
    "file_create_errhandler",
    "file_delete",
    "file_f2c",
    "file_fromint",
    "file_get_*",
    "file_iread",
    "file_iread_at",
    "file_iread_shared",
    "file_iwrite",
    "file_iwrite_at",
    "file_iwrite_shared",
    "file_read",
    "file_read_at",
    "file_read_shared",
    "file_seek",
    "file_set_errhandler",
    "file_set_info",
    "file_toint",
    "file_write",
    "file_write_at",
    "file_write_shared",
    "finalized",
    "free_mem",
    "get_address",
    "get_count",
    "get_elements*",
    "get_hw_resource_info",
    "get_library_version",
    "get_processor_name",
    "get_version",
    "graph_get",
    "graph_map",
    "graph_neighbors*",
    "graphdims_get",
    "grequest_*",
    "group_*",
    "info_*",
    "init",
    "init_thread",
    "initialized",
    "iprobe",
    "is_thread_main",
    "keyval_*",
    "lookup_name",
    "message_*",
    "op_*",
    "open_port",
    "pack*",
    "parrived",
    "pcontrol",
    "pready*",
    "probe",
    "publish_name",
    "query_thread",
    "reduce_local",
    "register_datarep",
    "remove_error_*",
    "request_c2f",
    "request_f2c",
    "request_fromint",
    "request_get_status*",
    "request_toint",
    "session_*",
    "status_*",
    "t_*",
    "test_cancelled",
    "topo_test",
    "type_*",
    "unpack*",
    "unpublish_name",
    "win_*attr",
    "win_*errhandler",
    "win_*info",
    "win_*keyval",
    "win_*name",
    "win_attach",
    "win_c2f",
    "win_detach",
    "win_f2c",
    "win_fromint",
    "win_get_group",
    "win_shared_query",
    "win_sync",
    "win_toint",
    "wtick",
    "wtime",
];

/// Names, or prefixes of names, of reported functions without a counterpart in schedules.
const OTHER: &[&str] = &["comm_accept", "comm_connect", "comm_join", "comm_spawn*", "file_*"];

/// A call, the letters of its fields, and the letters of the fields after these: a request, possibly after hints.
pub type Signature = (Call, &'static str, &'static str);

/// Returns the function with this name, in C or Fortran. A variant with counts of MPI_Count (`_c`) has the same fields.
pub fn find(name: &str) -> Option<Signature> {
    let plain = name.trim_end_matches('_').to_ascii_lowercase();
    let name = plain.strip_prefix("mpi_")?;
    exactly(name).or_else(|| name.strip_suffix("_c").and_then(exactly))
}

fn exactly(name: &str) -> Option<Signature> {
    if let Some((_, letters, call)) = CALLS.iter().find(|row| row.0.contains(&name)) {
        return Some((*call, letters, ""));
    }
    let collective = |name: &str| COLLECTIVES.iter().find(|row| row.0 == name);
    if let Some((_, letters, operation)) = collective(name) {
        return Some((Call::Collective { operation: *operation, blocking: true }, letters, ""));
    }
    if let Some((_, letters, operation)) = name.strip_prefix('i').and_then(collective) {
        return Some((Call::Collective { operation: *operation, blocking: false }, letters, "q"));
    }
    if let Some((_, letters, operation)) = name.strip_suffix("_init").and_then(collective) {
        return Some((Call::PrepareCollective(*operation), letters, "bq"));
    }
    let access = |name: &str| ACCESSES.iter().find(|row| row.0 == name);
    if let Some((_, letters, access)) = access(name) {
        return Some((Call::Access(*access), letters, ""));
    }
    if let Some((_, letters, access)) = name.strip_prefix('r').and_then(access) {
        return Some((Call::Access(*access), letters, "q"));
    }
    if name.strip_prefix('i').unwrap_or(name).starts_with("neighbor_") {
        return Some((Call::Untold(TOPOLOGY), "", ""));
    }
    let is = |pattern: &&&str| match pattern.split_once('*') {
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
        None => **pattern == name,
    };
    let local = LOCAL.iter().find(is).map(|_| (Call::Local, "", ""));
    local.or_else(|| OTHER.iter().find(is).map(|_| (Call::Other, "", "")))
}

/// Returns the meaning of a letter.
pub fn meaning(letter: u8) -> &'static str {
    match letter {
        b'n' => "a count",
        b'd' => "a datatype (number, size, extent)",
        b'r' => "a rank",
        b't' => "a tag",
        b'c' => "a communicator (number, rank, size)",
        b'q' => "the address of a request",
        b'm' => "the address of a communicator",
        b'a' => "the address of a window",
        b'w' => "a window",
        b'g' => "the address of a message",
        b'k' => "a colour or key",
        b'v' => "counts",
        b'x' => "displacements",
        _ => "an argument",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names in the lists of docs/mpi-calls.md below a heading. A `*` is literal.
    fn listed(from: &str, to: &str) -> Vec<&'static str> {
        let page = include_str!("../../../../../docs/mpi-calls.md");
        let start = page.find(from).unwrap();
        let part = &page[start..start + page[start..].find(to).unwrap_or(page.len() - start)];
        let names: Vec<_> = part.split('`').filter(|word| word.starts_with("MPI_")).collect();
        assert!(names.len() > 30, "{from}");
        names
    }

    #[test]
    fn every_function_is_known_as_the_tracer_knows_it() {
        for name in listed("## In the schedule", "## Named") {
            let call = find(name).unwrap_or_else(|| panic!("{name}")).0;
            let does_nothing = ["Init", "Init_thread", "Query_thread", "Abort", "Probe", "Iprobe"]
                .contains(&&name[4..])
                || name.starts_with("MPI_Pready");
            assert_eq!(call == Call::Local, does_nothing, "{name}");
            assert_ne!(call, Call::Other, "{name}");
        }
        for name in listed("## Named", "## Passed") {
            let expected = if name == "MPI_Session_init" { Call::Local } else { Call::Other };
            assert_eq!(find(name).map(|found| found.0), Some(expected), "{name}");
        }
        for name in listed("## Passed", "no such heading") {
            let expected =
                if name == "MPI_Comm_disconnect" || name == "MPI_Comm_free" { Call::CommFree } else { Call::Local };
            let one = name.replace("Comm_get_*", "Comm_get_info").replace("Comm_set_*", "Comm_set_name");
            let one = one.replace("Win_get_*", "Win_get_attr").replace("Win_set_*", "Win_set_info").replace('*', "x");
            assert_eq!(find(&one).map(|found| found.0), Some(expected), "{name}");
        }
    }

    #[test]
    fn variants_have_the_fields_of_their_kind() {
        for (name, like) in
            [("MPI_Send_c", "MPI_Send"), ("mpi_bcast_", "MPI_Bcast"), ("mpi_win_fence__", "MPI_Win_fence")]
        {
            assert_eq!(find(name), find(like));
        }
        assert_eq!(find("MPI_Rput"), Some((Call::Access(Access::Put), "bndrbndw", "q")));
        assert_eq!(find("MPI_Bcast_init"), Some((Call::PrepareCollective(Operation::Bcast), "bndrc", "bq")));
        assert_eq!(find("MPI_Sent"), None);
    }
}
