//! What a request says, read strictly: an unknown member is a mistake that should be heard of, and
//! nothing is read past its bound.

use std::time::Duration;

use axum::BoxError;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use mcp_control::api::Code;
use serde::de::DeserializeOwned;

use super::reply::Refusal;
use super::shared::Shared;

/// A body without a message in it: names, a filter, notes.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a body beyond the message in it, which may be as long as any: the members around it, and its escapes.
const AROUND_MESSAGE: usize = 64 * 1024;
/// Time for a body to arrive: it comes from this machine.
const BODY_FOR: Duration = Duration::from_secs(30);

/// A body of JSON without a message in it.
pub(super) struct Small<T>(pub T);

/// A body of JSON that carries a message.
pub(super) struct Large<T>(pub T);

/// A small body that may be left out.
pub(super) struct Perhaps<T>(pub T);

/// A body that may be left out, and may carry a message.
pub(super) struct PerhapsLarge<T>(pub T);

/// The query of the request.
pub(super) struct Query<T>(pub T);

/// The sequence in the path.
pub(crate) struct Sequence(pub u64);

impl<T: DeserializeOwned> FromRequest<Shared> for Small<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &Shared) -> Result<Self, Refusal> {
        small(request, BODY_FOR).await.map(Self)
    }
}

impl<T: DeserializeOwned> FromRequest<Shared> for Large<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, shared: &Shared) -> Result<Self, Refusal> {
        let (headers, body) = read(request, shared.message_bytes_max.saturating_add(AROUND_MESSAGE), BODY_FOR).await?;
        check_type(&headers)?;
        parse(&body).map(Self)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<Shared> for Perhaps<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &Shared) -> Result<Self, Refusal> {
        perhaps(request, BODY_BYTES_MAX).await.map(Self)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<Shared> for PerhapsLarge<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, shared: &Shared) -> Result<Self, Refusal> {
        perhaps(request, shared.message_bytes_max.saturating_add(AROUND_MESSAGE)).await.map(Self)
    }
}

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let query = axum::extract::Query::try_from_uri(&parts.uri);
        query.map(|query| Self(query.0)).map_err(|error| Refusal::bad(plain(&error.body_text())))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Sequence {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let text = axum::extract::Path::<String>::from_request_parts(parts, state).await;
        let text = text.map_err(|_| Refusal::not_found("there is no such message"))?.0;
        // A sign or a blank is no part of a sequence, whatever a parser makes of it.
        let sequence = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        sequence.map(Self).ok_or_else(|| Refusal::not_found("the path needs the sequence of a message: a number"))
    }
}

/// A small body that has to arrive within a time.
pub(super) async fn small<T: DeserializeOwned>(request: Request, within: Duration) -> Result<T, Refusal> {
    let (headers, body) = read(request, BODY_BYTES_MAX, within).await?;
    check_type(&headers)?;
    parse(&body)
}

async fn perhaps<T: DeserializeOwned + Default>(request: Request, limit: usize) -> Result<T, Refusal> {
    let (headers, body) = read(request, limit, BODY_FOR).await?;
    if body.is_empty() {
        return Ok(T::default());
    }
    check_type(&headers)?;
    parse(&body)
}

async fn read(request: Request, limit: usize, within: Duration) -> Result<(HeaderMap, Bytes), Refusal> {
    let (parts, body) = request.into_parts();
    match whole(body, limit, within).await? {
        Ok(body) => Ok((parts.headers, body)),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::too_large(limit)),
        Err(_) => Err(Refusal::bad("the body broke off")),
    }
}

/// The whole body. Whoever does not send it is not waited for: connections are few.
async fn whole(body: Body, limit: usize, within: Duration) -> Result<Result<Bytes, BoxError>, Refusal> {
    let whole = tokio::time::timeout(within, Limited::new(body, limit).collect()).await;
    let timeout = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, Code::BadRequest, "the body did not arrive in time");
    Ok(whole.map_err(timeout)?.map(|body| body.to_bytes()))
}

/// Anything else could come from a form on somebody's page.
fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (given, more) = (types.next().and_then(|given| given.to_str().ok()), types.next());
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if more.is_some() || !essence.eq_ignore_ascii_case("application/json") {
        let what = "the body must be application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::UnsupportedMediaType, what));
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    // A list would be taken for the members in their order.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Refusal::bad("the body must be a JSON object"));
    }
    serde_json::from_slice(body).map_err(|error| Refusal::bad(format!("the body is not what is taken here: {error}")))
}

/// The part of an error that says what is wrong.
fn plain(error: &str) -> String {
    let what = error.strip_prefix("Failed to deserialize query string: ").unwrap_or(error);
    format!("the query is not what is taken here: {what}")
}

/// Reads a body to its end where none is wanted, so that the connection can be used again.
pub(super) async fn no_body(body: Body) -> Result<(), Refusal> {
    match whole(body, 0, BODY_FOR).await? {
        Ok(_) => Ok(()),
        Err(_) => Err(Refusal::bad("no body is taken here")),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use tokio::time::Instant;

    use super::*;

    /// A body that was announced and never comes.
    struct Never;

    impl hyper::body::Body for Never {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_body_that_never_comes() {
        let began = Instant::now();
        assert_eq!(no_body(Body::new(Never)).await.unwrap_err().status, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(began.elapsed(), BODY_FOR);
        let soon = Duration::from_secs(1);
        let refused = small::<serde_json::Value>(Request::new(Body::new(Never)), soon).await.unwrap_err();
        assert_eq!((refused.status, began.elapsed()), (StatusCode::REQUEST_TIMEOUT, BODY_FOR + soon));
    }

    #[tokio::test]
    async fn a_body_where_none_is_taken_is_refused() {
        assert!(no_body(Body::empty()).await.is_ok());
        assert_eq!(no_body(Body::from("{}")).await.unwrap_err().status, StatusCode::BAD_REQUEST);
    }
}
