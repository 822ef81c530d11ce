//! How faces and running proxies meet. Uses none of the other crates: whoever speaks to an instance
//! needs only this one.

pub mod instances;

pub use instances::Instances;
