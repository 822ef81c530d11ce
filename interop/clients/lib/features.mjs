// What a TypeScript client does to a server, feature by feature. Both SDK generations share this file; the few
// places where they differ are methods of the `session` that the client passes in.

import { createHash } from 'node:crypto';

import { PATIENCE_MS } from './journal.mjs';

const FEATURE_LIMIT_MS = PATIENCE_MS * 2;
const ASKED_OFTEN = 25;
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const echo = (profile, message) => ({ name: profile.echo, arguments: { message } });
const textOf = (result) => result.content?.[0]?.text;

/** The server's refusal, as an error or in a result. An error of the SDK's own making, a timeout say, is none. */
async function refusal(journal, promise) {
  try {
    const result = await promise;
    if (!result.isError) throw new Error('not refused');
    return { result };
  } catch (error) {
    if (!journal.received.some((message) => message.error && message.error.code === error.code)) throw error;
    return { error: { code: error.code, message: error.message, data: error.data } };
  }
}

async function each(items, observe) {
  const seen = [];
  for (const item of items) seen.push(await observe(item));
  return seen;
}

/** Calls that have to work: two equal failures would otherwise pass for agreement. */
const succeedEach = (session, calls) => each(calls, async (call) => {
  const result = await session.call(call);
  if (result.isError) throw new Error(`${call.name} failed: ${textOf(result)}`);
  return result;
});

/**
 * Makes a call that has the server announce something, and waits until `isHeard`.
 *
 * One server acknowledges a subscription a moment before it keeps it, so that the first announcement can get
 * lost. Then, and only then, ask again: over HTTP an announcement may also come later than the call's result.
 */
async function provoke({ session, journal, profile }, call, what, isHeard) {
  const tries = profile.acknowledges_early ? 5 : 1;
  for (let left = tries; ; left--) {
    const result = await session.call(call);
    try {
      await journal.until(what, isHeard, PATIENCE_MS / tries);
      return result;
    } catch (error) {
      if (left === 1) throw error;
    }
  }
}

/** The server asks while a call runs; what it asked and what it made of the answers is the observation. */
const questions = (kind) => async ({ session, profile }) => {
  const mark = session.asked.length;
  const results = await succeedEach(session, profile[kind]);
  if (session.asked.length === mark) throw new Error('the server asked nothing');
  return { results, asked: session.asked.slice(mark) };
};

/** A call that is cancelled once it runs, or as soon as that is likely. */
async function callAndCancel({ session, journal, profile }) {
  const { cancel } = profile;
  const abort = new AbortController();
  const mark = journal.received.length;
  const isRunning = () => journal.notifications('notifications/progress', mark).length > 0;
  const call = session.call(cancel.call, { signal: abort.signal, onprogress: () => {} });
  const ended = call.then(() => { throw new Error('not cancelled'); }, (error) => error.name);
  ended.catch(() => {});
  if (cancel.running === 'progress') await journal.until('the call to run', isRunning);
  else await session.call(echo(profile, 'is it running?'));
  const { id } = journal.sent.findLast((message) => message.params?.name === cancel.call.name);
  abort.abort('no longer needed');
  return { id, rejectedWith: await ended };
}

/** What the server says about the cancellation, once it has heard of it. */
async function testimony(context) {
  const { session, profile: { cancel: { witness } } } = context;
  const deadline = Date.now() + PATIENCE_MS;
  for (let asked = 1; ; asked++) {
    const said = textOf(await session.call(witness.call));
    if (witness.at_least === undefined) return said;
    if (Number(said) >= witness.at_least) return witness.at_least;
    if (Date.now() > deadline) throw new Error('the server never heard of it');
    // Over HTTP nothing keeps a call before its cancellation. One that was overtaken is ignored: try another.
    if (asked % ASKED_OFTEN === 0) await callAndCancel(context);
  }
}

