//! The event stream of an instance, event by event.

use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::ClientError;
use super::connect::broken;
use crate::api::Event;

/// The longest event. An instance leaves out what would make one longer.
const EVENT_BYTES_MAX: usize = 64 << 20;

pub struct Events {
    body: Incoming,
    text: BytesMut,
    /// Up to here no line ends.
    searched: usize,
    name: String,
    data: Vec<u8>,
}

impl Events {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, text: BytesMut::new(), searched: 0, name: String::new(), data: Vec::new() }
    }

    /// The next event; `None` once the instance ended the stream. Nothing is lost if this is dropped.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            if let Some(event) = self.read_event()? {
                return Ok(Some(event));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            if let Ok(data) = frame.map_err(broken)?.into_data() {
                self.text.extend_from_slice(&data);
            }
            if self.text.len() + self.data.len() > EVENT_BYTES_MAX {
                return Err(ClientError::TooMuch);
            }
        }
    }

    /// An event that has come already, if one has.
    pub fn ready(&mut self) -> Result<Option<Event>, ClientError> {
        self.read_event()
    }

    fn read_event(&mut self) -> Result<Option<Event>, ClientError> {
        while let Some(at) = self.text[self.searched..].iter().position(|&byte| byte == b'\n') {
            let line = self.text.split_to(self.searched + at);
            self.text.advance(1);
            self.searched = 0;
            if line.is_empty() {
                let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
                if let Some(event) = Event::parse(&name, &data).map_err(ClientError::NotUnderstood)? {
                    return Ok(Some(event));
                }
            } else {
                self.read_line(&line);
            }
        }
        self.searched = self.text.len();
        Ok(None)
    }

    /// Comments and ids are passed over: a message says its sequence itself.
    fn read_line(&mut self, line: &[u8]) {
        if let Some(name) = line.strip_prefix(b"event: ") {
            self.name = String::from_utf8_lossy(name).into_owned();
        } else if let Some(data) = line.strip_prefix(b"data: ") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data);
        }
    }
}
