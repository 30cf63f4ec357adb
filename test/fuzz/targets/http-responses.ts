import type { UpstreamResponseHead } from '@sluice/http1'
import { ResponseReader } from '../../../packages/http1/src/client/response-reader.ts'
import { chopped, choppedAtRandom } from '../../generators/chunks.ts'
import { invariant } from '../invariant.ts'
import type { Target } from '../target.ts'
import { referenceMessage } from './http-reference.ts'

/** A response as its reader reports it. */
interface ParsedResponse {
  readonly head: UpstreamResponseHead | undefined
  readonly body: string
  readonly end: 'complete' | 'broken' | 'cut'
  /** Whether bytes followed the response. */
  readonly hasSurplus: boolean
  /** False if the connection is not reusable, else the seconds of the upstream's keep-alive, if stated. */
  readonly keepAlive: false | number | undefined
}

/** Byte between two responses of one connection; each was received whole before the next request. */
const RESPONSE_SEPARATOR = 0x1e

/** Reads the responses of one connection, as long as the connection is reusable. */
function parseResponses(inputs: readonly Buffer[], cut: (input: Buffer) => Buffer[]): ParsedResponse[] {
  const reader = new ResponseReader(new Set())
  const answers: ParsedResponse[] = []
  try {
    for (const input of inputs) {
      const answer = parseResponse(reader, cut(input))
      answers.push(answer)
      if (answer.keepAlive === false || answer.hasSurplus) break
    }
    return answers
  } finally {
    reader.free()
  }
}

function parseResponse(reader: ResponseReader, chunks: readonly Buffer[]): ParsedResponse {
  const heads: UpstreamResponseHead[] = []
  let body = ''
  const told = (end: ParsedResponse['end'], surplus: boolean): ParsedResponse => {
    invariant(heads.length <= 1, 'an answer has one head')
    const kept = end === 'complete' && reader.isReusable && reader.keepAliveSeconds
    // The bytes read before an error depend on the chunks.
    const isWhole = end !== 'broken'
    return {
      head: isWhole ? heads[0] : undefined,
      body: isWhole ? body : '',
      end,
      hasSurplus: surplus,
      keepAlive: kept,
    }
  }
  reader.expect()
  for (const [i, chunk] of chunks.entries()) {
    const step = reader.read(chunk, chunk.length)
    if (step.head) heads.push(step.head)
    invariant(step.body === undefined || heads.length === 1, 'no body comes before the head')
    body += step.body?.toString('latin1') ?? ''
    invariant(!(step.isComplete && step.error), 'what is broken is not complete')
    if (step.error) return told('broken', false)
    if (step.isComplete) return told('complete', step.hasSurplus || i < chunks.length - 1)
    invariant(!step.hasSurplus, 'there is no surplus before the end')
  }
  const last = reader.end()
  invariant(last.body === undefined, 'an end brings no body')
  if (last.head) heads.push(last.head)
  return { ...told(last.error ? 'broken' : last.isComplete ? 'complete' : 'cut', false), keepAlive: false }
}

/** Compares a response with the reference parser's. */
function compare(input: Buffer, { head, body, end, hasSurplus: surplus }: ParsedResponse): void {
  if (end !== 'complete' || !head) return
  let text = input.toString('latin1')
  let from = 0
  for (;;) {
    // The parser accepts CR CR at the end of a status line, which hides nothing.
    text =
      text.slice(0, from) + text.slice(from).replace(/^([\r\n]*HTTP\/1\.[01] \d{3}[^\r\n]*)\r\r/, '$1\r\n')
    const status = Number(/^[\r\n]*HTTP\/1\.[01] (\d{3})(?: |\r\n)/.exec(text.slice(from))?.[1])
    const hasBody = status >= 200 && status !== 204 && status !== 304
    const plain = referenceMessage(text, from, hasBody ? 'until closed' : 'never a body')
    if (!plain) throw new Error(`an answer was heard that is none: ${JSON.stringify(head)}`)
    from = plain.end
    if (status < 200) continue
    invariant(status === head.status, `its status is ${status}`)
    invariant(plain.body === body, 'its body is what is between head and end')
    invariant(plain.end < input.length === surplus, 'what comes after it is surplus')
    const [, type = ''] = plain.headers.find(([name, value]) => name === 'content-type' && value !== '') ?? []
    invariant(head.contentType === type.trim(), 'its content type is what was sent')
    return
  }
}

