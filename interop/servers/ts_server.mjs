// A server on the TypeScript SDK 2.x with one tool per thing a proxy could get wrong. It serves both eras and
// offers the same names as `py_server.py`, so that one profile describes both.
//
//   node ts_server.mjs DIRECTORY [stdio|http|sse]
//
// DIRECTORY holds node_modules; a client that spawns us passes hardly any environment on, hence an argument. On
// HTTP and SSE it prints READY and its URL on stderr.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';

const [directory, transportName = 'stdio'] = process.argv.slice(2);
const require = createRequire(join(directory, 'anchor.js'));
const { McpServer, ResourceTemplate, acceptedContent, completable, createMcpHandler, inputRequired, inputResponse, isLegacyRequest } =
  require('@modelcontextprotocol/server');
const { z } = require('zod');

const NOTE = 'interop://note';
const NAMES = ['Ada', 'Alan', 'Grace'];

const text = (s) => ({ content: [{ type: 'text', text: s }] });
const startingWith = (pool) => (value) => pool.filter((candidate) => candidate.startsWith(value ?? ''));

/** An event that stays set: `wait` resolves once `set` was called, before or after. */
function latch() {
  let set;
  const done = new Promise((resolve) => (set = resolve));
  return { set, wait: () => done };
}

function addCalls(server) {
  server.registerTool('echo', { description: 'Repeats the message.', inputSchema: z.object({ message: z.string() }) },
    ({ message }) => text(`echo: ${message}`));

  server.registerTool('add', {
    description: 'Adds, with structured content.',
    inputSchema: z.object({ a: z.number(), b: z.number() }),
    outputSchema: z.object({ sum: z.number() }),
  }, ({ a, b }) => ({ ...text(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }));

  server.registerTool('fail', { description: 'Ends in a tool error.' }, () => {
    throw new Error('failing as asked');
  });
}

// What outlives a call belongs to the process: over HTTP the modern era makes a server for every request.
const stepsReleased = latch();
const hangCancelled = latch();
let isGrown = false;

function addProgressAndCancellation(server) {
  const progress = (ctx, params) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken === undefined) return Promise.resolve();
    return ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...params } });
  };

  // Clients may drop a progress notification that arrives together with the response, and whether it does is a
  // matter of buffering. Waiting for the client's word keeps the two apart without a clock.
  server.registerTool('steps', {
    description: 'Reports each step, then waits for `release`.',
    inputSchema: z.object({ count: z.number() }),
  }, async ({ count }, ctx) => {
    for (let step = 1; step <= count; step++) await progress(ctx, { progress: step, total: count, message: `step ${step}` });
    await stepsReleased.wait();
    return text(`${count} steps`);
  });

  server.registerTool('release', { description: 'Lets `steps` finish.' }, () => {
    stepsReleased.set();
    return text('released');
  });

  server.registerTool('hang', { description: 'Says that it runs, then runs until it is cancelled.' }, async (ctx) => {
    const aborted = new Promise((resolve) => ctx.mcpReq.signal.addEventListener('abort', resolve));
    await progress(ctx, { progress: 0, message: 'running' });
    await aborted;
    hangCancelled.set();
    return text('never sent');
  });

  server.registerTool('cancelled', { description: 'Answers once `hang` has been cancelled, and not before.' }, async () => {
    await hangCancelled.wait();
    return text('hang was cancelled');
  });
}

function addLogging(server) {
  server.registerTool('log', { description: 'Logs once at debug, info and error.' }, async (ctx) => {
    for (const level of ['debug', 'info', 'error']) await ctx.mcpReq.log(level, { at: level }, 'interop');
    return text('logged');
  });
}

/** Handlers return questions; towards a legacy client the SDK turns them into requests of its own. */
function addQuestions(server) {
  const form = (message, field) => inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] },
  });
  const ask = (question) => inputRequired({ inputRequests: { answer: question }, requestState: 'asked' });

  server.registerTool('sample', { description: "Has the client's model answer.", inputSchema: z.object({ prompt: z.string() }) },
    ({ prompt }, ctx) => {
      const answer = inputResponse(ctx.mcpReq.inputResponses, 'answer');
      if (answer.kind === 'sampling') return text(`${answer.result.model} said: ${answer.result.content.text}`);
      const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
      return ask(inputRequired.createMessage({ messages, maxTokens: 50, temperature: 0.5 }));
    });

  server.registerTool('elicit', { description: 'Asks the user one question.', inputSchema: z.object({ question: z.string() }) },
    ({ question }, ctx) => {
      const answer = inputResponse(ctx.mcpReq.inputResponses, 'answer');
      if (answer.kind === 'elicit') return text(`${answer.action}: ${answer.content?.reply}`);
      return ask(form(question, 'reply'));
    });

  server.registerTool('roots', { description: "Lists the client's roots." }, (ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'answer');
    if (answer.kind === 'roots') return text(answer.roots.map((root) => `${root.name}=${root.uri}`).join(', '));
    return ask(inputRequired.listRoots());
  });

  server.registerTool('survey', { description: 'Asks two questions, the second only after the first was answered.' }, (ctx) => {
    const name = acceptedContent(ctx.mcpReq.inputResponses, 'name')?.name;
    const colour = acceptedContent(ctx.mcpReq.inputResponses, 'colour')?.colour;
    if (colour) return text(`${ctx.mcpReq.requestState()} likes ${colour}`);
    // Answers are those of the last round only, so the name travels on as state.
    if (name) return inputRequired({ inputRequests: { colour: form('Your colour?', 'colour') }, requestState: name });
    return inputRequired({ inputRequests: { name: form('Your name?', 'name') } });
  });
}

