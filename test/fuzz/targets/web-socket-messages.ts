import { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { scanObject } from '@sluice/wire/json/json-scan'
import { asGatewayError } from '../../../src/errors.ts'
import { MessageMeter } from '../../../src/features/websocket/message-meter.ts'
import { bodyAfter, withLane } from '../../../src/features/websocket/turn.ts'
import { readFrame, readTurnFrame } from '../../../src/features/websocket/turn-frame.ts'
import { choppedAtRandom } from '../../generators/chunks.ts'
import { invariant } from '../invariant.ts'
import type { Target } from '../target.ts'
import { JSON_TOKENS } from './tokens.ts'

const MAX_BYTES = 4_096
const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: MAX_BYTES,
  closeTimeout: 1,
  handleProtocols: () => false,
})
const UPGRADE = {
  method: 'GET',
  id: '',
  headers: {
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  },
}

/** What the library reads of the bytes: texts, or the code with which it closes. */
async function messagesOf(
  pieces: readonly Buffer[],
): Promise<{ texts: string[]; error: string | undefined }> {
  const below = new Duplex({ read() {}, write: (_, __, done) => done() })
  const socket = await new Promise<WebSocket>((resolve) =>
    server.handleUpgrade(UPGRADE, below, Buffer.alloc(0), resolve),
  )
  const texts: string[] = []
  let error: string | undefined
  socket.on('message', (data: Buffer, isBinary: boolean) => void (isBinary || texts.push(data.toString())))
  socket.on('error', ({ message }: Error) => (error ??= message))
  const closed = new Promise((resolve) => socket.on('close', resolve))
  for (const piece of pieces) below.push(Buffer.from(piece))
  below.push(null)
  await closed
  return { texts, error }
}

/** Checks what becomes of a text. Returns the code of its refusal, or how it was read. */
function read(text: string): string {
  try {
    const frame = readTurnFrame(readFrame(Buffer.from(text)))
    const base = {
      id: 'resp_1',
      items: Buffer.from('{"type":"message"}'),
      after: undefined,
      instructions: '"x"',
    }
    for (const state of [undefined, base]) {
      const body = scanObject(bodyAfter(frame, state))
      invariant(body.value('stream') === true, 'a turn is streamed')
      for (const name of ['type', 'stream_id', 'generate']) invariant(!body.has(name), `${name} is not sent`)
      if (state) invariant(!body.has('previous_response_id'), 'the conversation is sent in place of its id')
      if (state)
        invariant(body.textOf(body.span('input')?.node ?? 0).includes('"message"'), 'it is sent first')
    }
    const named = JSON.parse(withLane('{"type":"x"}', frame.lane)) as Record<string, unknown>
    invariant(named['stream_id'] === frame.lane, 'an event has the name of its lane')
    return 'turn'
  } catch (error) {
    const known = asGatewayError(error)
    if (!known) throw error
    invariant(known.kind.status === 400, `${known.code} is no refusal of a message`)
    return known.code
  }
}

/** Messages of clients on a WebSocket, from the bytes of the connection to the body of a request. */
export const WEB_SOCKET_MESSAGES: Target = {
  maxBytes: 1_024,
  seeds: [
    framed(0x81, '{"type":"response.create","model":"m","input":"x","stream_id":"a","generate":false}'),
    Buffer.concat([
      framed(0x01, '{"type":'),
      framed(0x89, 'ping'),
      framed(0x80, '"response.create","input":[{}]}'),
    ]),
    framed(
      0x81,
      '{"background":null,"stream":5,"previous_response_id":"resp_1","instructions":null,"input":null}',
    ),
    framed(0x82, '{}'),
    framed(0x88, '\u0003\u00e8'),
    framed(0x81, 'x'.repeat(300)),
    Buffer.of(0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x7b, 0x7d),
    Buffer.of(0xc1, 0x80),
  ],
  tokens: [...JSON_TOKENS, '\x81\x85\0\0\0\0', '\x01\x82\0\0\0\0', '\x80\x80\0\0\0\0', '\xfe', '\xff'],
  repeated: [],
  async run(input, random) {
    const pieces = choppedAtRandom(input, 1 + Math.floor(random() * 16), random)
    const [whole, cut] = await Promise.all([messagesOf(input.length > 0 ? [input] : []), messagesOf(pieces)])
    invariant(JSON.stringify(whole) === JSON.stringify(cut), 'a cut changes nothing')
    const [meter, pieceMeter] = [new MessageMeter(), new MessageMeter()]
    const hasEnded = meter.count(input)
    for (const piece of pieces) pieceMeter.count(piece)
    invariant(meter.unfinished === pieceMeter.unfinished, 'the count does not depend on the cuts')
    invariant(meter.unfinished <= input.length, 'no more is counted than has arrived')
    if (whole.texts.length > 0) invariant(hasEnded, 'the end of a message is seen')
    if (whole.error === undefined)
      invariant(
        (unfinishedBytes(input) ?? meter.unfinished) === meter.unfinished,
        'what follows the last message is counted',
      )
    return [...new Set(whole.texts.map(read)), whole.error ?? 'fine'].join(' ')
  },
}

/**
 * Bytes after the last message that ended, without those of control frames; undefined if a frame closes the socket, which
 * ends the reading. `bytes` keep the protocol.
 */
function unfinishedBytes(bytes: Buffer): number | undefined {
  let count = 0
  for (let at = 0; at < bytes.length; ) {
    const [first = 0, second = 0] = bytes.subarray(at)
    if ((first & 0x0f) === 0x08) return undefined
    const isControl = (first & 0x08) !== 0
    const short = second & 0x7f
    const extended = short === 127 ? 8 : short === 126 ? 2 : 0
    // A client's frame has a mask of four bytes.
    const head = 2 + extended + 4
    const isWhole = bytes.length - at >= head
    const length =
      isWhole && extended > 0
        ? bytes.readUIntBE(at + 2 + Math.max(0, extended - 6), Math.min(extended, 6))
        : short
    const end = isWhole ? Math.min(bytes.length, at + head + length) : bytes.length
    if (!isControl) count += end - at
    if (!isControl && (first & 0x80) !== 0 && isWhole && bytes.length - at >= head + length) count = 0
    at = end
  }
  return count
}

function framed(first: number, text: string): Buffer {
  const payload = Buffer.from(text)
  const length =
    payload.length < 126 ? [0x80 | payload.length] : [0xfe, payload.length >> 8, payload.length & 0xff]
  return Buffer.concat([Buffer.of(first, ...length, 0, 0, 0, 0), payload])
}
