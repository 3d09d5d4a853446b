// SPDX-License-Identifier: Apache-2.0
//! Calls that load the program's device code onto its card.

use abi::calls::SpinRegisterImage;
use abi::portals::ReturnCode;
use nic::DeviceProgram;

use super::end::End;
use super::event::Cluster;
use super::outcome::{Outcome, done};
use super::processes::Processes;
use ranks::Reply;

/// Maximum size in bytes of a registered image.
const MAX_IMAGE: u64 = 64 << 20;

impl Processes {
    /// Loads the program's device code onto its card.
    pub fn register_image(&mut self, cluster: &mut Cluster, rank: usize, image: SpinRegisterImage) -> Outcome {
        if !cluster.machine().nic.runs_handlers() {
            return done(Reply::new(ReturnCode::Ok)); // without HPUs, device code is ignored
        }
        if let Err(message) = self.load_image(cluster, rank, image) {
            self.end = Some(End::BadProgram { rank, message });
        }
        done(Reply::new(ReturnCode::Ok))
    }

    fn load_image(&mut self, cluster: &mut Cluster, rank: usize, image: SpinRegisterImage) -> Result<(), String> {
        if cluster.card(rank).has_program() {
            return Err("it brings a second device program (of a library?), and a card holds one".into());
        }
        if image.length > MAX_IMAGE {
            return Err(format!("its device image of {} bytes is damaged", image.length));
        }
        let mut bytes = vec![0; image.length as usize];
        self.job.read(rank, image.image, &mut bytes).map_err(|fault| fault.to_string())?;
        let kind = cluster.machine().hpu.kind.clone();
        let program =
            DeviceProgram::from_image(&bytes, image.handlers_start, &kind).map_err(|error| error.to_string())?;
        cluster.card(rank).load_program(program).map_err(|error| error.to_string())
    }
}
