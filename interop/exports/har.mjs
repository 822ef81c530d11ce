// Holds exported HAR files to the schema that HAR tools share.
//
//     node har.mjs DIRECTORY-WITH-node_modules FILE…

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const [tools, ...files] = process.argv.slice(2);
const validate = createRequire(join(resolve(tools), "here.js"))("har-validator/lib/async");
let failed = 0;

for (const file of files) {
  const har = JSON.parse(readFileSync(file, "utf8"));
  await new Promise(done => validate.har(har, fault => {
    if (fault) failed++;
    const count = `${har.log.entries.length} entries`;
    console.log(fault ? "FAIL" : "PASS", file, count, fault ? JSON.stringify(fault.errors?.slice(0, 3) ?? String(fault)) : "");
    done();
  }));
}
process.exit(failed ? 1 : 0);
