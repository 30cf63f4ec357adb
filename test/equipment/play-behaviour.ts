import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Behaviour,
  completionText,
  contentFrame,
  DONE_FRAME,
  finishFrame,
  roleFrame,
  type Streamed,
  usageFrame,
  usageText,
} from './behaviour.ts'

/** The request that a behaviour answers, and its record. */
export interface Playback {
  readonly reply: ServerResponse
  readonly socket: Socket
  /** The number of the request on its connection, from 1. */
  readonly requestOfConnection: number
  readonly askedForUsage: boolean
  readonly model: string
  readonly streaming: boolean
  /** Called after each content event. */
  sent(): void
}

const FAULT_DELAY_MS = 80

/** Answers one request as the behaviour specifies. */
export async function play(behaviour: Behaviour, performance: Playback): Promise<void> {
  const { reply, socket } = performance
  if (behaviour.after) await behaviour.after
  if (socket.destroyed) return
  switch (behaviour.kind) {
    case 'whole': {
      const usage = behaviour.usage === undefined ? usageText(10, 5) : behaviour.usage
      const body =
        behaviour.body ?? completionText(behaviour.content ?? 'Hello there.', usage, performance.model)
      reply.writeHead(200, { 'content-type': 'application/json', ...behaviour.headers })
      reply.end(body)
      return
    }
    case 'status':
      reply.writeHead(behaviour.status, { 'content-type': 'application/json', ...behaviour.headers })
      reply.end(behaviour.body ?? '')
      return
    case 'silence':
      return
    case 'raw':
      socket.write(behaviour.bytes)
      if (behaviour.ending !== 'stall') await leave(socket, behaviour.ending)
      return
    case 'drop':
      if (behaviour.when === 'only if reused' && performance.requestOfConnection === 1)
        return play({ kind: 'whole' }, performance)
      socket.destroy()
      return
    case 'stream':
      return playStream(behaviour, performance)
  }
}

async function playStream(stream: Streamed, performance: Playback): Promise<void> {
  const { reply, socket } = performance
  const write = async (text: string): Promise<void> => {
    if (!stream.drip) return push(reply, text)
    for (const byte of Buffer.from(text)) {
      await push(reply, Buffer.of(byte))
      await new Promise(setImmediate)
    }
  }
  reply.writeHead(200, { 'content-type': 'text/event-stream', ...stream.headers })
  socket.setNoDelay(true)
  if (stream.frames) {
    for (const frame of stream.frames) {
      if (socket.destroyed) break
      if (stream.paceMs) await sleep(stream.paceMs)
      await write(frame)
    }
    await stream.rest?.after
    for (const frame of stream.rest?.frames ?? []) await write(frame)
  } else {
    await write(roleFrame())
    const count = stream.events ?? 5
    for (let index = 0; index < count && !socket.destroyed; index++) {
      if (stream.paceMs) await sleep(stream.paceMs)
      else await new Promise(setImmediate)
      await write(contentFrame(stream.word ?? ` word${index}`))
      performance.sent()
    }
  }
  await stream.endsAfter
  if (!socket.destroyed) await end(stream, performance, write)
}

async function end(
  stream: Streamed,
  { reply, socket, askedForUsage }: Playback,
  write: (text: string) => Promise<void>,
): Promise<void> {
  const usage = stream.usage === undefined ? usageText(10, stream.events ?? 5) : stream.usage
  const ending = stream.ending ?? 'done'
  // Bytes sent before a fault must have arrived; a gateway may delay them for a commit.
  if (ending !== 'done' && ending !== 'no done' && ending !== 'stall') await sleep(FAULT_DELAY_MS)
  switch (ending) {
    case 'stall':
      return
    case 'close':
    case 'reset':
      return leave(socket, ending)
    case 'half frame':
      await write('data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"cut he')
      reply.end()
      return
    case 'error':
      await write('data: {"error":{"message":"the upstream stumbled","type":"server_error","code":null}}\n\n')
      reply.end()
      return
    case 'no done':
    case 'done':
      if (stream.frames === undefined) {
        await write(finishFrame(stream.usageIn === 'finish chunk' && usage !== null ? usage : undefined))
        const inFrame = stream.usageIn === 'always' || (stream.usageIn !== 'finish chunk' && askedForUsage)
        if (inFrame && usage !== null) await write(usageFrame(usage))
      }
      // Frames may already include [DONE]. If it were sent twice, the number of copies that arrive would
      // depend on the network's timing.
      if (ending !== 'no done' && !stream.frames?.at(-1)?.includes('[DONE]')) await write(DONE_FRAME)
      reply.end()
  }
}

function push(reply: ServerResponse, bytes: string | Buffer): Promise<void> {
  if (reply.destroyed || reply.write(bytes)) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      reply.off('drain', done).off('close', done)
      resolve()
    }
    reply.on('drain', done).on('close', done)
  })
}

async function leave(socket: Socket, how: 'close' | 'reset'): Promise<void> {
  await sleep(10)
  if (how === 'reset') socket.resetAndDestroy()
  else socket.end()
}
