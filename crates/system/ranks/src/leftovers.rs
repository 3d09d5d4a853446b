// SPDX-License-Identifier: Apache-2.0
//! Removes shared memory files that ranks leave behind.
//!
//! MPICH names the shared memory of a node after a hash of the job's key-value space and the node number
//! (`MPIDI_POSIX_init_vci` of its `posix_init.c`), and removes it in `MPI_Finalize`: a rank that exits without it, or
//! is killed, leaves a file. The simulator chose the unique name of the space, and each rank is a node, so it knows the
//! names of the job's files.

use std::fs;

/// Folder of POSIX shared memory (shm_overview(7)).
const FOLDER: &str = "/dev/shm";
/// Prefixes of the file names.
const KINDS: [&str; 2] = ["mpich_shm", "mpich_vci"];
/// Bytes of shared memory that MPICH needs per rank.
const OF_RANK: u64 = 1 << 20;

/// Removes the files of a job after all its ranks ended.
pub fn remove(space: &str, ranks: usize) {
    let hash = fnv_1a(space);
    let listed = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    for entry in listed.filter(|entry| entry.file_name().to_str().is_some_and(|name| is_of(name, hash, ranks))) {
        // A file that cannot be removed belongs to another user.
        let _ = fs::remove_file(entry.path());
    }
}

/// Returns true if a file belongs to the job with this hash.
fn is_of(name: &str, hash: u32, ranks: usize) -> bool {
    KINDS.iter().filter_map(|kind| name.strip_prefix(&format!("{kind}_{hash:x}_"))).any(|node| {
        // Accept only the canonical form of a number: `01` is no node.
        node.parse::<usize>().is_ok_and(|number| number < ranks && number.to_string() == node)
    })
}

/// Computes the hash with which MPICH shortens the name of a space (Fowler, Noll, Vo).
fn fnv_1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Returns a likely reason for a SIGBUS, for the user: no space for the shared memory of this number of ranks. Assumes
/// that the job's files are already removed.
pub fn shortage(ranks: usize) -> Option<String> {
    let room = rustix::fs::statvfs(FOLDER).ok()?;
    let (free, all) = (room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize);
    (free < ranks as u64 * OF_RANK).then(|| {
        format!(
            "{FOLDER} has {} of {} KiB free, and writing to shared memory for which there is no room raises this signal; MPICH needs 1 MiB of \
             it for each rank: make it larger (mount -o remount,size=1G {FOLDER}, or --shm-size of containers)",
            free >> 10,
            all >> 10
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_job_are_removed() {
        // Published test values of the hash: http://www.isthe.com/chongo/tech/comp/fnv/
        assert_eq!((fnv_1a(""), fnv_1a("a"), fnv_1a("foobar")), (0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968));
        for own in ["mpich_shm_e40c292c_0", "mpich_shm_e40c292c_2", "mpich_vci_e40c292c_1"] {
            assert!(is_of(own, 0xe40c_292c, 3), "{own}");
        }
        let others = [
            "mpich_shm_e40c292c_3",
            "mpich_shm_e40c292c_01",
            "mpich_shm_e40c292c_+1",
            "mpich_shm_e40c292c_",
            "mpich_shm_e40c292d_0",
            "mpich_shm_0e40c292c_0",
            "mpich_tmp_e40c292c_0",
            "my_mpich_shm_e40c292c_0",
        ];
        for other in others {
            assert!(!is_of(other, 0xe40c_292c, 3), "{other}");
        }
    }
}
