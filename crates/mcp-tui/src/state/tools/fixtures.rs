//! Lists for tests.

use mcp_control::api::{Message, Page};

use crate::app::App;
use crate::news::{Asker, Effect, News, Ticket};
use crate::testing::{app, message, press};

/// The result of a list with these items.
pub(crate) fn listing(member: &str, items: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"{member}":[{items}]}}}}"#)
}

/// The answer to a request for a list, which was the message before it.
pub(crate) fn listed(sequence: u64, method: &str, raw: &str) -> Message {
    let mut message = message(sequence, raw);
    (message.method, message.answers) = (Some(method.to_owned()), Some(sequence - 1));
    message
}

/// The page that was asked for, if one was.
pub(crate) fn asked(app: &mut App) -> Option<Ticket> {
    app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Page { ticket, .. } if ticket.asker == Asker::Tools => Some(ticket),
        _ => None,
    })
}

pub(crate) fn answer(app: &mut App, messages: Vec<Message>) {
    let ticket = asked(app).expect("lists are asked for");
    app.hear(News::Page(ticket, Ok(Page { messages, ..Page::default() })));
}

/// The screen with what these lists have.
pub(crate) fn shown(lists: Vec<Message>) -> App {
    let mut app = app();
    press(&mut app, "5");
    answer(&mut app, lists);
    app
}
