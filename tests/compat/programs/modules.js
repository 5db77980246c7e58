// Node's own modules, one after another: what each prints is the same every time.
//     node modules.js [no wasm]
'use strict';
const assert = require('assert');
const childProcess = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const net = require('net');
const {pipeline, Readable, Transform} = require('stream');
const {promisify} = require('util');
const vm = require('vm');
const workers = require('worker_threads');
const zlib = require('zlib');

const bytes = Buffer.from([...Array(100000).keys()].map(i => i * 7919 & 255));

const tests = {
    async crypto() {
        const hash = name => crypto.createHash(name).update(bytes).digest('hex').slice(0, 16);
        const key = await promisify(crypto.scrypt)('password', 'salt', 32, {N: 1024});
        const cipher = crypto.createCipheriv('aes-256-gcm', key, Buffer.alloc(12));
        const sealed = Buffer.concat([cipher.update(bytes), cipher.final()]);
        return [hash('sha256'), hash('sha3-512'), sealed.length, cipher.getAuthTag().toString('hex')];
    },
    async zlib() {
        const [deflated, brotli] = await Promise.all(
            [promisify(zlib.deflate)(bytes), promisify(zlib.brotliCompress)(bytes)]);
        return [deflated.length, zlib.inflateSync(deflated).equals(bytes),
                zlib.brotliDecompressSync(brotli).equals(bytes)];
    },
    async files() {
        await Promise.all([...Array(20).keys()].map(i => fs.promises.writeFile(`file ${i}`, `${i}`)));
        const read = await Promise.all([...Array(20).keys()].map(i => fs.promises.readFile(`file ${i}`, 'utf8')));
        return read.join('');
    },
    async streams() {
        let total = 0;
        const count = new Transform({transform(chunk, _, done) { total += chunk.length; done(null, chunk); }});
        await promisify(pipeline)(Readable.from([...Array(50)].map(() => bytes)), count,
                                  fs.createWriteStream('streamed'));
        return [total, fs.statSync('streamed').size];
    },
    async workers() {
        const source = `const {parentPort, workerData} = require('worker_threads');
            const shared = new Int32Array(workerData);
            for (let i = 0; i < 5000; ++i) Atomics.add(shared, 0, i % 7);
            Atomics.notify(shared, 1);
            parentPort.postMessage({sum: [...Array(1000).keys()].reduce((a, b) => a + b)});`;
        const shared = new SharedArrayBuffer(8);
        const results = await Promise.all([...Array(3)].map(() => new Promise((resolve, reject) => {
            const worker = new workers.Worker(source, {eval: true, workerData: shared});
            worker.on('error', reject), worker.on('message', resolve);
        })));
        return [results, new Int32Array(shared)[0]];
    },
    async processes() {
        const run = promisify(childProcess.execFile);
        const {stdout} = await run(process.execPath, ['-p', '6 * 7']);
        const failed = await run('/bin/sh', ['-c', 'echo err >&2; exit 3']).catch(error => error);
        return [stdout, failed.code, failed.stderr, childProcess.execSync('echo sync').toString()];
    },
    async http() {
        const server = http.createServer((request, response) => response.end(`path ${request.url}`));
        await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
        const agent = new http.Agent({keepAlive: true, maxSockets: 4});
        const get = path => new Promise((resolve, reject) => http.get(
            {agent, port: server.address().port, host: '127.0.0.1', path}, async response => {
                let body = '';
                for await (const chunk of response) body += chunk;
                resolve(body);
            }).on('error', reject));
        const bodies = await Promise.all([...Array(50).keys()].map(i => get(`/${i}`)));
        agent.destroy();
        await new Promise(resolve => server.close(resolve));
        return [bodies.length, bodies[49]];
    },
    async sockets() {
        const server = net.createServer(socket => socket.pipe(socket));
        await new Promise(resolve => server.listen('./socket', resolve));
        const client = net.connect('./socket');
        client.end(bytes);
        let received = 0;
        for await (const chunk of client) received += chunk.length;
        server.close();
        return received;
    },
    async contexts() {
        const sandbox = {sum: 0};
        vm.createContext(sandbox);
        for (let i = 0; i < 200; ++i) vm.runInContext(`sum += ${i} * 2`, sandbox);
        const stuck = () => vm.runInContext('for (;;) {}', sandbox, {timeout: 50});
        return [sandbox.sum, assert.throws(stuck, /timed out/) === undefined];
    },
    async wasm() {
        if (process.argv[2] === 'no wasm') return 'left out';
        const module = await WebAssembly.compile(wasmSum());
        const {exports} = await WebAssembly.instantiate(module);
        return [exports.f(10), exports.f(100000)];
    },
    async timers() {
        const order = [];
        const immediate = new Promise(resolve => setImmediate(resolve));
        process.nextTick(() => order.push('tick'));
        queueMicrotask(() => order.push('microtask'));
        // Which of the two comes first depends on the time that all this takes.
        await Promise.all([immediate, new Promise(resolve => setTimeout(resolve, 20))]);
        return order;
    },
};

// The sum of the numbers from 1 to its argument.
// (module (func (export "f") (param i32) (result i32) (local i32)
//   (loop (local.set 1 (i32.add (local.get 1) (local.get 0)))
//         (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
//   (local.get 1)))
function wasmSum() {
    const body = [1, 1, 0x7f, 3, 0x40, 0x20, 1, 0x20, 0, 0x6a, 0x21, 1, 0x20, 0, 0x41, 1, 0x6b, 0x22,
                  0, 0x0d, 0, 0x0b, 0x20, 1, 0x0b];
    return Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 6, 1, 0x60, 1, 0x7f, 1, 0x7f, 3, 2, 1, 0,
                            7, 5, 1, 1, 0x66, 0, 0, 10, body.length + 2, 1, body.length, ...body]);
}

(async () => {
    for (const [name, test] of Object.entries(tests)) console.log(name, JSON.stringify(await test()));
})();
