// The TypeScript SDK 1.x as a client. It knows the legacy era only.

import { runClient, sdk } from './lib/cli.mjs';

const { Client } = sdk('@modelcontextprotocol/sdk/client/index.js');
const { SSEClientTransport } = sdk('@modelcontextprotocol/sdk/client/sse.js');
const { StdioClientTransport } = sdk('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = sdk('@modelcontextprotocol/sdk/client/streamableHttp.js');
const types = sdk('@modelcontextprotocol/sdk/types.js');

// This generation registers handlers by schema where the next one takes the method's name.
const SCHEMAS = {
  'sampling/createMessage': types.CreateMessageRequestSchema,
  'elicitation/create': types.ElicitRequestSchema,
  'roots/list': types.ListRootsRequestSchema,
  'notifications/message': types.LoggingMessageNotificationSchema,
  'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
};

const AT_LEISURE = { initialReconnectionDelay: 1000, maxReconnectionDelay: 30000, reconnectionDelayGrowFactor: 1.5 };

await runClient({
  name: 'ts1',
  transports: {
    stdio: (peer) => new StdioClientTransport(peer),
    // An error it takes for a lost response, and resumes the stream a second later. One server then repeats all it
    // sent since, so that what is heard when would be a matter of chance.
    http: (url) => new StreamableHTTPClientTransport(url, { reconnectionOptions: { ...AT_LEISURE, maxRetries: 0 } }),
    sse: (url) => new SSEClientTransport(url),
  },
  open: () => new Client({ name: 'interop-ts1', version: '1.0.0' }, {
    capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } },
  }),
  onRequest: (client, method, handler) => client.setRequestHandler(SCHEMAS[method], handler),
  onNotification: (client, method, handler) => client.setNotificationHandler(SCHEMAS[method], handler),
  callTool: (client, params, options) => client.callTool(params, undefined, options),
  describe: (client) => ({
    server: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
  }),
});
