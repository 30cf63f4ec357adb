import { tmpdir } from 'node:os'
import {
  brotliCompressSync,
  brotliDecompressSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  inflateSync,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib'
import { setImmediate } from 'node:timers/promises'
import { Request, Response } from '@sluice/http1'
import { asGatewayError } from '../../../src/errors.ts'
import { RequestMemory } from '../../../src/limits/request-memory.ts'
import { type Body, BodyReader } from '../../../src/call/body-reader.ts'
import { Spool } from '../../../src/call/spool.ts'
import { choppedAtRandom } from '../../generators/chunks.ts'
import { invariant } from '../invariant.ts'
import type { Target } from '../target.ts'

interface Coding {
  readonly name: string | undefined
  readonly encode: (bytes: Buffer) => Buffer
  readonly decode: (bytes: Buffer) => Buffer
}

const identity = (bytes: Buffer): Buffer => bytes
/** Bound on the output of the reference decoders. */
const OUTPUT_BOUND = { maxOutputLength: 1 << 20 }
// Node's synchronous decoder ignores all that follows the first frame.
function firstFrame(bytes: Buffer): Buffer {
  const decoded = zstdDecompressSync(bytes, OUTPUT_BOUND)
  if (!zstdCompressSync(decoded).equals(bytes)) throw new Error('there may be more')
  return decoded
}
const CODINGS: readonly Coding[] = [
  { name: undefined, encode: identity, decode: identity },
  { name: 'identity', encode: identity, decode: identity },
  { name: 'gzip', encode: gzipSync, decode: (bytes) => gunzipSync(bytes, OUTPUT_BOUND) },
  { name: 'X-Gzip', encode: gzipSync, decode: (bytes) => gunzipSync(bytes, OUTPUT_BOUND) },
  { name: 'br', encode: brotliCompressSync, decode: (bytes) => brotliDecompressSync(bytes, OUTPUT_BOUND) },
  { name: 'deflate', encode: deflateSync, decode: (bytes) => inflateSync(bytes, OUTPUT_BOUND) },
  { name: 'zstd', encode: zstdCompressSync, decode: firstFrame },
]
const LIMITS = [16, 256, 65_536]
const REFUSALS = new Set(['request_too_large', 'unsupported_media_type', 'invalid_request'])

/** Test case encoded in an input: its first two bytes select the settings. */
interface BodyCase {
  readonly coding: Coding
  readonly limit: number
  /** Whether the connection is lost before the end of the body. */
  readonly isCut: boolean
  readonly wire: Buffer
}

function bodyCase(input: Buffer): BodyCase {
  const [first = 0, second = 0] = input
  const coding = CODINGS[first % CODINGS.length] as Coding
  const rest = input.subarray(2)
  return {
    coding,
    limit: LIMITS[second % LIMITS.length] as number,
    isCut: (second & 0x40) !== 0,
    wire: (second & 0x80) === 0 ? coding.encode(rest) : rest,
  }
}

/** Shared by all runs, since each reader keeps a timer for a second after its last body. */
const memory = new RequestMemory(
  () => 65_536,
  () => performance.now(),
)
const spool = new Spool(
  tmpdir(),
  () => 65_536,
  () => performance.now(),
)
const bodies = new BodyReader(memory, spool)

/** Reads a body to its text, or to the code of its refusal. */
async function read(
  { coding, limit, isCut, wire }: BodyCase,
  cut: (wire: Buffer) => Buffer[],
): Promise<string> {
  const headers = {
    'content-type': 'application/json',
    ...(coding.name && { 'content-encoding': coding.name }),
  }
  const head = { method: 'POST', url: '/', version: '1.1', headers, hosts: 1, keepAlive: true }
  const source = { bytesRead: 0, remoteAddress: '', updateReading(): void {} }
  const request = new Request(head, source)
  const sink = {
    isOpen: true,
    send: () => true,
    sendParts: () => true,
    responseEnded(): void {},
    needsUpstream(): void {},
    destroy(): void {},
  }
  const response = new Response(sink, head)
  const read = async (): Promise<Body> =>
    bodies.read({ request, response }, { owner: { client: 1, key: 1 }, limit })
  const reading = read().then(
    (body) => {
      invariant(memory.held === body.bytes.length, 'the memory held is the size of the body')
      invariant(body.bytes.length <= limit, 'a body is no larger than it may be')
      body.release()
      return `read ${body.bytes.toString('latin1')}`
    },
    (error: unknown) => {
      const known = asGatewayError(error)
      if (!known) throw error
      invariant(REFUSALS.has(known.code), `${known.code} is no refusal of a body`)
      return known.code
    },
  )
  for (const piece of cut(wire)) {
    while (request.isPaused) await setImmediate()
    source.bytesRead += piece.length
    request.onChunks([piece])
  }
  request.onBodyEnd(isCut ? 'aborted' : 'complete')
  const result = await reading
  invariant(memory.held === 0, 'all memory is given back at the end')
  return result
}

/** Expected result of `read`, where it is known. */
function expectedOutcome({ coding, limit, isCut, wire }: BodyCase): string | undefined {
  if (isCut) return undefined
  let decoded: Buffer
  try {
    decoded = coding.decode(wire)
  } catch {
    return undefined
  }
  return decoded.length > limit ? 'request_too_large' : `read ${decoded.toString('latin1')}`
}

/** Reader of request bodies, with its decoders. */
export const REQUEST_BODIES: Target = {
  // Too small for more than the maximum of zstd frames.
  maxBytes: 800,
  seeds: [
    '\0\0{"a":1}',
    '\x01\x01{"a":1}',
    `\x02\x02${'{"a":1}'.repeat(50)}`,
    `\x03\x01${'a'.repeat(600)}`,
    '\x04\x02{"a":1}',
    '\x05\x02{"a":1}',
    '\x06\x02{"a":1}',
    '\0\x40{"a',
    '\x02\x42{"a',
    Buffer.concat([
      Buffer.of(6, 0x82),
      ...['{"a"', ':1}'].map((part) => zstdCompressSync(Buffer.from(part))),
    ]),
    Buffer.from('BoIotS/9IAQhAAB7ImEiKLUv/SADGQAAOisxfQ==', 'base64'),
    ...CODINGS.map(({ encode }, i) =>
      Buffer.concat([Buffer.of(i, 0x82), encode(Buffer.from('{"a":[1,2,3]}'))]),
    ),
  ],
  tokens: ['{"a":1}', 'a'.repeat(300), '\x1f\x8b\x08', '\0\0\0\0', '\0\0\xff\xff'],
  repeated: [],
  async run(input, random) {
    const choice = bodyCase(input)
    const whole = await read(choice, (wire) => (wire.length === 0 ? [] : [wire]))
    const inPieces = await read(choice, (wire) =>
      choppedAtRandom(wire, 1 + Math.floor(random() * 32), random),
    )
    // Which of two reasons for a refusal is found first may depend on the chunks.
    const isEither = !whole.startsWith('read') && !inPieces.startsWith('read')
    invariant(isEither || whole === inPieces, `a cut changes nothing: ${whole} became ${inPieces}`)
    const expected = expectedOutcome(choice)
    invariant(expected === undefined || whole === expected, `it is read to ${expected}, not ${whole}`)
    if (choice.isCut) invariant(!whole.startsWith('read'), 'what was cut is not read')
    return `${choice.coding.name} ${choice.limit} ${whole.split(' ')[0]}`
  },
}
