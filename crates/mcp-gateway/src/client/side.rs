//! A client of the gateway as the server side of its link: the gateway is the server of each of its clients.

use mcp_link::{Passed, ServerSide};
use mcp_wire::Cut;

use super::GatewayClient;

impl ServerSide for GatewayClient {
    fn take(&self, passed: Passed<'_>) {
        self.take_message(&passed.message(), passed.sequence);
    }

    fn cleanse(&self, cuts: &mut [Cut]) {
        self.look_at(cuts);
    }

    /// Nothing is to be waited for where the client only listened.
    fn input_ended(&self) -> bool {
        self.end_listening();
        false
    }

    fn end(&self) {
        self.leave();
    }
}