/** `listeners` is where changes go that no connection of this server could carry. */
function addResourcesAndChanges(server, listeners) {
  server.registerResource('note', NOTE, { description: 'A note that `touch` pretends to change.', mimeType: 'text/plain' },
    (uri) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'a note with ünïcode and a "quote"' }] }));

  server.registerResource('bytes', 'interop://bytes', { description: 'Every byte value once.', mimeType: 'application/octet-stream' },
    (uri) => {
      const blob = Buffer.from(Array.from({ length: 256 }, (_, i) => i)).toString('base64');
      return { contents: [{ uri: uri.href, mimeType: 'application/octet-stream', blob }] };
    });

  server.registerResource('item', new ResourceTemplate('interop://item/{id}', {
    list: undefined,
    complete: { id: startingWith(['1', '12', '2']) },
  }), { description: 'One of many.', mimeType: 'application/json' },
    (uri, { id }) => ({ contents: [{ uri: uri.href, mimeType: 'application/json', text: JSON.stringify({ id }) }] }));

  // A legacy subscription is for the author to keep; a modern one is kept, and filtered by, the SDK.
  const subscribed = new Set();
  server.server.setRequestHandler('resources/subscribe', ({ params }) => (subscribed.add(params.uri), {}));
  server.server.setRequestHandler('resources/unsubscribe', ({ params }) => (subscribed.delete(params.uri), {}));

  server.registerTool('touch', {
    description: 'Announces a change of a resource to those who asked for it.',
    inputSchema: z.object({ uri: z.string() }),
  }, async ({ uri }, ctx) => {
    if (listeners) listeners.resourceUpdated(uri);
    else if (ctx.mcpReq.envelope || subscribed.has(uri)) await server.server.sendResourceUpdated({ uri });
    return text(`touched ${uri}`);
  });

  const addLate = () => server.registerTool('late', { description: 'Came late.' }, () => text('late'));
  server.registerTool('grow', { description: 'Adds a tool and announces it.' }, () => {
    isGrown = true;
    if (listeners) listeners.toolsChanged();
    else addLate();
    return text('grown');
  });
  if (isGrown) addLate();
}

function addPrompts(server) {
  server.registerPrompt('greet', {
    description: 'Greets someone.',
    argsSchema: z.object({ name: completable(z.string(), startingWith(NAMES)) }),
  }, ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name} warmly.` } }] }));
}

function build(listeners) {
  const server = new McpServer({ name: 'interop-ts', version: '1.0.0' }, {
    instructions: 'One tool per feature.',
    capabilities: { logging: {}, tools: { listChanged: true }, resources: { subscribe: true, listChanged: true } },
  });
  for (const add of [addCalls, addProgressAndCancellation, addLogging, addQuestions, addPrompts]) add(server);
  addResourcesAndChanges(server, listeners);
  return server;
}

// -- serving -------------------------------------------------------------------------------------------

function listen(path, answer) {
  const http = createServer((request, response) => {
    answer(request, response).catch((error) => response.destroy(error));
  });
  http.listen(0, '127.0.0.1', () => console.error(`READY http://127.0.0.1:${http.address().port}${path}`));
}

/** Modern requests one by one, legacy ones in sessions: the SDK's ready-made handler would serve those without any. */
function serveHttp() {
  const { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } = require('@modelcontextprotocol/node');
  const handler = createMcpHandler(() => build(handler.notify), { legacy: 'reject' });
  const answerModern = toNodeHandler(handler);
  const sessions = new Map();

  async function open() {
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await build().connect(transport);
    return transport;
  }

  listen('/mcp', async (request, response) => {
    const body = request.method === 'POST' ? await json(request) : undefined;
    if (!(await isLegacyRequest(await toWebRequest(request, body)))) return answerModern(request, response, body);
    const id = request.headers['mcp-session-id'];
    const transport = id ? sessions.get(id) : await open();
    if (!transport) return response.writeHead(404).end();
    return transport.handleRequest(request, response, body);
  });
}

function serveSse() {
  const { SSEServerTransport } = require('@modelcontextprotocol/server-legacy/sse');
  const sessions = new Map();
  listen('/sse', async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://127.0.0.1');
    if (pathname === '/sse') {
      const transport = new SSEServerTransport('/messages', response);
      sessions.set(transport.sessionId, transport);
      return build().connect(transport);
    }
    const transport = sessions.get(searchParams.get('sessionId'));
    return transport ? transport.handlePostMessage(request, response) : response.writeHead(404).end();
  });
}

const SERVE = {
  stdio: () => require('@modelcontextprotocol/server/stdio').serveStdio(() => build()),
  http: serveHttp,
  sse: serveSse,
};
SERVE[transportName]();
