import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Random, seededRandom } from './random.ts'
import type { Frame, Reply } from './upstream.ts'

/** Speed of a simulated model, in milliseconds. */
export interface Pace {
  readonly firstTokenMs: number
  readonly tokenMs: number
  /** Maximum time, in milliseconds, of a reply that is not streamed, regardless of its number of tokens. */
  readonly maxWholeMs: number
}

/**
 * The pace of a real model: the first token after 250 ms, then forty tokens a second; replies that are not
 * streamed within half a second.
 */
export const REALISTIC_PACE: Pace = { firstTokenMs: 250, tokenMs: 25, maxWholeMs: 500 }

/** Sends a reply at a pace; rejects with an AbortError once the client has disconnected. */
export async function sendAtPace(response: ServerResponse, reply: Reply, pace: Pace): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  for (const [name, value] of Object.entries(reply.headers ?? {})) response.setHeader(name, value)
  if (reply.kind !== 'stream') {
    const generating = pace.firstTokenMs + reply.tokens * pace.tokenMs
    await sleep(Math.min(generating, pace.maxWholeMs), undefined, { signal: gone.signal })
    if (reply.kind === 'whole' && reply.status !== undefined) response.statusCode = reply.status
    response.setHeader('content-type', reply.kind === 'bytes' ? reply.contentType : 'application/json')
    response.end(reply.kind === 'bytes' ? reply.bytes : JSON.stringify(reply.body))
    return
  }
  const { contentType = 'text/event-stream; charset=utf-8', encoding = 'utf8' } = reply
  response.setHeader('content-type', contentType)
  response.setHeader('cache-control', 'no-cache')
  response.flushHeaders()
  await sleep(pace.firstTokenMs, undefined, { signal: gone.signal })
  const random = seededRandom(String(reply.frames.length))
  for (const text of paced(reply.frames)) {
    if (text === undefined) await sleep(jittered(pace.tokenMs, random), undefined, { signal: gone.signal })
    else if (!response.write(text, encoding)) await once(response, 'drain', { signal: gone.signal })
  }
  response.end()
}

/**
 * Yields the text of the frames, and `undefined` for each token's waiting time. Texts without a wait between
 * them are joined.
 */
export function* paced(frames: readonly Frame[]): Generator<string | undefined> {
  let gathered = ''
  for (const { text, tokens } of frames) {
    if (tokens > 0 && gathered !== '') {
      yield gathered
      gathered = ''
    }
    for (let waited = 0; waited < tokens; waited++) yield undefined
    gathered += text
  }
  if (gathered !== '') yield gathered
}

/** Varies a time randomly between 50 and 150 per cent. */
function jittered(milliseconds: number, random: Random): number {
  return milliseconds * (0.5 + random())
}
