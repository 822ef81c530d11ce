//! State that all HTTP exchanges of a process share, towards clients and towards servers.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use foldhash::fast::RandomState;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use mcp_link::Runtime;
use mcp_store::HeadKey;
use mcp_wire::mirror::ToolParams;

use super::beats::Beats;
use super::bodies::Bodies;

pub struct HttpState {
    pub runtime: Rc<Runtime>,
    /// Bodies of clients on their way in.
    pub bodies: Rc<Bodies>,
    pub beats: Rc<Beats>,
    /// Parameters of tools that headers must repeat, as the server lists them.
    pub tools: Rc<RefCell<ToolParams>>,
    /// Hashes heads, to find those that were recorded before.
    pub hash_state: RandomState,
    pub scratch: RefCell<Vec<u8>>,
    /// The last response head that has no more than a content type: nearly all are alike.
    pub plain_head: RefCell<Option<PlainHead>>,
}

/// A response head of a status and a content type, with its key in the recording.
pub struct PlainHead {
    pub status: StatusCode,
    pub media_type: HeaderValue,
    pub key: HeadKey,
}

impl HttpState {
    pub fn new(runtime: &Rc<Runtime>) -> Rc<Self> {
        Rc::new(Self {
            runtime: Rc::clone(runtime),
            bodies: Bodies::new(runtime.message_bytes_max),
            beats: Rc::default(),
            tools: Rc::default(),
            hash_state: RandomState::default(),
            scratch: RefCell::default(),
            plain_head: RefCell::default(),
        })
    }
}

impl Deref for HttpState {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}
