//! What a thread that has posted a call believes about its answer.

use super::call::Reply;
use abi::calls::{Op, PtlCTWait};
use abi::mailbox::{NOTHING, digest};
use abi::portals::{CtEvent, Event, ReturnCode};

/// What a thread believes about the answer to a posted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belief {
    /// The call is accepted. It may wait.
    Accepted,
    /// The call does not wait, and gets the event with this [`digest`].
    Event(u64),
    /// The call does not wait, and finds nothing.
    Nothing,
    /// The call does not wait, as the counter has as many successes.
    Reached(u64),
}

impl Belief {
    /// Returns what is believed about a call, of which the thread has noted `claim`.
    pub fn of(op: Op, args: &[u64], claim: u64) -> Belief {
        match op {
            Op::PtlEQGet | Op::PtlEQPoll if claim == NOTHING => Belief::Nothing,
            _ if op.properties().takes_event => Belief::Event(claim),
            Op::PtlCTWait => Belief::Reached(PtlCTWait::read(args).test),
            _ => Belief::Accepted,
        }
    }

    /// Returns how the answer to the call differs from what was believed, for the user; `None` if it does not.
    pub fn objection(self, op: Op, reply: &Reply) -> Option<String> {
        let (name, code) = (op.c_name(), reply.rc);
        let is_ok = code == ReturnCode::Ok as i32;
        match self {
            Belief::Accepted if is_ok => None,
            Belief::Accepted => {
                Some(format!("{name} was refused (return code {code}) although one like it was accepted before"))
            }
            Belief::Event(claim) if is_ok && reply.structure().is_some_and(|event: Event| digest(&event) == claim) => {
                None
            }
            Belief::Event(_) => Some(format!(
                "{name} has returned an event ahead of its time that was no longer there (return code {code})"
            )),
            Belief::Nothing if code == ReturnCode::EqEmpty as i32 => None,
            Belief::Nothing => Some(format!(
                "{name} has found nothing ahead of its time, when there was something (return code {code})"
            )),
            Belief::Reached(test) if is_ok && reply.structure().is_some_and(|ct: CtEvent| ct.success >= test) => None,
            Belief::Reached(_) => Some(too_early(op)),
        }
    }

    /// As [`Belief::objection`], for a call that has to wait.
    pub fn objection_to_wait(self, op: Op) -> Option<String> {
        (self != Belief::Accepted).then(|| too_early(op))
    }
}

fn too_early(op: Op) -> String {
    format!("{} has returned ahead of its time, when it should have waited", op.c_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_must_be_what_was_believed() {
        let event = Event { hdr_data: 3, ..Event::default() };
        let other = Event { hdr_data: 4, ..event };
        let ok = Reply::new(ReturnCode::Ok);
        let take = Belief::of(Op::PtlEQWait, &[1], digest(&event));
        assert_eq!(take.objection(Op::PtlEQWait, &ok.clone().with(&event)), None);
        let gone = |code| {
            Some(format!(
                "PtlEQWait has returned an event ahead of its time that was no longer there (return code {code})"
            ))
        };
        assert_eq!(take.objection(Op::PtlEQWait, &ok.clone().with(&other)), gone(0));
        assert_eq!(take.objection(Op::PtlEQWait, &ok), gone(0));
        let dropped = Reply::new(ReturnCode::EqDropped).with(&event);
        assert_eq!(take.objection(Op::PtlEQWait, &dropped), gone(ReturnCode::EqDropped as i32));

        let nothing = Belief::of(Op::PtlEQGet, &[1], NOTHING);
        assert_eq!(nothing.objection(Op::PtlEQGet, &Reply::new(ReturnCode::EqEmpty)), None);
        assert_eq!(
            nothing.objection(Op::PtlEQGet, &ok.clone().with(&event)).unwrap(),
            "PtlEQGet has found nothing ahead of its time, when there was something (return code 0)"
        );

        let reached = Belief::of(Op::PtlCTWait, &[1, 7], 0);
        let counted = |success| ok.clone().with(&CtEvent { success, failure: 0 });
        let early = Some("PtlCTWait has returned ahead of its time, when it should have waited".to_owned());
        assert_eq!(reached.objection(Op::PtlCTWait, &counted(7)), None);
        assert_eq!(reached.objection(Op::PtlCTWait, &counted(6)), early);
        assert_eq!(reached.objection(Op::PtlCTWait, &Reply::new(ReturnCode::Interrupted)), early);
        assert_eq!(reached.objection_to_wait(Op::PtlCTWait), early);

        let put = Belief::of(Op::PtlPut, &[1, 7], 0);
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
