//! Answers: what was asked for as JSON, or why not.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use mcp_control::api::{ApiError, Code, Fault};
use serde::Serialize;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An answer that is no success.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub status: StatusCode,
    pub code: Code,
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: Code, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::BadRequest, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, Code::Forbidden, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, Code::NotFound, message)
    }

    /// It was understood, and cannot be done as things stand.
    pub(crate) fn not_possible(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, Code::NotPossible, message)
    }

    /// The rules do not let it pass.
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, Code::Denied, message)
    }

    pub(crate) fn locked(message: impl Into<String>) -> Self {
        Self::new(StatusCode::LOCKED, Code::Locked, message)
    }

    pub(crate) fn too_many(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::TooMany, message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("the body is longer than the {limit} bytes that are taken here");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, Code::TooLarge, message)
    }

    pub(crate) fn ending() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::Ending, "the proxy is ending")
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::Internal, message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        let error = ApiError { error: Fault { code: self.code, message: self.message } };
        (self.status, Json(error)).into_response()
    }
}

/// A body of JSON.
pub(crate) struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response<Body> {
        let json = serde_json::to_vec(&self.0).expect("plain data always serialises");
        ([(header::CONTENT_TYPE, JSON)], json).into_response()
    }
}

pub(super) type Answer<T> = Result<Json<T>, Refusal>;
