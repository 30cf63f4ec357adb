import { ask } from '../fixtures/fixture.ts'

/** Requests whose framing an intermediary could read differently from the gateway. */

export const CHAT = '/v1/chat/completions'

/** A chat request. */
export const BODY = JSON.stringify(ask('m'))

/** The bytes of a request; `headers` are lines with their line ends. */
export function post(headers: string, body: string | Buffer = '', path = CHAT, key = 'ann'): Buffer {
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\n${headers}\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.from(body)])
}

/** The content-length line. */
export const lengthOf = (body: string): string => `content-length: ${Buffer.byteLength(body)}\r\n`

const framed = (headers: string): Buffer => post(headers, '5\r\nhello\r\n0\r\n\r\n')
const whole = (head: string): string =>
  `${head}content-type: application/json\r\n${lengthOf(BODY)}\r\n${BODY}`
const authorized = `authorization: Bearer sk-ann\r\n`
/** Description, bytes, and expected status. */
export const MISFRAMED: readonly [string, string | Buffer, RegExp][] = [
  ['a length and chunks', framed('content-length: 5\r\ntransfer-encoding: chunked\r\n'), /400/],
  ['chunks and a length', framed('transfer-encoding: chunked\r\ncontent-length: 5\r\n'), /400/],
  ['two lengths', framed('content-length: 5\r\ncontent-length: 6\r\n'), /400/],
  ['the same length twice', framed('content-length: 5\r\ncontent-length: 5\r\n'), /400/],
  ['two lengths in one line', framed('content-length: 5, 5\r\n'), /400/],
  ['a length below zero', framed('content-length: -5\r\n'), /400/],
  ['a length with a sign', framed('content-length: +5\r\n'), /400/],
  ['a length in hexadecimal', framed('content-length: 0x5\r\n'), /400/],
  ['a length beyond 64 bits', framed('content-length: 18446744073709551621\r\n'), /400/],
  ['xchunked', framed('transfer-encoding: xchunked\r\n'), /501/],
  ['gzip and chunked', framed('transfer-encoding: gzip, chunked\r\n'), /501/],
  ['no coding at all', framed('transfer-encoding:\r\n'), /400/],
  ['chunked twice', framed('transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n'), /400/],
  ['chunked, then something', framed('transfer-encoding: chunked, identity\r\n'), /400/],
  ['chunked with a tab', framed('transfer-encoding:\x0bchunked\r\n'), /400/],
  ['a chunk of a bad size', post('transfer-encoding: chunked\r\n', 'zz\r\nhello\r\n0\r\n\r\n'), /400/],
  ['a chunk size with a sign', post('transfer-encoding: chunked\r\n', '+5\r\nhello\r\n0\r\n\r\n'), /400/],
  ['a chunk size of 20 digits', post('transfer-encoding: chunked\r\n', `${'f'.repeat(20)}\r\n`), /400/],
  [
    'a chunk that is longer than it says',
    post('transfer-encoding: chunked\r\n', '2\r\nhello\r\n0\r\n\r\n'),
    /400/,
  ],
  [
    'a chunk extension of a megabyte',
    post('transfer-encoding: chunked\r\n', `5;x=${'y'.repeat(1 << 20)}\r\nhello\r\n0\r\n\r\n`),
    /400|413/,
  ],
  ['lines that end in a bare LF', whole(`POST ${CHAT} HTTP/1.1\nhost: x\n${authorized}`), /400/],
  ['a folded header', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}x-a: b\r\n c\r\n`), /400/],
  ['NUL in a header', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}x-a: b\0c\r\n`), /400/],
  [
    'a bare CR in a header',
    whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}x-a: b\rx-b: c\r\n`),
    /400/,
  ],
  [
    'white space before a colon',
    whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}x-a : b\r\n`),
    /400/,
  ],
  ['a header without a name', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}: b\r\n`), /400/],
  ['two hosts', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\nHost: y\r\n${authorized}`), /400/],
  ['the same host twice', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\nhost: x\r\n${authorized}`), /400/],
  ['a host with a path', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x/y\r\n${authorized}`), /400/],
  ['a host with a user', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x@y\r\n${authorized}`), /400/],
  ['a host with a query', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x?y\r\n${authorized}`), /400/],
  ['a host of two words', whole(`POST ${CHAT} HTTP/1.1\r\nhost: x y\r\n${authorized}`), /400/],
  ['no host', whole(`POST ${CHAT} HTTP/1.1\r\n${authorized}`), /400/],
  [
    'a header of 17 KB',
    whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}x-a: ${'b'.repeat(17_000)}\r\n`),
    /431/,
  ],
  [
    'an address of 17 KB',
    whole(`POST ${CHAT}?${'b'.repeat(17_000)} HTTP/1.1\r\nhost: x\r\n${authorized}`),
    /431|414/,
  ],
  [
    '2,500 headers',
    whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}${'a: b\r\n'.repeat(2500)}`),
    /431/,
  ],
  ['HTTP/0.9', `GET ${CHAT}\r\n\r\n`, /400/],
  ['HTTP/1.2', whole(`POST ${CHAT} HTTP/1.2\r\nhost: x\r\n${authorized}`), /400|505/],
  ['HTTP/2 as it begins', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /400|405|505/],
  ['TLS', Buffer.from('16030100c8010000c40303', 'hex'), /400/],
  ['a method in small letters', whole(`post ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}`), /400/],
  ['a space in the address', whole(`POST ${CHAT} x HTTP/1.1\r\nhost: x\r\n${authorized}`), /400/],
  [
    'an expectation that nobody knows',
    whole(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${authorized}expect: x\r\nconnection: close\r\n`),
    /417/,
  ],
]
