// The TypeScript SDK 1.x as a client. It knows the legacy era only.

import { runClient, sdk } from './lib/cli.mjs';

const { Client } = sdk('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = sdk('@modelcontextprotocol/sdk/client/stdio.js');
const types = sdk('@modelcontextprotocol/sdk/types.js');

// This generation registers handlers by schema where the next one takes the method's name.
const SCHEMAS = {
  'sampling/createMessage': types.CreateMessageRequestSchema,
  'elicitation/create': types.ElicitRequestSchema,
  'roots/list': types.ListRootsRequestSchema,
  'notifications/message': types.LoggingMessageNotificationSchema,
  'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
};

await runClient({
  name: 'ts1',
  Transport: StdioClientTransport,
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
