//! Calls about switches with handlers.

use abi::mailbox::Op;
use abi::portals::{CT_NONE, EQ_NONE, Handle, List, Me, ReturnCode};
use nic::{NewEntry, Region};

use super::event::Cluster;
use super::processes::Processes;
use super::step::{Outcome, Words, after, value};
use super::transfers::handlers_refused;
use ranks::{Call, Reply};

impl Processes {
    /// Makes a call about switches. Switches have the numbers after those of ranks.
    pub fn switch_call(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let a = Words(&call.args);
        match call.op {
            Op::SpinSwitches => value(cluster.switches().len() as u32),
            Op::SpinDistance => value(cluster.distance(a.u32(0), a.u32(1)).ok_or(ReturnCode::ArgInvalid)?),
            Op::SpinSwitchAlloc => {
                let (node, ni) = self.switch(cluster, call, "spin_switch_alloc")?;
                value(cluster.card(node).hpu_alloc(a.word(2), ni)?)
            }
            _ => self.attach_to_switch(cluster, call),
        }
    }

    /// The node of the switch that a call means, and its interface, which is like the caller's. The first caller brings the
    /// program.
    fn switch(&mut self, cluster: &mut Cluster, call: &Call, name: &str) -> Result<(usize, Handle), ReturnCode> {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let (which, count) = (a.u32(0), cluster.switches().len());
        let node = self.ranks.len() + which as usize;
        let like = match count {
            0 => Err("no switch of this network has handlers: see network.switch.handlers".to_owned()),
            _ if which as usize >= count => {
                Err(format!("there is no switch {} with handlers; the last of {count} is {}", which as i32, count - 1))
            }
            _ => Ok(cluster.card(rank).likeness(a.u32(1))?),
        };
        let ni = like.and_then(|like| {
            let unknown = "the map of the interface lacks this switch: spin_set_map makes one that has it".to_owned();
            if let (false, Some(program)) = (cluster.card(node).has_program(), cluster.card(rank).program()) {
                cluster.card(node).share_program(program).map_err(|error| error.to_string())?;
            }
            cluster.card(node).open_like(&like).map_err(|_| unknown)
        });
        ni.map(|ni| (node, ni)).map_err(|why| {
            self.warn(cluster, rank, &format!("{name}: {why}"));
            ReturnCode::ArgInvalid
        })
    }

    fn attach_to_switch(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        const NAME: &str = "spin_switch_attach";
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let mut me: Me = self.job.data(call.caller);
        let (node, ni) = self.switch(cluster, call, NAME)?;
        let host = [me.le.start, me.le.length, me.handler_host_mem_start, me.handler_host_mem_length];
        if host != [0; 4] || ![0, CT_NONE].contains(&me.le.ct_handle) {
            let what = "a switch has no host: memory of the entry and of its handlers must be NULL and of length 0, and \
                        the counter PTL_CT_NONE";
            self.warn(cluster, rank, &format!("{NAME}: {what}"));
            return Err(ReturnCode::ArgInvalid);
        }
        me.le.ct_handle = CT_NONE;
        let names = cluster.card(rank).handler_names(&me).inspect_err(|code| {
            let has_program = cluster.card(rank).has_program();
            self.warn(cluster, rank, &handlers_refused(NAME, *code, has_program));
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
        match cluster.card(node).pt_alloc(ni, 0, EQ_NONE, a.u32(2)) {
            Ok(_) | Err(ReturnCode::PtInUse) => {}
            Err(code) => return Err(code),
        }
        let new = NewEntry { me, matching: true, pt_index: a.u32(2), user_ptr: 0 };
        cluster.act(node, &mut self.job, |card, ports| {
            card.append(ni, new, List::Priority as u64, Some(handlers), ports)
        })?;
        after(cluster.charge(rank, cluster.costs().describe()), Reply::new(ReturnCode::Ok))
    }
}
