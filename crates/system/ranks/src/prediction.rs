// SPDX-License-Identifier: Apache-2.0
//! Predicted result of a posted call, checked against the real one.

use super::call::Reply;
use abi::calls::{Op, PtlCTWait};
use abi::mailbox::{NOTHING, digest};
use abi::portals::{CtEvent, Event, ReturnCode};

/// Predicted result of a posted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// The call is accepted. It may wait.
    Accepted,
    /// The call returns immediately with the event with this [`digest`].
    Event(u64),
    /// The call returns immediately and finds nothing.
    Nothing,
    /// The call returns immediately because the counter has at least this many successes.
    Reached(u64),
}

impl Prediction {
    /// Returns the prediction for a call; `claim` is the value that the thread stored with it.
    pub fn of(op: Op, args: &[u64], claim: u64) -> Prediction {
        match op {
            Op::PtlEQGet | Op::PtlEQPoll if claim == NOTHING => Prediction::Nothing,
            _ if op.properties().takes_event => Prediction::Event(claim),
            Op::PtlCTWait => Prediction::Reached(PtlCTWait::read(args).test),
            _ => Prediction::Accepted,
        }
    }

    /// Returns the message for the user if the reply differs from the prediction.
    pub fn objection(self, op: Op, reply: &Reply) -> Option<String> {
        let (name, code) = (op.c_name(), reply.rc);
        let is_ok = code == ReturnCode::Ok as i32;
        match self {
            Prediction::Accepted if is_ok => None,
            Prediction::Accepted => {
                Some(format!("{name} was refused (return code {code}) although one like it was accepted before"))
            }
            Prediction::Event(claim)
                if is_ok && reply.structure().is_some_and(|event: Event| digest(&event) == claim) =>
            {
                None
            }
            Prediction::Event(_) => Some(format!(
                "{name} has returned an event ahead of its time that was no longer there (return code {code})"
            )),
            Prediction::Nothing if code == ReturnCode::EqEmpty as i32 => None,
            Prediction::Nothing => Some(format!(
                "{name} has found nothing ahead of its time, when there was something (return code {code})"
            )),
            Prediction::Reached(test) if is_ok && reply.structure().is_some_and(|ct: CtEvent| ct.success >= test) => {
                None
            }
            Prediction::Reached(_) => Some(too_early(op)),
        }
    }

    /// As [`Prediction::objection`], for a call that must wait.
    pub fn objection_to_wait(self, op: Op) -> Option<String> {
        (self != Prediction::Accepted).then(|| too_early(op))
    }
}

fn too_early(op: Op) -> String {
    format!("{} has returned ahead of its time, when it should have waited", op.c_name())
}

#[cfg(test)]
mod tests {
    use abi::calls::PtlEQWait;

    use super::*;

    #[test]
    fn answers_are_compared_with_predictions() {
        let event = Event { hdr_data: 3, ..Event::default() };
        let other = Event { hdr_data: 4, ..event };
        let ok = Reply::new(ReturnCode::Ok);
        let (taken, value) = (PtlEQWait::read(&[1]).event, PtlCTWait::read(&[1, 7]).event);
        let take = Prediction::of(Op::PtlEQWait, &[1], digest(&event));
        assert_eq!(take.objection(Op::PtlEQWait, &ok.clone().with(taken, &event)), None);
        let gone = |code| {
            Some(format!(
                "PtlEQWait has returned an event ahead of its time that was no longer there (return code {code})"
            ))
        };
        assert_eq!(take.objection(Op::PtlEQWait, &ok.clone().with(taken, &other)), gone(0));
        assert_eq!(take.objection(Op::PtlEQWait, &ok), gone(0));
        let dropped = Reply::new(ReturnCode::EqDropped).with(taken, &event);
        assert_eq!(take.objection(Op::PtlEQWait, &dropped), gone(ReturnCode::EqDropped as i32));

        let nothing = Prediction::of(Op::PtlEQGet, &[1], NOTHING);
        assert_eq!(nothing.objection(Op::PtlEQGet, &Reply::new(ReturnCode::EqEmpty)), None);
        assert_eq!(
            nothing.objection(Op::PtlEQGet, &ok.clone().with(taken, &event)).unwrap(),
            "PtlEQGet has found nothing ahead of its time, when there was something (return code 0)"
        );

        let reached = Prediction::of(Op::PtlCTWait, &[1, 7], 0);
        let counted = |success| ok.clone().with(value, &CtEvent { success, failure: 0 });
        let early = Some("PtlCTWait has returned ahead of its time, when it should have waited".to_owned());
        assert_eq!(reached.objection(Op::PtlCTWait, &counted(7)), None);
        assert_eq!(reached.objection(Op::PtlCTWait, &counted(6)), early);
        assert_eq!(reached.objection(Op::PtlCTWait, &Reply::new(ReturnCode::Interrupted)), early);
        assert_eq!(reached.objection_to_wait(Op::PtlCTWait), early);

        let put = Prediction::of(Op::PtlPut, &[1, 7], 0);
        assert_eq!((put.objection(Op::PtlPut, &ok), put.objection_to_wait(Op::SpinIdle)), (None, None));
        assert_eq!(
            put.objection(Op::PtlPut, &Reply::new(ReturnCode::ArgInvalid)).unwrap(),
            format!(
                "PtlPut was refused (return code {}) although one like it was accepted before",
                ReturnCode::ArgInvalid as i32
            )
        );
    }
}
