import { type AddressInfo, createServer, type Socket } from 'node:net'
import process from 'node:process'
import { MessageReader } from './frames.ts'
import { MARK, nowMicros, writeStamp } from './stamp.ts'
import { type Answers, answersOf } from './upstream-answers.ts'
import { BEHAVIOURS, type Behaviour, LATE_MS, PACE_MS, PATHS, type Wire } from './wire.ts'

/**
 * An upstream with prepared responses, as cheap as possible. The model's name selects the `Behaviour`; any
 * other model is answered at once. Sends its port to its parent process, and ends its streams on the message
 * `finish`.
 */
const answers: Readonly<Record<Wire, Answers>> = {
  chat: answersOf('chat'),
  messages: answersOf('messages'),
  responses: answersOf('responses'),
  gemini: answersOf('gemini'),
}

const HELD_PACE_MS = 1000

interface Stream {
  readonly socket: Socket
  readonly said: Answers
  at: number
}

/** Streams by the millisecond within the pace at which they are served. */
const slots = Array.from({ length: PACE_MS }, () => new Set<Stream>())
const idle = new Set<Stream>()
const held = new Set<Stream>()
/** Clean-up for each connection when it closes; a connection carries one stream at a time. */
const leaving = new WeakMap<Socket, () => void>()

const server = createServer({ noDelay: true }, (socket) => {
  const reader = new MessageReader()
  socket.on('data', (chunk: Buffer) =>
    reader.push(chunk, (firstLine, body) => {
      const wire =
        (['messages', 'responses', 'gemini'] as const).find((one) => firstLine.includes(PATHS[one])) ?? 'chat'
      answer(socket, answers[wire], wire === 'gemini' ? behaviourIn(firstLine) : behaviourOf(body))
    }),
  )
  socket.on('error', () => {})
  socket.on('close', () => leaving.get(socket)?.())
})

function behaviourOf(body: Buffer): Behaviour {
  const at = body.indexOf('"model":"') + 9
  return named(body.toString('latin1', at, body.indexOf('-', at)))
}

/** The behaviour of the model named by a path. */
function behaviourIn(firstLine: string): Behaviour {
  const at = firstLine.indexOf(PATHS.gemini) + PATHS.gemini.length
  return named(firstLine.slice(at, firstLine.indexOf('-', at)))
}

function named(name: string): Behaviour {
  return BEHAVIOURS.find((behaviour) => behaviour === name) ?? 'whole'
}

function answer(socket: Socket, said: Answers, behaviour: Behaviour): void {
  switch (behaviour) {
    case 'whole':
      socket.write(said.whole)
      return
    case 'stating':
      socket.write(said.stating)
      return
    case 'late': {
      const came = nowMicros()
      setTimeout(() => socket.write(stamped(said.whole, nowMicros() - came)), LATE_MS)
      return
    }
    case 'burst':
      socket.write(said.burst)
      return
    case 'paced':
      begin(socket, said, slots[nextSlot()])
      return
    case 'idle':
      begin(socket, said, idle)
      return
    case 'held':
      begin(socket, said, held)
  }
}

function begin(socket: Socket, said: Answers, streams: Set<Stream> | undefined): void {
  const stream = { socket, said, at: 0 }
  streams?.add(stream)
  if (streams) leaving.set(socket, () => streams.delete(stream))
  socket.write(said.streamStart)
  say(stream)
}

function say(stream: Stream): void {
  const { socket, said } = stream
  const piece = said.pieces[stream.at]
  stream.at = (stream.at + 1) % said.pieces.length
  if (piece) socket.write(stamped(piece, nowMicros()))
}

/** Copies the bytes, because bytes written earlier may not have been sent yet. */
function stamped(bytes: Buffer, micros: number): Buffer {
  const copy = Buffer.from(bytes)
  writeStamp(copy, copy.indexOf(MARK) + 1, micros)
  return copy
}

let begun = 0
// Returns slots in an order that distributes any number of streams evenly.
function nextSlot(): number {
  begun += 1
  return (begun * 19) % PACE_MS
}

let slot = 0
let dueMs = performance.now()
setInterval(() => {
  // Serves all slots that are due, because a late timer must not slow the pace.
  for (; dueMs <= performance.now(); dueMs += 1) {
    for (const stream of slots[slot] ?? []) say(stream)
    slot = (slot + 1) % PACE_MS
  }
}, 1)

setInterval(() => {
  for (const stream of held) say(stream)
}, HELD_PACE_MS)

function finish(): void {
  for (const streams of [...slots, idle]) {
    for (const { socket, said } of streams) socket.write(said.streamEnd)
    streams.clear()
  }
}

process.on('message', (told) => {
  if (told === 'finish') finish()
})
process.on('disconnect', () => process.exit())
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
