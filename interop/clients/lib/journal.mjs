// Everything that happened on one connection, in order, and a way to wait for it instead of sleeping.

export const PATIENCE_MS = 20_000; // far beyond what any step takes; running out of it is a failure, never a pause

export class Journal {
  received = []; // messages as the transport delivered them, before the SDK looked at them
  sent = [];
  #waiting = new Set();

  /** Listens on both directions of a transport that is not started yet. */
  tap(transport) {
    let deliver;
    const observed = (message, extra) => {
      this.received.push(message);
      deliver(message, extra);
      this.poke();
    };
    // The SDK assigns its own handler while connecting, so the property itself has to be ours. Before that it
    // must read as unset: what the SDK finds there it calls too.
    Object.defineProperty(transport, 'onmessage', { get: () => deliver && observed, set: (fn) => (deliver = fn) });
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      this.sent.push(message);
      return send(message, options);
    };
  }

  /** Checks again what callers of `until` wait for. */
  poke() {
    for (const check of this.#waiting) check();
  }

  until(what, isTrue, patienceMs = PATIENCE_MS) {
    return new Promise((resolve, reject) => {
      const settle = (finish) => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        finish();
      };
      const check = () => isTrue() && settle(resolve);
      const timer = setTimeout(() => settle(() => reject(new Error(`waited in vain for ${what}`))), patienceMs);
      this.#waiting.add(check);
      check();
    });
  }

  /** Notifications of one method that arrived after `mark`. */
  notifications(method, mark = 0) {
    return this.received.slice(mark).filter((message) => message.method === method).map((message) => message.params);
  }

  /** How often the server spoke up by itself after `mark`, and the questions it put into results. */
  summary(mark) {
    const heard = {};
    const questions = [];
    for (const message of this.received.slice(mark)) {
      if (message.method) heard[message.method] = (heard[message.method] ?? 0) + 1;
      if (message.result?.resultType === 'input_required') questions.push(message.result);
    }
    return { heard, ...(questions.length && { questions }) };
  }
}
