//! What is done to an instance, one request each.

use mcp_control::api::{NewBreakpoint, Save};
use mcp_control::{Client, ClientError};

use crate::news::{Act, Acted};

pub(super) async fn carry_out(client: &Client, act: &Act) -> Result<Acted, ClientError> {
    let released = match act {
        Act::Forward(sequence) => client.forward(*sequence).await?,
        Act::ForwardAll => client.forward_all().await?,
        Act::Drop(sequence, drop) => client.drop_held(*sequence, drop).await?,
        Act::Modify(sequence, modify) => client.modify(*sequence, modify).await?,
        Act::Answer(sequence, answer) => client.answer(*sequence, answer).await?,
        Act::Approve(sequence, approve) => client.approve(*sequence, approve).await?,
        Act::Deny(sequence, deny) => client.deny(*sequence, deny).await?,
        Act::Mode(mode) => client.set_mode(*mode).await?,
        Act::AddBreakpoint(new) => return Ok(Acted::Named(client.add_breakpoint(new).await?.name)),
        Act::ChangeBreakpoint(old, new) => {
            let all = client.breakpoints().await?.breakpoints;
            client.remove_breakpoint(old).await?;
            let added = client.add_breakpoint(new).await;
            // The old one is put back if the new one cannot be.
            if let (Err(_), Some(before)) = (&added, all.into_iter().find(|other| other.name == *old)) {
                let before = NewBreakpoint { name: Some(before.name), filter: before.filter };
                client.add_breakpoint(&before).await?;
            }
            return Ok(Acted::Named(added?.name));
        }
        Act::RemoveBreakpoint(name) => return client.remove_breakpoint(name).await.map(|()| Acted::Done),
        Act::Replay { sequence, replay, .. } => {
            return Ok(Acted::Replayed(client.replay(*sequence, replay).await?.sequence));
        }
        Act::Mark(sequence, mark) => return client.mark(*sequence, mark).await.map(|_| Acted::Done),
        Act::RestartServer(id) => return client.restart_server(id).await.map(|_| Acted::Done),
        Act::DisableServer(id) => return client.disable_server(id).await.map(|_| Acted::Done),
        Act::EnableServer(id) => return client.enable_server(id).await.map(|_| Acted::Done),
        Act::Save(file) => {
            let saved = client.save(&Save { file: file.to_string_lossy().into_owned() }).await?;
            return Ok(Acted::Saved { files: saved.files, messages: saved.messages });
        }
    };
    Ok(Acted::Released(released.released))
}
