//! What a file says, and where it says it: one tree for every format.

use std::ops::Range;

/// A value, and its bytes in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    pub value: Value,
    pub span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Nothing,
    Flag(bool),
    /// As it is spelled.
    Number(String),
    /// As it reads, without quotes and escapes.
    Text(String),
    List(Vec<Located>),
    /// In the order of the file, repeated keys included.
    Table(Vec<Member>),
    /// Something that only one of the formats has, by what people call it.
    Other(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub key: String,
    pub key_span: Range<usize>,
    pub value: Located,
}

impl Member {
    /// `_comment`: a remark in a format that has no comments.
    pub fn is_comment(&self) -> bool {
        self.key == "_comment"
    }
}

impl Value {
    /// What kind of thing it is, as people say it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Flag(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(what) => what,
        }
    }
}
