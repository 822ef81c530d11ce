//! Makes a large session to measure with: `make_session OUT [MESSAGES] [BYTES]`.
//!
//! `OUT` is a session file (`*.json`), a segment (`*.mcpseg`) or a state directory that gets one more
//! session. Half of the messages are calls of tools, the others their answers; about one in a hundred
//! is an error, one in a thousand carries an image. The words in them are as uneven as those of
//! people: few are in every message, most in hardly any. The same arguments make the same messages.

#![expect(clippy::print_stderr, reason = "it is a tool for developers, with nothing hostile to say")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::Bytes;
use mcp_store::segment::{End, RecordHead, RecordKind, SegmentWriter};
use mcp_store::{Direction, Session, SessionHeader, StateDir, Transport, session_file};
use uuid::Uuid;

const TOOLS: [&str; 8] = [
    "read_file",
    "write_file",
    "search",
    "list_directory",
    "get_weather",
    "query_database",
    "create_issue",
    "delete_branch",
];
const SYLLABLES: [&str; 16] =
    ["ba", "co", "du", "fe", "gi", "ha", "ka", "lo", "mi", "ne", "po", "ra", "se", "ti", "vu", "ze"];
/// Words there are; the n-th is about n times rarer than the first.
const WORDS: f64 = 200_000.0;
const STARTED_NS: u64 = 1_793_000_000_000_000_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| args.get(at).map_or(Some(default), |text| text.parse().ok());
    let (Some(out), Some(messages), Some(bytes)) = (args.first(), number(1, 1_000_000), number(2, 300)) else {
        eprintln!("usage: make_session OUT.json|OUT.mcpseg|STATE_DIR [MESSAGES [BYTES]]");
        return ExitCode::from(2);
    };
    match make(Path::new(out), messages, bytes as usize) {
        Ok(made) => {
            eprintln!("{}", made.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(out: &Path, messages: u64, bytes: usize) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let header = SessionHeader {
        server_command: Some("make_session".into()),
        ..SessionHeader::begun(Uuid::new_v4(), STARTED_NS, Transport::Stdio)
    };
    match out.extension().and_then(|extension| extension.to_str()) {
        Some("json") => {
            let segment = out.with_extension("making.mcpseg");
            write_segment(&segment, &header, messages, bytes)?;
            let written = Session::open_segment(&segment).and_then(|session| session_file::write(out, &session));
            std::fs::remove_file(&segment)?;
            written?;
            Ok(out.to_owned())
        }
        Some("mcpseg") => write_segment(out, &header, messages, bytes),
        _ => {
            let state = StateDir::find(Some(out)).expect("a directory was given");
            state.prepare()?;
            write_segment(&state.segment(&header.id), &header, messages, bytes)
        }
    }
}

fn write_segment(
    path: &Path,
    header: &SessionHeader,
    messages: u64,
    bytes: usize,
) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let mut writer = SegmentWriter::create(path, header)?;
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for sequence in 1..=messages {
        let is_answer = sequence % 2 == 0;
        let text = if is_answer { answer(sequence, bytes, &mut chance) } else { call(sequence, bytes, &mut chance) };
        let head = RecordHead {
            kind: RecordKind::Message,
            direction: if is_answer { Direction::ServerToClient } else { Direction::ClientToServer },
            flags: 0,
            conversation: 0,
            sequence,
            time_ns: STARTED_NS + sequence * 1_000_000,
            correlated: if is_answer { sequence - 1 } else { 0 },
        };
        writer.push(&head, &Bytes::from(text));
        if sequence % 64 == 0 {
            writer.commit()?;
        }
    }
    writer.finish(STARTED_NS + (messages + 1) * 1_000_000, &End::default())?;
    Ok(path.to_owned())
}

fn call(sequence: u64, bytes: usize, chance: &mut Chance) -> String {
    let tool = TOOLS[chance.below(TOOLS.len() as u64) as usize];
    let mut text = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{sequence},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{{\"path\":\"/srv/{}/{}.txt\",\"query\":\"",
        chance.word(),
        chance.word(),
    );
    chance.fill(&mut text, bytes);
    text.push_str("\"}}}");
    text
}

fn answer(sequence: u64, bytes: usize, chance: &mut Chance) -> String {
    let id = sequence - 1;
    let mut text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
    match chance.below(1_000) {
        0 => {
            text.push_str("\"result\":{\"content\":[{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"");
            let end = text.len() + 32 * 1024;
            while text.len() < end {
                let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
                text.push(char::from(digits[chance.below(64) as usize]));
            }
            text.push_str("\"}]}}");
        }
        1..20 => {
            text.push_str("\"error\":{\"code\":-32603,\"message\":\"");
            chance.fill(&mut text, bytes.min(120));
            text.push_str("\"}}");
        }
        _ => {
            text.push_str("\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"");
            chance.fill(&mut text, bytes);
            text.push_str("\"}],\"isError\":false}}");
        }
    }
    text
}

/// The same every time (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn word(&mut self) -> String {
        let uniform = self.next() as f64 / u64::MAX as f64;
        let mut rank = WORDS.powf(uniform) as u64;
        let mut word = String::new();
        loop {
            word.push_str(SYLLABLES[(rank % 16) as usize]);
            rank /= 16;
            if rank == 0 {
                return word;
            }
        }
    }

    fn fill(&mut self, text: &mut String, bytes: usize) {
        while text.len() < bytes {
            text.push_str(&self.word());
            text.push(' ');
        }
    }
}
