//! What messages made of a body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde_json::{Value, json};

/// Kept of one body. A stream can go on for a day; what is beyond this is counted.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

#[derive(Default)]
pub(super) struct Body {
    parts: Vec<(Bytes, Option<String>)>,
    pub sequences: Vec<u64>,
    pub bytes: usize,
    left_out: u64,
}

impl Body {
    pub(super) fn add(&mut self, sequence: u64, raw: &Bytes, event_id: Option<&str>) {
        if self.bytes + raw.len() > BODY_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        self.bytes += raw.len();
        self.sequences.push(sequence);
        self.parts.push((raw.clone(), event_id.map(str::to_owned)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// What is not there, in words.
    pub(super) fn missing(&self) -> Option<String> {
        (self.left_out > 0).then(|| format!("{} messages of this body are left out: it is too large", self.left_out))
    }

    /// As it was on the wire, or nearly: one event a message in a stream.
    pub(super) fn wire(&self, is_stream: bool) -> Vec<u8> {
        let mut wire = Vec::with_capacity(self.bytes);
        for (raw, event_id) in &self.parts {
            if !is_stream {
                wire.extend_from_slice(raw);
                continue;
            }
            if let Some(id) = event_id {
                wire.extend_from_slice(format!("id: {id}\n").as_bytes());
            }
            for line in raw.split(|&byte| byte == b'\n') {
                wire.extend_from_slice(b"data: ");
                wire.extend_from_slice(line);
                wire.push(b'\n');
            }
            wire.push(b'\n');
        }
        wire
    }
}

pub(super) fn post_data(body: &[u8], media: &str) -> Value {
    match std::str::from_utf8(body) {
        Ok(text) => json!({ "mimeType": media, "text": text }),
        Err(_) => json!({
            "mimeType": media,
            "text": String::from_utf8_lossy(body),
            "_base64": BASE64.encode(body),
            "comment": "not UTF-8; `_base64` has the bytes",
        }),
    }
}

pub(super) fn content(body: &[u8], media: &str) -> Value {
    match std::str::from_utf8(body) {
        Ok("") => json!({ "size": 0, "mimeType": media }),
        Ok(text) => json!({ "size": body.len(), "mimeType": media, "text": text }),
        Err(_) => {
            json!({ "size": body.len(), "mimeType": media, "text": BASE64.encode(body), "encoding": "base64" })
        }
    }
}
