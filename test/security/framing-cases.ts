import { MISFRAMED } from '../faults/ambiguous-requests.ts'

/** Bytes that two servers may frame differently, with a description. */
export type FramingCase = readonly [name: string, bytes: Buffer]

const HOST = 'host: x\r\n'
/** A request within a body: a server that ends the body too early reads these bytes as a request. */
const HIDDEN = `GET /hidden HTTP/1.1\r\n${HOST}\r\n`
const CHUNKED = 'transfer-encoding: chunked\r\n'

const post = (headers: string, body = ''): Buffer =>
  Buffer.from(`POST /it HTTP/1.1\r\n${HOST}${headers}\r\n${body}`, 'latin1')
const contentLength = (body: string): string => `content-length: ${body.length}\r\n`

/** Valid requests. */
const PLAIN: readonly FramingCase[] = [
  ['a length', post(contentLength('hello'), 'hello')],
  ['chunks', post(CHUNKED, '5\r\nhello\r\n0\r\n\r\n')],
  ['chunks with extensions and trailers', post(CHUNKED, '5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n')],
  ['no body', post(contentLength(''))],
  ['empty lines before', Buffer.concat([Buffer.from('\r\n\r\n'), post(contentLength('hello'), 'hello')])],
  ['a body that reads like a request', post(contentLength(HIDDEN), HIDDEN)],
  [
    'HTTP/1.0, kept',
    Buffer.from(`POST /it HTTP/1.0\r\n${HOST}connection: keep-alive\r\n${contentLength('')}\r\n`),
  ],
]

/** Requests that smuggle another one past a server that ends them at a different byte. */
const SMUGGLING: readonly FramingCase[] = [
  [
    'a length to the end, chunks that end before',
    post(`${contentLength(`0\r\n\r\n${HIDDEN}`)}${CHUNKED}`, `0\r\n\r\n${HIDDEN}`),
  ],
  [
    'chunks to the end, a length that ends before',
    post(`content-length: 4\r\n${CHUNKED}`, `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`),
  ],
  [
    'a space before the colon of the coding',
    post(`transfer-encoding : chunked\r\n${contentLength(`0\r\n\r\n${HIDDEN}`)}`, `0\r\n\r\n${HIDDEN}`),
  ],
  [
    'a coding in a folded line',
    post(`transfer-encoding:\r\n chunked\r\n${contentLength(`0\r\n\r\n${HIDDEN}`)}`, `0\r\n\r\n${HIDDEN}`),
  ],
  [
    'a coding in quotes',
    post(`transfer-encoding: "chunked"\r\n${contentLength(`0\r\n\r\n${HIDDEN}`)}`, `0\r\n\r\n${HIDDEN}`),
  ],
  [
    'a coding after a NUL',
    post(`transfer-encoding: \0chunked\r\n${contentLength(`0\r\n\r\n${HIDDEN}`)}`, `0\r\n\r\n${HIDDEN}`),
  ],
  ['a length with an underscore in its name', post(`content_length: 5\r\n${contentLength(HIDDEN)}`, HIDDEN)],
  ['a length with a space in it', post('content-length: 5 0\r\n', HIDDEN)],
  ['a length after an empty one', post(`content-length:\r\n${contentLength(HIDDEN)}`, HIDDEN)],
  ['a length of zero and another', post(`content-length: 0\r\n${contentLength(HIDDEN)}`, HIDDEN)],
  ['a length with leading zeros', post(`content-length: 0000${HIDDEN.length}\r\n`, HIDDEN)],
  ['a length that is no number for all', post('content-length: 1e2\r\n', HIDDEN)],
  [
    'chunks in HTTP/1.0',
    Buffer.from(`POST /it HTTP/1.0\r\n${HOST}connection: keep-alive\r\n${CHUNKED}\r\n0\r\n\r\n${HIDDEN}`),
  ],
  ['chunk lines that end in a bare LF', post(CHUNKED, `5\nhello\n0\n\n${HIDDEN}`)],
  ['an extension that ends in a bare LF', post(CHUNKED, `5;a\nhello\r\n0\r\n\r\n${HIDDEN}`)],
  ['an extension with a bare CR', post(CHUNKED, `5;a\rb\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
  ['a chunk that ends in two other bytes', post(CHUNKED, `5\r\nhelloXX0\r\n\r\n${HIDDEN}`)],
  ['a chunk size in other letters', post(CHUNKED, `0x5\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
  ['a chunk size with a space before', post(CHUNKED, ` 5\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
  ['a chunk size with a space after', post(CHUNKED, `5 \r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
  ['a chunk size of leading zeros', post(CHUNKED, `${'0'.repeat(40)}5\r\nhello\r\n0\r\n\r\n${HIDDEN}`)],
  ['a trailer with a length', post(CHUNKED, `0\r\n${contentLength(HIDDEN)}\r\n${HIDDEN}`)],
  ['a trailer without an end', post(CHUNKED, `0\r\nx: y\r\n`)],
  ['a GET with a body', Buffer.from(`GET /it HTTP/1.1\r\n${HOST}${contentLength(HIDDEN)}\r\n${HIDDEN}`)],
  ['a body that is expected', post(`expect: 100-continue\r\n${contentLength(HIDDEN)}`, HIDDEN)],
  ['an upgrade with a body', post(`connection: upgrade\r\nupgrade: h2c\r\n${contentLength(HIDDEN)}`, HIDDEN)],
  [
    'a connection that hides the length',
    post(`connection: content-length\r\n${contentLength(HIDDEN)}`, HIDDEN),
  ],
  [
    'an address with its own host',
    Buffer.from(`POST http://y/it HTTP/1.1\r\n${HOST}${contentLength('')}\r\n`),
  ],
  ['an address with a fragment', Buffer.from(`POST /it#a HTTP/1.1\r\n${HOST}${contentLength('')}\r\n`)],
  [
    'an address with bytes above 127',
    Buffer.from(`POST /it\xff HTTP/1.1\r\n${HOST}${contentLength('')}\r\n`, 'latin1'),
  ],
  ['two spaces before the version', Buffer.from(`POST /it  HTTP/1.1\r\n${HOST}${contentLength('')}\r\n`)],
  ['a tab for a space', Buffer.from(`POST\t/it\tHTTP/1.1\r\n${HOST}${contentLength('')}\r\n`)],
  [
    'a space before the first header',
    Buffer.from(`POST /it HTTP/1.1\r\n x: y\r\n${HOST}${contentLength('')}\r\n`),
  ],
]

/** All cases, with unique names. */
export const FRAMING_CASES: readonly FramingCase[] = [
  ...PLAIN,
  ...SMUGGLING,
  ...MISFRAMED.map(([name, bytes]): FramingCase => [name, Buffer.from(bytes)]),
]