const OK = 'HTTP/1.1 200 OK\r\n'

/** Reader of upstream responses. */
export const HTTP_RESPONSES: Target = {
  maxBytes: 40_000,
  seeds: [
    `${OK}content-type: text/plain\r\ncontent-length: 5\r\n\r\nhello`,
    `${OK}content-type: text/event-stream\r\ntransfer-encoding: chunked\r\nkeep-alive: timeout=5\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nx: y\r\n\r\n`,
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 429 Too Many\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n`,
    `HTTP/1.1 199 X\r\ncontent-length: 1\r\n\r\nx${OK}content-length: 1\r\n\r\na`,
    `${OK}transfer-encoding:\r\ncontent-length: 5\r\n\r\nhello`,
    'HTTP/1.0 200 OK\r\n\r\nuntil the end',
    `HTTP/1.1 204 No Content\r\n\r\n`,
    `${OK}content-length: 0\r\n\r\n\x1e${OK}content-length: 1\r\n\r\na\x1eHTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n`,
    `${OK}content-length: 1\r\n\r\nab`,
    'HTTP/1.1 245 \r\n\r\nHTTP/1.1 103\r\r',
  ],
  tokens: [
    '\r\n',
    '\r\n\r\n',
    '\r',
    '\n',
    ' ',
    '\0',
    ':',
    '\x1e',
    '0\r\n\r\n',
    '5\r\nhello\r\n',
    ';a=b',
    'content-length: 5\r\n',
    'content-length: 0\r\n',
    'transfer-encoding: chunked\r\n',
    'transfer-encoding: gzip\r\n',
    'connection: close\r\n',
    'connection: keep-alive\r\n',
    'connection: upgrade\r\nupgrade: h2c\r\n',
    'keep-alive: timeout=60, max=1\r\n',
    'content-type: a/b\r\n',
    'retry-after: 9\r\n',
    'HTTP/1.1 101 Switching\r\n',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 200\r\n',
    'HTTP/1.0 ',
    'HTTP/2.0 ',
    '204',
    '304',
    '199',
    `x-long: ${'y'.repeat(5_000)}\r\n`,
    '\r\n'.repeat(500),
    `${'0'.repeat(300)}1`,
  ],
  repeated: [
    [OK, 'a: b\r\n', '\r\n'],
    [`${OK}transfer-encoding: chunked\r\n\r\n`, '1\r\na\r\n', '0\r\n\r\n'],
    ['', 'HTTP/1.1 100 Continue\r\n\r\n', `${OK}content-length: 0\r\n\r\n`],
  ],
  run(input, random) {
    const inputs = splitAt(input, RESPONSE_SEPARATOR)
    const whole = parseResponses(inputs, (each) => chopped(each, 65_536))
    for (const [i, answer] of whole.entries()) compare(inputs[i] as Buffer, answer)
    const told = JSON.stringify(whole)
    const cuts = [(each: Buffer) => choppedAtRandom(each, 1 + Math.floor(random() * 64), random)]
    if (input.length <= 300 && random() < 0.3) cuts.push((each) => chopped(each, 1))
    for (const cut of cuts) {
      const inPieces = JSON.stringify(parseResponses(inputs, cut))
      invariant(inPieces === told, `a cut changes nothing: ${told} became ${inPieces}`)
    }
    return whole
      .map(
        ({ head, body, end, hasSurplus: surplus, keepAlive: kept }) =>
          `${head?.status} ${body === ''} ${end} ${surplus} ${typeof kept}`,
      )
      .join()
  },
}

function splitAt(bytes: Buffer, mark: number): Buffer[] {
  const parts: Buffer[] = []
  let from = 0
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, from)) {
    parts.push(bytes.subarray(from, at))
    from = at + 1
  }
  return [...parts, bytes.subarray(from)]
}
