// A client that does what it is told, for whoever acts from elsewhere while a call is under way.
//
// An order is a line of JSON on stdin: `{"call": 1, "name": …, "arguments": …}`, or `{"cancel": 1}`. What came of a
// call is one on stdout, with all that the server has asked the client so far. The end of stdin is the end.

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

export async function obey(session) {
  const aborts = new Map();
  say({ connected: session.describe().version ?? true });
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    if ('call' in order) {
      aborts.set(order.call, new AbortController());
      call(session, order, aborts.get(order.call));
    } else {
      aborts.get(order.cancel).abort('no longer needed');
    }
  }
}
