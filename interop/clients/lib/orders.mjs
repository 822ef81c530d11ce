// A client that does what it is told, for whoever acts from elsewhere while a call is under way.
//
// An order is a line of JSON on stdin: `{"call": 1, "name": …, "arguments": …}`, or `{"cancel": 1}`; `{"list": 2}`
// lists the tools. What came of a call is one on stdout, with all that the server has asked the client so far. `{"form": RESULT}` is what forms are
// answered with from then on, those that are open too; `{"form": null}` leaves them open. The end of stdin is the end.

import { createInterface } from 'node:readline';

const say = (what) => process.stdout.write(JSON.stringify(what) + '\n');

async function call(session, { call: number, name, arguments: args, patience_seconds: patience }, abort) {
  const options = { signal: abort.signal, ...(patience && { timeout: patience * 1000 }) };
  try {
    say({ call: number, result: await session.call({ name, arguments: args }, options), asked: session.asked });
  } catch (error) {
    if (abort.signal.aborted) say({ call: number, cancelled: true });
    else say({ call: number, error: { code: error.code, message: error.message }, asked: session.asked });
  }
}

/** Forms as somebody fills them in, or does not. */
function fillIn(session) {
  let form;
  const open = [];
  session.answerForm = (params, answer) => {
    if (form === null) return new Promise((resolve) => open.push(resolve));
    return form ?? answer(params);
  };
  return (result) => {
    form = result;
    if (form) open.splice(0).forEach((resolve) => resolve(form));
  };
}

export async function obey(session) {
  const aborts = new Map();
  const fill = fillIn(session);
  say({ connected: session.describe().version ?? true });
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    if ('call' in order) {
      aborts.set(order.call, new AbortController());
      call(session, order, aborts.get(order.call));
    } else if ('list' in order) {
      say({ call: order.list, result: await session.client.listTools() });
    } else if ('form' in order) {
      fill(order.form);
    } else {
      aborts.get(order.cancel).abort('no longer needed');
    }
  }
}
