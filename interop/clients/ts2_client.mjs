// The TypeScript client 2.x in either era, or finding out which (`auto`). Unless told `legacy` it spawns the
// command twice: a short-lived one for `server/discover`, then the one it works with.

import { runClient, sdk } from './lib/cli.mjs';

const { Client, SSEClientTransport, StreamableHTTPClientTransport } = sdk('@modelcontextprotocol/client');
const { StdioClientTransport } = sdk('@modelcontextprotocol/client/stdio');

const NEGOTIATION = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };

await runClient({
  name: 'ts2',
  transports: {
    stdio: (peer) => new StdioClientTransport(peer),
    http: (url) => new StreamableHTTPClientTransport(url),
    sse: (url) => new SSEClientTransport(url),
  },
  open: (era) => new Client({ name: 'interop-ts2', version: '1.0.0' }, {
    capabilities: { sampling: {}, elicitation: { form: {} }, roots: { listChanged: true } },
    versionNegotiation: { mode: NEGOTIATION[era] },
  }),
  onRequest: (client, method, handler) => client.setRequestHandler(method, handler),
  onNotification: (client, method, handler) => client.setNotificationHandler(method, handler),
  callTool: (client, params, options) => client.callTool(params, options),
  describe: (client) => ({
    server: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
    version: client.getNegotiatedProtocolVersion(),
    era: client.getProtocolEra(),
  }),
});
