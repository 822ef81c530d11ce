//! Bodies on their way: what goes to a server, and what goes to a client.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::exchange::Upload;
use super::relay::RelayBody;
use super::response_stream::{PacedBody, ResponseStreamBody};

/// Why a body could not be passed on to its end.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// The body of a request.
pub enum ToServer {
    Whole(Option<Bytes>),
    /// Too large to wait for; it is looked at as it passes.
    Upload(Box<Upload>),
}

impl ToServer {
    pub fn empty() -> Self {
        Self::Whole(None)
    }
}

impl Body for ToServer {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Upload(upload) => upload.poll_data(cx).map(|data| data.map(|data| data.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Upload(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Upload(upload) => upload.size_hint(),
        }
    }
}

/// The body of an answer.
pub enum ToClient {
    Whole(Option<Bytes>),
    Relay(Box<RelayBody>),
    /// A stream of our own.
    ResponseStream(Box<ResponseStreamBody>),
    /// A large answer of our own.
    Paced(Box<PacedBody>),
}

impl ToClient {
    pub fn empty() -> Self {
        Self::Whole(None)
    }

    /// Whether a client that takes none of it is closed. The relay of one transport waits for its client instead.
    pub fn needs_reader(&self) -> bool {
        matches!(self, Self::ResponseStream(_) | Self::Paced(_))
    }
}

impl Body for ToClient {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Relay(body) => body.poll_data(cx).map(|data| data.map(|data| data.map(Frame::data))),
            Self::ResponseStream(body) => body.poll_data(cx).map(|data| data.map(|data| Ok(Frame::data(data)))),
            Self::Paced(body) => Poll::Ready(body.next_piece().map(|data| Ok(Frame::data(data)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Relay(body) => body.is_end(),
            Self::ResponseStream(body) => body.is_end(),
            Self::Paced(body) => body.left() == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Relay(body) => body.size_hint(),
            Self::ResponseStream(_) => SizeHint::default(),
            Self::Paced(body) => SizeHint::with_exact(body.left() as u64),
        }
    }
}

/// Reads on until the next data of a client's body; trailers are passed over.
pub fn poll_client_data(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
    loop {
        match std::task::ready!(Pin::new(&mut *body).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Poll::Ready(Some(Ok(data)));
                }
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        }
    }
}
