import { errorOfRequestHead } from '../../../packages/http1/src/server/request-errors.ts'
import { type RequestHead, RequestReader } from '../../../packages/http1/src/server/request-reader.ts'
import { toOriginForm } from '../../../packages/http1/src/server/request-target.ts'
import { HEADER_NAMES } from '../../../src/http/request.ts'
import { chopped, choppedAtRandom } from '../../generators/chunks.ts'
import type { Target } from '../target.ts'
import { invariant } from '../invariant.ts'
import { referenceMessage } from './http-reference.ts'

/** A complete request, as the server would pass it on. */
interface ParsedRequest {
  readonly head: RequestHead
  readonly body: string
  /** Offset of the request's end in the input. */
  readonly end: number
}

/** Requests read from the bytes of a connection. */
interface ParsedConnection {
  readonly requests: readonly ParsedRequest[]
  /** State of the connection after the last of the requests. */
  readonly ending: string
}

/** The server's limit on the bytes of a head. */
const MAX_HEAD_BYTES = 16_384

/** Reads a connection's bytes as the server does: request after request, until one closes the connection. */
function parseConnection(chunks: readonly Buffer[]): ParsedConnection {
  const reader = new RequestReader(HEADER_NAMES)
  try {
    return readAll(reader, chunks)
  } finally {
    reader.free()
  }
}

function readAll(reader: RequestReader, chunks: readonly Buffer[]): ParsedConnection {
  const requests: ParsedRequest[] = []
  let body: Buffer[] = []
  let before = 0
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const bytes = chunk.subarray(at)
      const taken = reader.read(bytes)
      invariant(taken > 0 || reader.unreadable !== undefined, 'a read gets on')
      invariant(
        taken === bytes.length || reader.isComplete || reader.unreadable !== undefined,
        'all is read to the end of a request',
      )
      at += taken
      body.push(...reader.body)
      if (reader.unreadable) return { requests, ending: reader.unreadable }
      const { head } = reader
      if (!head) continue
      const error = errorOfRequestHead(head)
      if (error) return { requests, ending: `refused with ${error.status}` }
      const meant = toOriginForm(head)
      if (!meant) return { requests, ending: 'refused for its address' }
      if (!reader.isComplete) continue
      requests.push({ head: meant, body: Buffer.concat(body).toString('latin1'), end: before + at })
      if (!head.keepAlive) return { requests, ending: 'the last' }
      body = []
      reader.next()
    }
    before += chunk.length
  }
  return { requests, ending: reader.hasBegun ? 'begun' : 'nothing' }
}

/** Compares the requests with the reference parser's. */
function compare(text: string, { requests }: ParsedConnection): void {
  let from = 0
  for (const { head, body, end } of requests) {
    const plain = referenceMessage(text, from, 'no body')
    if (!plain) throw new Error(`a request was found that is none: ${JSON.stringify(head)}`)
    invariant(plain.end === end, `a request ends at ${plain.end}, not ${end}`)
    invariant(plain.body === body, 'its body is what is between head and end')
    invariant(plain.start.startsWith(`${head.method} `), 'its method begins the first line')
    invariant(plain.start.endsWith(` HTTP/${head.version}`), 'its version ends the first line')
    for (const name of ['content-type', 'authorization', 'expect', 'x-forwarded-for', 'cookie'] as const) {
      const values = plain.headers.filter(([other]) => other === name).map(([, value]) => value)
      const isOne = name === 'authorization' || name === 'content-type'
      const meant = isOne ? values[0] : values.join(name === 'cookie' ? '; ' : ', ')
      invariant((head.headers[name] ?? '') === (meant ?? ''), `${name} is what was sent`)
    }
    const texts = Object.values(head.headers).reduce((sum, value = '') => sum + value.length, 0)
    invariant(head.url.length + texts <= 2 * MAX_HEAD_BYTES, 'heads are bounded')
    from = end
  }
}

/** Endings that are not refusals. */
const ACCEPTED_ENDINGS = new Set(['nothing', 'begun', 'the last'])

/**
 * The part of the result that must not depend on the division into chunks. Which of two errors is found first
 * may depend on it.
 */
function comparable({ requests, ending: rest }: ParsedConnection): string {
  return JSON.stringify({ requests, rest: ACCEPTED_ENDINGS.has(rest) ? rest : 'refused' })
}

const HOST = 'host: x\r\n'

/** Reader of client requests. */
export const HTTP_REQUESTS: Target = {
  maxBytes: 40_000,
  seeds: [
    `GET /v1/models HTTP/1.1\r\n${HOST}authorization: Bearer k\r\n\r\n`,
    `POST /v1/chat?a=b HTTP/1.1\r\n${HOST}content-length: 5\r\n\r\nhello`,
    `POST /c HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;name="v"\r\n, world\r\n0\r\nx-trailer: 1\r\n\r\n`,
    `\r\nGET http://h:1/a?b HTTP/1.1\r\n${HOST}x-forwarded-for: 1\r\nX-Forwarded-For: \t2 \r\nconnection: keep-alive\r\n\r\nGET * HTTP/1.0\r\n\r\n`,
    `PUT / HTTP/1.1\r\n${HOST}expect: 100-continue\r\nupgrade: h2c\r\nconnection: upgrade\r\ncookie: a=b\r\ncookie: c\r\ncontent-length: 2\r\n\r\nhiDELETE /x HTTP/1.1\r\n${HOST}\r\n`,
    `POST /c HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  ],
  tokens: [
    '\r\n',
    '\r\n\r\n',
    '\r',
    '\n',
    ' ',
    '\t',
    '\0',
    ':',
    ': ',
    '0\r\n\r\n',
    '5\r\nhello\r\n',
    ';a=b',
    'host: y\r\n',
    'content-length: 5\r\n',
    'content-length: 0\r\n',
    'transfer-encoding: chunked\r\n',
    'transfer-encoding: gzip, chunked\r\n',
    'transfer-encoding: identity\r\n',
    'connection: close\r\n',
    'connection: keep-alive\r\n',
    'expect: 100-continue\r\n',
    'authorization: a\r\n',
    'x-a: b\r\n',
    ' folded\r\n',
    'GET / HTTP/1.1\r\n',
    'POST ',
    'CONNECT ',
    'HTTP/1.1',
    'HTTP/1.0',
    'HTTP/0.9',
    'HTTP/2.0',
    'http://',
    '@',
    '/',
    '*',
    'ffffffffffffffff',
    `x-long: ${'y'.repeat(5_000)}\r\n`,
    'a: b\r\n'.repeat(40),
    '\r\n'.repeat(500),
  ],
  repeated: [
    [`GET / HTTP/1.1\r\n${HOST}`, 'a: b\r\n', '\r\n'],
    [`POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n`, '1\r\na\r\n', '0\r\n\r\n'],
    ['', `GET / HTTP/1.1\r\n${HOST}\r\n`, ''],
  ],
  run(input, random) {
    const whole = parseConnection([input])
    compare(input.toString('latin1'), whole)
    const told = comparable(whole)
    const inPieces = [choppedAtRandom(input, 1 + Math.floor(random() * 64), random)]
    if (input.length <= 300 && random() < 0.3) inPieces.push(chopped(input, 1))
    for (const pieces of inPieces) {
      const cut = comparable(parseConnection(pieces))
      invariant(cut === told, `a cut changes nothing: ${told} became ${cut}`)
    }
    return `${whole.requests.length} ${whole.requests.map(({ head, body }) => `${head.method.length}${head.version}${body === '' ? '' : 'b'}${Object.keys(head.headers).length}`).join()} ${whole.ending}`
  },
}
