// What V8 compiles and compiles again: numbers, objects whose shapes change, strings, typed arrays,
// regular expressions, big integers, closures, generators, and much garbage.
'use strict';

function spectralNorm(n) {
    const a = (i, j) => 1 / ((i + j) * (i + j + 1) / 2 + i + 1);
    let u = new Float64Array(n).fill(1), v = new Float64Array(n);
    const multiply = (from, to, at) => {
        for (let i = 0; i < n; ++i) {
            let sum = 0;
            for (let j = 0; j < n; ++j) sum += (at ? a(j, i) : a(i, j)) * from[j];
            to[i] = sum;
        }
    };
    for (let i = 0; i < 5; ++i) {
        const t = new Float64Array(n);
        multiply(u, t, false), multiply(t, v, true), multiply(v, t, false), multiply(t, u, true);
    }
    let vBv = 0, vv = 0;
    for (let i = 0; i < n; ++i) vBv += u[i] * v[i], vv += v[i] * v[i];
    return Math.sqrt(vBv / vv).toFixed(9);
}

function shapes(count) {
    let sum = 0;
    const area = shape => shape.area();
    class Square { constructor(s) { this.s = s; } area() { return this.s * this.s; } }
    class Box extends Square { constructor(s) { super(s); this.h = 2; } area() { return super.area() * this.h; } }
    for (let i = 0; i < count; ++i) {
        const shape = i < count / 2 ? new Square(i % 9) : i % 3 ? new Box(i % 7) : {area: () => i % 5};
        if (i % 1000 === 0) shape.extra = i;
        sum += area(shape);
    }
    return sum;
}

function garbage(count) {
    let trees = [];
    const tree = depth => depth === 0 ? null : {left: tree(depth - 1), right: tree(depth - 1)};
    const size = node => node === null ? 0 : 1 + size(node.left) + size(node.right);
    let sum = 0;
    for (let i = 0; i < count; ++i) {
        trees.push(tree(8));
        if (trees.length > 20) sum += size(trees.shift());
    }
    return sum;
}

function texts(count) {
    let text = '';
    for (let i = 0; i < count; ++i) text += String.fromCharCode(97 + i * 7919 % 26) + (i % 10 ? '' : ' ');
    const words = text.split(' ').map(word => word.replace(/[aeiou](.)/g, '$1-').toUpperCase());
    return [words.length, new Set(words).size, words.sort()[5], /(\w)\1/.exec(text)?.index];
}

function caught(count) {
    let sum = 0;
    for (let i = 0; i < count; ++i) {
        try {
            if (i % 3 === 0) throw new RangeError(String(i));
            if (i % 3 === 1) null.property;
        } catch (error) {
            sum += error.constructor.name.length;
        } finally {
            ++sum;
        }
    }
    return sum;
}

function* fibonacci() {
    for (let [a, b] = [0n, 1n];; [a, b] = [b, a + b]) yield a;
}
function bigFibonacci(n) {
    for (const value of fibonacci()) if (n-- === 0) return value.toString().slice(-20);
}
function overflow() {
    const down = n => down(n + 1) + 1;
    try { return down(0); } catch (error) { return error.constructor.name; }
}

console.log(spectralNorm(200));
console.log(shapes(500000));
console.log(garbage(800));
console.log(texts(50000));
console.log(caught(20000));
console.log(bigFibonacci(5000));
console.log(overflow());
console.log(JSON.stringify(JSON.parse(JSON.stringify([...Array(2000).keys()].map(i => ({i, s: `${i}`}))))).length);
