// SPDX-License-Identifier: Apache-2.0
//! Calls about switches with handlers. Switch numbers follow those of the ranks.

use abi::calls;
use abi::portals::{CT_NONE, EQ_NONE, Handle, List, ReturnCode};
use nic::{NewEntry, Region};

use super::event::Cluster;
use super::outcome::{Outcome, after, done};
use super::processes::Processes;
use super::transfers::handlers_refused;
use ranks::{Call, Reply};

impl Processes {
    /// Allocates HPU memory of a switch (`spin_switch_alloc`).
    pub fn switch_alloc(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let a = calls::SpinSwitchAlloc::read(&call.args);
        let (node, ni) = self.switch(cluster, call, (a.which, a.ni))?;
        done(Reply::output(a.hpu_mem, cluster.card(node).hpu_alloc(a.length, ni)?))
    }

    /// Returns the node of switch `which`, and its interface, opened with the properties of the caller's. The first
    /// caller provides the program.
    fn switch(
        &mut self,
        cluster: &mut Cluster,
        call: &Call,
        (which, like): (u32, Handle),
    ) -> Result<(usize, Handle), ReturnCode> {
        let (rank, name) = (call.caller.rank as usize, call.op.c_name());
        let count = cluster.switches().len();
        let node = self.ranks.len() + which as usize;
        let like = match count {
            0 => Err("no switch of this network has handlers: see network.switch.handlers".to_owned()),
            _ if which as usize >= count => {
                Err(format!("there is no switch {} with handlers; the last of {count} is {}", which as i32, count - 1))
            }
            _ => Ok(cluster.card(rank).portals_mut().interface_properties(like)?),
        };
        let ni = like.and_then(|like| {
            let unknown = "the map of the interface lacks this switch: spin_set_map makes one that has it".to_owned();
            if let (false, Some(program)) = (cluster.card(node).has_program(), cluster.card(rank).program()) {
                cluster.card(node).share_program(program).map_err(|error| error.to_string())?;
            }
            cluster.card(node).portals_mut().open_with(&like).map_err(|_| unknown)
        });
        ni.map(|ni| (node, ni)).map_err(|why| {
            self.warn(cluster, rank, &format!("{name}: {why}"));
            ReturnCode::ArgInvalid
        })
    }

    /// Appends an entry with handlers to a switch (`spin_switch_attach`).
    pub fn switch_attach(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, name) = (call.caller.rank as usize, call.op.c_name());
        let a = calls::SpinSwitchAttach::read(&call.args);
        let mut me = self.job.structure(call.caller, a.me);
        let (node, ni) = self.switch(cluster, call, (a.which, a.ni))?;
        let host = [me.le.start, me.le.length, me.handler_host_mem_start, me.handler_host_mem_length];
        if host != [0; 4] || ![0, CT_NONE].contains(&me.le.ct_handle) {
            let what = "a switch has no host: memory of the entry and of its handlers must be NULL and of length 0, and \
                        the counter PTL_CT_NONE";
            self.warn(cluster, rank, &format!("{name}: {what}"));
            return Err(ReturnCode::ArgInvalid);
        }
        me.le.ct_handle = CT_NONE;
        let names = cluster.card(rank).handler_names(&me).inspect_err(|code| {
            let has_program = cluster.card(rank).has_program();
            self.warn(cluster, rank, &handlers_refused(name, *code, has_program));
        })?;
        let length = if me.hpu_initial_state == 0 { 0 } else { me.hpu_initial_state_length };
        if length > u64::from(cluster.machine().accelerator.max_initial_state()) {
            return Err(ReturnCode::ArgInvalid);
        }
        let mut state = vec![0; length as usize];
        self.job.read(rank, me.hpu_initial_state, &mut state).map_err(|_| ReturnCode::ArgInvalid)?;
        let names = names.each_ref().map(|name| name.as_deref());
        let (memory, none) = (me.hpu_memory, Region::range(0, 0));
        let handlers = cluster.card(node).handlers_by_name(names, memory, &state, none, me.user_hdr_size)?;
        match cluster.card(node).portals_mut().pt_alloc(ni, 0, EQ_NONE, a.pt_index) {
            Ok(_) | Err(ReturnCode::PtInUse) => {}
            Err(code) => return Err(code),
        }
        let new = NewEntry { me, matching: true, pt_index: a.pt_index, user_ptr: 0 };
        cluster.act(node, &mut self.job, |card, ports| {
            card.append(ni, new, List::Priority as u64, Some(handlers), ports)
        })?;
        after(cluster.charge(rank, cluster.costs().describe()), Reply::new(ReturnCode::Ok))
    }
}
