import { type Response, type ResponseHeaders, sendPieces } from '@sluice/http1'
import { LOOP_TURNS } from '../limits/shared-turns.ts'
import { jsonPieces } from './json-pieces.ts'

const IS_JSON = { 'content-type': 'application/json' }
/** Number of characters written at a time. */
const BATCH = 64 * 1024

/** Part of a JSON text, and whether more follows. */
interface Batch {
  readonly text: string
  readonly isLast: boolean
}

/**
 * Sends a value as JSON with status 200. A large one is written batch by batch, as fast as its client reads,
 * and other calls run in between.
 */
export async function sendJson(response: Response, headers: ResponseHeaders, value: unknown): Promise<void> {
  const pieces = jsonPieces(value)
  const first = nextBatch(pieces)
  if (first.isLast) return sendBody(response, headers, Buffer.from(first.text))
  return sendPieces(response, { ...IS_JSON, ...headers }, batches(first, pieces))
}

/** Sends rendered JSON with status 200. */
export function sendBody(response: Response, headers: ResponseHeaders, body: Buffer): void {
  const length = String(body.length)
  response.writeHead(200, { ...IS_JSON, 'content-length': length, ...headers }).end(body)
}

async function* batches(
  first: Batch,
  pieces: Iterator<string, void>,
): AsyncGenerator<string, void, undefined> {
  let batch = first
  yield batch.text
  while (!batch.isLast) {
    batch = await LOOP_TURNS.work(() => nextBatch(pieces))
    yield batch.text
  }
}

function nextBatch(pieces: Iterator<string, void>): Batch {
  let text = ''
  while (text.length < BATCH) {
    const { done, value } = pieces.next()
    if (done) return { text, isLast: true }
    text += value
  }
  return { text, isLast: false }
}
