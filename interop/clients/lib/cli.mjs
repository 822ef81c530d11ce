// What every TypeScript client has around its features: arguments, the SDK packages, and the printed document.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';

import { ANSWERS } from './answers.mjs';
import { observe } from './features.mjs';
import { Journal, PATIENCE_MS } from './journal.mjs';
import { obey } from './orders.mjs';

/** Loads a package from the installation that `setup.sh` made. */
export const sdk = createRequire(join(process.env.MCP_INTEROP_DIR, 'sdk', 'anchor.js'));

/**
 * Connects, observes every feature and prints the document; or does what it is told, with `--orders`.
 *
 * `open(era)` makes the SDK's client and `transports` has one maker per name; the other members hide where the
 * two generations differ.
 */
export async function runClient({ name, transports, open, onRequest, onNotification, callTool, describe }) {
  try {
    const { era, profiles, features: wanted, together, orders, transportName, peer } = parseArguments();
    const journal = new Journal();
    const client = open(era);
    const session = {
      client,
      asked: [],
      logged: [],
      updated: [],
      begin: { asked: 0, received: 0 }, // where what is observed of one server begins
      unsolicited: Object.values(profiles).filter(({ roots }) => roots?.unsolicited_then_logged).length,
      call: (params, options) => callTool(client, params, { timeout: PATIENCE_MS, ...options }),
      describe: () => describe(client),
    };

    for (const [asked, answer] of Object.entries(ANSWERS)) {
      onRequest(client, asked, ({ method, params }) => {
        session.asked.push({ method, params });
        return session.answerForm && method === 'elicitation/create' ? session.answerForm(params, answer) : answer(params);
      });
    }
    const collect = (method, list) => onNotification(client, method, ({ params }) => {
      list.push(params);
      journal.poke();
    });
    collect('notifications/message', session.logged);
    collect('notifications/resources/updated', session.updated);

    const transport = transports[transportName](peer);
    journal.tap(transport);
    await client.connect(transport);
    if (orders) {
      await obey(session);
      return await client.close();
    }
    if (together) await gate();
    const documents = [];
    for (const [profileName, profile] of Object.entries(profiles)) {
      const features = await observe({ session, journal, name: profileName, profile, era, wanted });
      documents.push({ client: name, era, profile: profileName, features });
    }
    await client.close();
    printDocument(documents.length === 1 ? documents[0] : documents);
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    process.exit(1);
  }
}

/** Several clients are to work at the same time, so each waits until all are connected and its stdin ends. */
async function gate() {
  console.error('CONNECTED');
  await text(process.stdin);
}

/**
 * `--era ERA --profile NAME [--together] [--orders] [--features A,B]`, then `-- COMMAND ARGS...` or `--transport http|sse --url URL`.
 *
 * With several names in `--profile`, all that they describe is behind the one peer, and is observed in turn.
 * `peer` is what the transport's maker takes: a command with its arguments, or a URL.
 */
function parseArguments() {
  const names = ['era', 'profile', 'profiles', 'features', 'transport', 'url'];
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  const { values, positionals } = parseArgs({
    options: { ...options, together: { type: 'boolean' }, orders: { type: 'boolean' } },
    allowPositionals: true,
  });
  const [command, ...args] = positionals;
  if (!values.era || !values.profile || !command === !values.url) {
    throw new Error('need --era, --profile, and either -- COMMAND or --url');
  }
  return {
    era: values.era,
    profiles: loadProfiles(values.profile.split(','), values.era, values.profiles ?? new URL('../../profiles.json', import.meta.url)),
    features: values.features?.split(','),
    together: values.together,
    orders: values.orders,
    transportName: values.transport ?? 'stdio',
    peer: command ? { command, args } : new URL(values.url),
  };
}

/** The data of each profile, with what only holds for this era laid over the rest. */
function loadProfiles(names, era, file) {
  const all = JSON.parse(readFileSync(file, 'utf8'));
  return Object.fromEntries(names.map((name) => [name, { ...all[name], ...all[name][era] }]));
}

const VOLATILE = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<uuid>'],
  [/\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})/g, '<time>'],
  [/\b\d{1,2}:\d{2}:\d{2}(\s[AP]M)?/g, '<time>'],
];

/** Sorts keys and replaces what differs between two runs of the same server. */
function canonical(value, key) {
  if (key === 'requestState') return '<state>'; // sealed with a key of the process
  if (typeof value === 'string') return VOLATILE.reduce((s, [pattern, mask]) => s.replace(pattern, mask), value);
  if (Array.isArray(value)) return value.map((item) => canonical(item));
  if (value === null || typeof value !== 'object') return value;
  const members = Object.entries(value).filter(([, v]) => v !== undefined).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([k, v]) => [k, canonical(v, k)]));
}

function printDocument(document) {
  process.stdout.write(JSON.stringify(canonical(document), null, 1) + '\n');
}
