// Preload for server-everything on HTTP or SSE: `PORT=0 node --require loopback.cjs …/index.js streamableHttp`.
//
// By itself it listens on every interface and prints the port it was asked for, which is no help when that was 0.
// This keeps it on the loopback interface and has it say where it can be reached.

const net = require('node:net');

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, callback) {
  this.once('listening', () => {
    const path = process.argv[2] === 'sse' ? '/sse' : '/mcp';
    console.error(`READY http://127.0.0.1:${this.address().port}${path}`);
  });
  return listen.call(this, { port: Number(port), host: '127.0.0.1' }, callback);
};
