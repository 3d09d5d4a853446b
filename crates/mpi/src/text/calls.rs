//! What the fields of each function's line are.

use crate::event::Operation;

/// What a function does, in so far as a schedule tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Send {
        blocking: bool,
    },
    Recv {
        blocking: bool,
    },
    SendRecv,
    SendRecvReplace,
    Prepare {
        sends: bool,
    },
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
    CommFree,
    Finalize,
    /// Nothing
    Local,
}

/// Fields between the times, one letter each:
/// `b` anything, `n` count, `d` datatype, `r` rank, `t` tag, `c` communicator, `q` address of requests, `m` address of a
/// communicator, `k` colour or key, `v` counts (its address, then the counts), `x` displacements (like counts).
const CALLS: &[(&[&str], &str, Call)] = &[
    (&["send", "bsend", "ssend", "rsend"], "bndrtc", Call::Send { blocking: true }),
    (&["isend", "ibsend", "issend", "irsend"], "bndrtcq", Call::Send { blocking: false }),
    (&["recv"], "bndrtcb", Call::Recv { blocking: true }),
    (&["irecv"], "bndrtcq", Call::Recv { blocking: false }),
    (&["sendrecv"], "bndrtbndrtcb", Call::SendRecv),
    (&["sendrecv_replace"], "bndrtrtcb", Call::SendRecvReplace),
    (&["send_init", "bsend_init", "ssend_init", "rsend_init"], "bndrtcq", Call::Prepare { sends: true }),
    (&["recv_init"], "bndrtcq", Call::Prepare { sends: false }),
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
    (&["comm_split"], "ckkm", Call::Split),
    (&["comm_create", "cart_sub"], "cbm", Call::OtherComm),
    (&["comm_split_type"], "cbbbm", Call::OtherComm),
    (&["cart_create", "graph_create"], "cbbbbm", Call::OtherComm),
    (&["dist_graph_create_adjacent"], "cbbbbbbbbm", Call::OtherComm),
    (&["comm_free"], "m", Call::CommFree),
    (&["finalize"], "", Call::Finalize),
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

/// Names, or starts of names (with `*`), of functions that move no data and wait for nobody.
const LOCAL: &[&str] = &[
    "init",
    "init_thread",
    "initialized",
    "finalized",
    "is_thread_main",
    "query_thread",
    "wtime",
    "wtick",
    "abort",
    "comm_rank",
    "comm_size",
    "comm_group",
    "comm_compare",
    "comm_remote_size",
    "comm_test_inter",
    "comm_*name",
    "comm_*attr",
    "comm_*keyval",
    "comm_*errhandler",
    "attr_*",
    "keyval_*",
    "errhandler_*",
    "error_*",
    "group_*",
    "type_*",
    "address",
    "get_address",
    "get_count",
    "get_elements",
    "get_processor_name",
    "get_version",
    "get_library_version",
    "op_*",
    "pack*",
    "unpack*",
    "info_*",
    "dims_create",
    "cart_coords",
    "cart_rank",
    "cart_get",
    "cart_shift",
    "cart_map",
    "cartdim_get",
    "graph_get",
    "graph_neighbors*",
    "graphdims_get",
    "topo_test",
    "probe",
    "iprobe",
    "test_cancelled",
    "buffer_*",
    "alloc_mem",
    "free_mem",
    "pcontrol",
    "status_*",
    "request_get_status",
];

/// A call, the letters of its fields, and whether the address of a request follows them.
pub type Signature = (Call, &'static str, bool);

/// The function of a name, in C or Fortran.
pub fn find(name: &str) -> Option<Signature> {
    let plain = name.trim_end_matches('_').to_ascii_lowercase();
    let name = plain.strip_prefix("mpi_")?;
    if let Some((_, letters, call)) = CALLS.iter().find(|row| row.0.contains(&name)) {
        return Some((*call, letters, false));
    }
    let collective = |name: &str, blocking: bool| {
        let row = COLLECTIVES.iter().find(|row| row.0 == name)?;
        Some((Call::Collective { operation: row.2, blocking }, row.1, !blocking))
    };
    let is_local = |pattern: &&&str| match pattern.split_once('*') {
        Some((start, end)) => name.starts_with(start) && name.ends_with(end),
        None => **pattern == name,
    };
    collective(name, true)
        .or_else(|| name.strip_prefix('i').and_then(|name| collective(name, false)))
        .or_else(|| LOCAL.iter().find(is_local).map(|_| (Call::Local, "", false)))
}

/// What a letter stands for.
pub fn meaning(letter: u8) -> &'static str {
    match letter {
        b'n' => "a count",
        b'd' => "a datatype (number, size, extent)",
        b'r' => "a rank",
        b't' => "a tag",
        b'c' => "a communicator (number, rank, size)",
        b'q' => "the address of a request",
        b'm' => "the address of a communicator",
        b'k' => "a colour or key",
        b'v' => "counts",
        b'x' => "displacements",
        _ => "an argument",
    }
}