/** [name, whether the profile has it, what to do]; in this order. */
const FEATURES = [
  ['handshake', () => true, ({ session, journal }) => ({
    ...session.describe(),
    answer: journal.received.find((message) => message.result)?.result ?? session.client.getDiscoverResult(),
  })],

  ['roots', (p) => p.roots, async ({ session, journal, profile: { roots } }) => {
    // One server asks by itself, a moment after the handshake, and logs what it got. Until then
    // its messages could land in any feature, so this one comes first. Of several behind one peer, all ask then.
    const logged = () => session.logged.filter(({ data }) => `${data}`.includes(roots.unsolicited_then_logged));
    if (roots.unsolicited_then_logged) await journal.until('unsolicited roots', () => logged().length >= session.unsolicited);
    const results = await succeedEach(session, roots.calls);
    if (session.asked.length === 0) throw new Error('the server asked nothing');
    return { results, asked: session.asked.slice(session.begin.asked) };
  }],

  ['ping', (p, era) => era === 'legacy', ({ session }) => session.client.ping()],
  ['discover', (p, era) => era === 'modern', ({ session }) => session.client.discover()],
  ['tools-list', () => true, ({ session }) => session.client.listTools()],
  ['request-bytes', (p) => p.request_bytes, async ({ session, profile }) =>
    Buffer.from(textOf(await session.call(profile.request_bytes)), 'base64').toString()],
  ['header-parameters', (p) => p.header_parameters, async ({ session, profile }) =>
    succeedEach(session, [profile.header_parameters])],
  ['tool-call', (p) => p.calls, ({ session, profile }) =>
    succeedEach(session, [...(profile.echo ? [echo(profile, 'hello')] : []), ...profile.calls])],
  // Every resource that a result links to or has in it, under the address that is given there.
  ['link-read', (p) => p.links, async ({ session, profile }) => {
    const contents = (await succeedEach(session, profile.links)).flatMap((result) => result.content);
    const links = contents.filter(({ type }) => type === 'resource' || type === 'resource_link');
    return each(links, ({ resource, uri }) => session.client.readResource({ uri: resource?.uri ?? uri }));
  }],
  ['tool-error', (p) => p.errors, ({ session, journal, profile }) =>
    each(profile.errors, (call) => refusal(journal, session.call(call)))],
  ['structured', (p) => p.structured, async ({ session, profile }) => {
    const result = await session.call(profile.structured);
    if (!result.structuredContent) throw new Error('nothing structured');
    return result;
  }],
  ['protocol-error', (p) => p.missing, ({ session, journal, profile }) =>
    refusal(journal, session.client.readResource({ uri: profile.missing }))],

  ['concurrent-calls', (p) => p.echo, async ({ session, profile }) => {
    const results = await Promise.all(Array.from({ length: 20 }, (_, i) => session.call(echo(profile, `call ${i}`))));
    return results.map(textOf);
  }],

  ['large-message', (p) => p.echo, async ({ session, profile }) => {
    const text = textOf(await session.call(echo(profile, '0123456789abcdé '.repeat(20_000))));
    return { length: text.length, sha256: createHash('sha256').update(text).digest('hex') };
  }],

  ['progress', (p) => p.progress, async ({ session, journal, profile: { progress } }) => {
    const mark = journal.received.length;
    const delivered = [];
    const onWire = () => journal.notifications('notifications/progress', mark);
    const running = session.call(progress.call, {
      onprogress: (update) => {
        delivered.push(update);
        journal.poke();
      },
    });
    running.catch(() => {}); // its failure is seen below; until then a missing update is the better story
    await journal.until('progress', () => onWire().length >= progress.count);
    if (progress.release) {
      await journal.until('progress callbacks', () => delivered.length >= progress.count);
      await session.call(progress.release);
    }
    const result = await running;
    const tokens = journal.sent.map((message) => message.params?._meta?.progressToken);
    if (onWire().some((update) => !tokens.includes(update.progressToken))) throw new Error('progress of something that nobody called');
    // Without a release the last update shares a read with the response now and then, and the SDK then drops it.
    return { result, progress: onWire(), ...(progress.release && { delivered }) };
  }],

  ['logging', (p) => p.logging, async ({ session, journal, era, profile: { logging } }) => {
    if (era === 'legacy') await session.client.setLoggingLevel(logging.level);
    const mark = session.logged.length;
    const meta = era === 'modern' ? { _meta: { [LOG_LEVEL]: logging.level } } : {};
    await each(logging.calls, (call) => session.call({ ...call, ...meta }));
    await journal.until('log messages', () => session.logged.length >= mark + logging.count);
    await each(logging.after ?? [], (call) => session.call(call));
    const messages = session.logged.slice(mark);
    return logging.random ? messages.map(({ level, data }) => ({ keys: [typeof level, typeof data] })) : messages;
  }],

  ['sampling', (p) => p.sampling, questions('sampling')],
  ['elicitation', (p) => p.elicitation, questions('elicitation')],
  ['rounds', (p) => p.rounds, questions('rounds')],
  ['resources-list', () => true, ({ session }) => session.client.listResources()],
  ['resource-templates', () => true, ({ session }) => session.client.listResourceTemplates()],
  ['resource-read', (p) => p.reads, ({ session, profile }) => each(profile.reads, (uri) => session.client.readResource({ uri }))],
  ['prompts-list', () => true, ({ session }) => session.client.listPrompts()],
  ['prompt-get', (p) => p.prompts, ({ session, profile }) => each(profile.prompts, (prompt) => session.client.getPrompt(prompt))],
  ['completion', (p) => p.completions, ({ session, profile }) => each(profile.completions, ({ ref, argument, context }) =>
    session.client.complete({ ref, argument, ...(context && { context: { arguments: context } }) }))],

  ['subscription', (p) => p.subscription, async ({ session, journal, profile, era }) => {
    const { uri, touch } = profile.subscription;
    const [mark, wireMark] = [session.updated.length, journal.received.length];
    const isOnWire = () => journal.notifications('notifications/resources/updated', wireMark).length > 0;
    const listening = era === 'modern' ? await session.client.listen({ resourceSubscriptions: [uri] }) : undefined;
    if (!listening) await session.client.subscribeResource({ uri });
    await provoke({ session, journal, profile }, touch[0], 'a resource update', isOnWire);
    await journal.until('its delivery', () => session.updated.length > mark);
    await each(touch.slice(1), (call) => session.call(call));
    if (listening) await listening.close();
    else await session.client.unsubscribeResource({ uri });
    await each(profile.subscription.settle ?? [], (call) => session.call(call));
    await each(touch, (call) => session.call(call)); // nobody listens any more
    return {
      updates: session.updated.slice(mark),
      ...(listening && { granted: listening.honoredFilter, closed: await listening.closed }),
    };
  }],

  ['server-closes-subscription', (p, era) => era === 'modern' && p.subscription?.server_closes,
    async ({ session, journal, profile }) => {
      const listening = await session.client.listen({ promptsListChanged: true });
      let closed;
      listening.closed.then((how) => {
        closed = how;
        journal.poke();
      });
      await provoke({ session, journal, profile }, profile.subscription.server_closes, 'the end of the subscription', () => closed);
      return { granted: listening.honoredFilter, closed };
    }],

  ['list-changed', (p) => p.growth, async ({ session, journal, profile, era }) => {
    const { kind, call } = profile.growth;
    const mark = journal.received.length;
    const isAnnounced = () => journal.notifications(`notifications/${kind}/list_changed`, mark).length > 0;
    const listening = era === 'modern' ? await session.client.listen({ [`${kind}ListChanged`]: true }) : undefined;
    const result = await provoke({ session, journal, profile }, call, 'a changed list', isAnnounced);
    await listening?.close();
    const list = kind === 'tools' ? 'listTools' : 'listResources';
    const { [kind]: items } = await session.client[list]({}, { cacheMode: 'refresh' });
    return { result, [kind]: items.map(({ name, uri, _meta }) => ({ name, uri, _meta })) };
  }],

  // Last, because polling for its effect spends an unknown number of request ids.
  ['cancellation', (p) => p.cancel, async (context) => {
    const { session, journal, profile } = context;
    const { cancel } = profile;
    const { id, rejectedWith } = await callAndCancel(context);
    const seen = { rejectedWith, ...(cancel.witness && { witness: await testimony(context) }) };
    // A server that works on to the end must at least keep its answer to itself. Another call that takes as long, and
    // began later, tells when that would have come.
    if (cancel.outlast) await session.call(cancel.outlast);
    seen.afterwards = await session.call(echo(profile, 'still there'));
    // Over HTTP one server ends the exchange with an error, which is allowed, and which the SDK ignores.
    if (journal.received.some((message) => message.id === id && message.result)) throw new Error('answered all the same');
    seen.told = journal.sent.some((m) => m.method === 'notifications/cancelled');
    return seen;
  }],
];

const AFTER_FALLBACK = ['handshake', 'roots', 'tools-list', 'tool-call'];

/** Whatever a feature waits for, and be it a promise of the SDK that never settles, it does not wait forever. */
function limited(promise) {
  let timer;
  const limit = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error('took too long')), FEATURE_LIMIT_MS)));
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

/** Runs the features that are `wanted` (by default all) and have data in the profile; a failure names its feature. */
export async function observe({ session, journal, name: of, profile, era, wanted }) {
  const features = {};
  wanted = profile.features ?? wanted;
  for (const [name, isCovered, act] of FEATURES) {
    if (!isCovered(profile, era) || (era === 'auto' && !AFTER_FALLBACK.includes(name))) continue;
    if (wanted && !wanted.includes(name)) continue;
    const mark = journal.received.length;
    try {
      const observed = await limited(act({ session, journal, profile, era }));
      // What a server says right after the handshake may come before or after we look; all of it counts as roots.
      features[name] = { observed, ...(name !== 'handshake' && journal.summary(name === 'roots' ? session.begin.received : mark)) };
    } catch (error) {
      throw new Error(`${of}: ${name}: ${error.message}`, { cause: error });
    }
  }
  session.begin = { asked: session.asked.length, received: journal.received.length };
  return features;
}
