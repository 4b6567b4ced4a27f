// Runs inside QuickJS before any code of a tool. The value of this script is an object that only the host has.
//
// Everything that is used later is taken now, while it is what the language defines: a tool may replace
// `JSON.stringify` or add to `Object.prototype`, and must not change what its tests find. For the same reason the code
// below makes no use of iterators, of methods of values, or of objects that inherit from `Object.prototype`.
(() => {
  'use strict';
  const { stringify, parse } = JSON;
  const { apply, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const { defineProperty, freeze, hasOwn, prototype: objectPrototype } = Object;
  const { isArray } = Array;
  const { abs, max } = Math;
  const method = (of, name) => Function.prototype.call.bind(of.prototype[name]);
  const slice = method(String, 'slice');
  const toWellFormed = method(String, 'toWellFormed');
  const exec = method(RegExp, 'exec');
  const MAX_DEPTH = 100;

  class Unfit {
    constructor(reason) {
      this.reason = reason;
    }
  }

  class AssertionError extends Error {
    #reason;
    constructor(reason) {
      super(reason);
      this.#reason = reason;
    }
    static reasonOf(error) {
      return #reason in error ? error.#reason : undefined;
    }
  }
  freeze(AssertionError);

  const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';

  // Plain data as text -----------------------------------------------------------------------------------------------

  function encode(value, depth) {
    switch (typeof value) {
      case 'string':
        return stringify(toWellFormed(value));
      case 'number':
        if (value - value !== 0) throw new Unfit(`${value}`);
        return `${value}`;
      case 'boolean':
      case 'bigint':
        return `${value}`;
      case 'undefined':
        return 'null';
      case 'object':
        return value === null ? 'null' : encodeObject(value, depth);
      default:
        throw new Unfit(`a ${typeof value}`);
    }
  }

  function encodeObject(value, depth) {
    if (depth > MAX_DEPTH) throw new Unfit(`data nested deeper than ${MAX_DEPTH}`);
    let text = '';
    if (isArray(value)) {
      const { length } = value;
      for (let index = 0; index < length; index++) text += (index ? ',' : '') + encode(value[index], depth + 1);
      return `[${text}]`;
    }
    if (!isPlain(value)) throw new Unfit(`a ${className(value)}`);
    const keys = ownKeys(value);
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index];
      if (typeof key !== 'string' || !getOwnPropertyDescriptor(value, key)?.enumerable) continue;
      const item = value[key];
      if (item !== undefined) text += `${text ? ',' : ''}${stringify(toWellFormed(key))}:${encode(item, depth + 1)}`;
    }
    return `{${text}}`;
  }

  function isPlain(value) {
    const prototype = getPrototypeOf(value);
    return prototype === null || prototype === objectPrototype;
  }

  function className(value) {
    try {
      const { name } = value.constructor;
      if (typeof name === 'string' && name) return slice(name, 0, 60);
    } catch {}
    return 'special object';
  }

  function shown(value) {
    try {
      if (value === undefined) return 'undefined';
      return slice(encode(value, 0), 0, 300);
    } catch (problem) {
      return problem instanceof Unfit ? problem.reason : 'something that cannot be shown';
    }
  }

  // Assertions -------------------------------------------------------------------------------------------------------

  function isSame(first, second, depth) {
    if (first === second || (first !== first && second !== second)) return true;
    if (typeof first !== 'object' || typeof second !== 'object' || first === null || second === null) return false;
    if (depth > MAX_DEPTH || isArray(first) !== isArray(second)) return false;
    if (isArray(first)) {
      if (first.length !== second.length) return false;
      for (let index = 0; index < second.length; index++) {
        if (!isSame(first[index], second[index], depth + 1)) return false;
      }
      return true;
    }
    if (!isPlain(first) || !isPlain(second)) return false;
    const keys = ownKeys(second);
    if (ownKeys(first).length !== keys.length) return false;
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index];
      if (!hasOwn(first, key) || !isSame(first[key], second[key], depth + 1)) return false;
    }
    return true;
  }

  function fail(reason) {
    throw new AssertionError(reason);
  }

  function assert(condition, message) {
    if (!condition) fail(typeof message === 'string' ? message : 'the condition is false');
  }

  function equal(got, expected) {
    if (!isSame(got, expected, 0)) fail(`got ${shown(got)}, expected ${shown(expected)}`);
  }

  function notEqual(got, other) {
    if (isSame(got, other, 0)) fail(`got ${shown(got)}, expected something else`);
  }

  function near(got, expected, tolerance = 1e-9) {
    const isNear = typeof got === 'number' && abs(got - expected) <= max(tolerance * abs(expected), 1e-12);
    if (!isNear) fail(`got ${shown(got)}, expected about ${shown(expected)}`);
  }

  function throws(action, expected) {
    let error;
    try {
      action();
    } catch (thrown) {
      error = thrown;
      if (!expected || isExpected(error, expected)) return;
      fail(`another error was thrown: ${report(error).text}`);
    }
    fail('no error was thrown');
  }

  function isExpected(error, expected) {
    if (typeof expected === 'function') {
      for (let one = error; isObject(one); one = getPrototypeOf(one)) {
        if (getPrototypeOf(one) === expected.prototype) return true;
      }
      return false;
    }
    if (!isObject(expected)) return true; // a message for the reader
    if (isPlain(expected)) {
      const keys = ownKeys(expected);
      for (let index = 0; index < keys.length; index++) {
        if (!isObject(error) || !isSame(error[keys[index]], expected[keys[index]], 0)) return false;
      }
      return true;
    }
    return exec(expected, report(error).text) !== null;
  }

  function define(object, name, value) {
    defineProperty(object, name, { value, enumerable: true });
  }

  const names = {
    ok: assert,
    equal, strictEqual: equal, deepEqual: equal, deepStrictEqual: equal,
    notEqual, notStrictEqual: notEqual, notDeepEqual: notEqual, notDeepStrictEqual: notEqual,
    near, throws,
  };
  for (const name of ownKeys(names)) define(assert, name, names[name]);
  define(assert, 'strict', assert);
  define(globalThis, 'assert', freeze(assert));

  // With it, a tool could get the test function that called it, and the values in its source.
  defineProperty(Error, 'prepareStackTrace', { value: undefined });

  const silent = () => undefined;
  globalThis.console = { log: silent, info: silent, warn: silent, error: silent, debug: silent };

  // For the host -----------------------------------------------------------------------------------------------------

  function report(error) {
    const found = { __proto__: null, text: '', stack: '' };
    try {
      const reason = isObject(error) ? AssertionError.reasonOf(error) : undefined;
      const { name, message, stack } = isObject(error) ? error : found;
      if (typeof stack === 'string') found.stack = slice(stack, 0, 2000);
      if (reason !== undefined) found.text = slice(reason, 0, 1000);
      else if (typeof name === 'string' && typeof message === 'string') {
        found.text = slice(message ? `${name}: ${message}` : name, 0, 1000);
      } else found.text = typeof error === 'string' ? slice(error, 0, 1000) : `it threw ${shown(error)}`;
    } catch {
      found.text = 'it threw something that cannot be shown';
    }
    return found;
  }

  return {
    // The text and the stack of an error.
    describe(error) {
      const { text, stack } = report(error);
      return `[${stringify(toWellFormed(text))},${stringify(toWellFormed(stack))}]`;
    },
    // The result of a call as text. Each argument is in a list; one that was not given is an empty list.
    call(tool, text) {
      const given = parse(text);
      for (let index = 0; index < given.length; index++) given[index] = given[index][0];
      const result = apply(tool, undefined, given);
      try {
        return encode(result, 0);
      } catch (problem) {
        if (problem instanceof Unfit) throw `it returned ${problem.reason}, which is not plain data (JSON)`;
        throw problem;
      }
    },
  };
})();
