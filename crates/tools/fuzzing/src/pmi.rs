// SPDX-License-Identifier: Apache-2.0
//! PMI-1 clients of the simulator that send arbitrary bytes.
//!
//! Each line of an input is a message of a client. Its first byte chooses the client, and a letter there omits the end
//! of the line; the low bits of the second byte are the binary logarithm of the number of repetitions. A `#` in the
//! rest becomes the number of the repetition.

use ranks::pmi::{Answer, Board, PUBLISHED, SPACE, Talk, UNANSWERED};

/// Number of clients of the board.
const CLIENTS: usize = 2;
/// Number of ranks that fit on the board.
const RANKS: usize = 1;
/// Number of bytes sent by all clients together, which exceeds the board.
const SENT: usize = 3 << 19;
/// Maximum number of bytes that arrive at the same time.
const CHUNK: usize = 2048;
/// Maximum length of an accepted line, and of the data behind it.
const LINE: usize = 16 * 1024 + CHUNK;
/// Maximum number of bytes of an answer: a whole line, with each non-text byte as three, and the words around it.
const ANSWER: usize = 3 * LINE + 128;

/// Runs an input.
pub fn clients(bytes: &[u8]) {
    let (answers, sent) = play(bytes, CHUNK);
    // No line is too long, so the result does not depend on the splitting of the bytes.
    if sent < LINE - CHUNK {
        assert_eq!(play(bytes, 7).0, answers, "the same bytes in small pieces");
    }
}

/// Returns the answers to each client, and the number of bytes sent.
fn play(bytes: &[u8], chunk: usize) -> ([Vec<Answer>; CLIENTS], usize) {
    let mut board = Board::on_nodes(&[0; RANKS]);
    let mut talks = [(); CLIENTS].map(|()| Some(Talk::default()));
    let mut answers = [const { Vec::new() }; CLIENTS];
    let mut sent = 0;
    for piece in bytes.split(|&byte| byte == b'\n') {
        let [who, times, text @ ..] = piece else { continue };
        let rank = usize::from(*who) % CLIENTS;
        for count in 0..1 << (times & 15).min(11) {
            let mut said = text.split(|&byte| byte == b'#').collect::<Vec<_>>().join(format!("{count}").as_bytes());
            if !who.is_ascii_alphabetic() {
                said.push(b'\n');
            }
            sent += said.len();
            if sent > SENT {
                break;
            }
            let Some(talk) = &mut talks[rank] else { break };
            // An error closes the connection.
            if said.chunks(chunk).try_for_each(|chunk| hear(talk, &mut board, chunk, &mut answers[rank])).is_err() {
                talks[rank] = None;
            }
        }
        let kept = talks[rank].as_ref().map_or(0, Talk::kept);
        assert!(kept <= LINE + UNANSWERED, "{kept} bytes of a client are kept");
    }
    recount(&mut board);
    // Names of boards differ.
    let space = board.known_space().unwrap_or(SPACE);
    for answer in answers.iter_mut().flatten() {
        if let Answer::Line(text) | Answer::Refused(text, _) = answer {
            *text = text.replace(space, SPACE);
        }
    }
    (answers, sent)
}

/// Sends bytes to the simulator.
fn hear(talk: &mut Talk, board: &mut Board, bytes: &[u8], answers: &mut Vec<Answer>) -> Result<(), String> {
    talk.hear(bytes)?;
    let mut ends = bytes.iter().filter(|&&byte| byte == b'\n').count();
    while let Some(line) = talk.line() {
        ends = ends.checked_sub(1).expect("a line is given for each end of a line");
        assert!(!line.contains('\n'), "{line:?} is one line");
        let answer = talk.answer(&line, board)?;
        if let Answer::Line(text) | Answer::Refused(text, _) = &answer {
            assert!(text.starts_with("cmd=") && !text.contains('\n'), "{text:?} is one line");
            assert!(text.len() <= ANSWER, "an answer of {} bytes", text.len());
        }
        answers.push(answer);
    }
    assert_eq!(ends, 0, "lines that have come and are not given");
    Ok(())
}

/// Reads all published data, by index and by key.
fn recount(board: &mut Board) {
    let mut published = 0;
    for index in 0.. {
        let answer = ask(board, &[&format!("cmd=getbyidx kvsname={SPACE} idx={index}")]);
        let Some(pair) = answer.strip_prefix(&format!("cmd=getbyidx_results rc=0 nextidx={} key=", index + 1)) else {
            assert_eq!(answer, "cmd=getbyidx_results rc=-2 reason=no_more_keyvals");
            break;
        };
        // Keys of an `mcmd` may contain text that looks like a value.
        let is_there = pair.match_indices(" val=").any(|(end, between)| {
            let key = format!("key={}", &pair[..end]);
            let answer = ask(board, &["mcmd=get", &format!("kvsname={SPACE}"), &key, "endcmd"]);
            answer.strip_prefix("cmd=get_result rc=0 msg=success value=") == Some(&pair[end + between.len()..])
        });
        assert!(is_there, "{pair:?} by its key");
        published += pair.len() - " val=".len();
    }
    assert!(published <= PUBLISHED * RANKS, "{published} bytes are published");
}

/// Returns the answer to the last of some lines.
fn ask(board: &mut Board, lines: &[&str]) -> String {
    let mut talk = Talk::default();
    match lines.iter().map(|line| talk.answer(line, board)).last() {
        Some(Ok(Answer::Line(answer))) => answer,
        other => panic!("{lines:?}: {other:?}"),
    }
}
