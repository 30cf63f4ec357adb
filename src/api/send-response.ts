import { isJsonText } from '@sluice/wire/json/exact-json'
import { type Response, type ResponseHeaders, sendResponsePieces } from '@sluice/http1'
import type { Encoding } from '../http/content-encoding.ts'
import { TURN_BUDGET } from '../limits/event-loop.ts'
import { encodeBody, encodeResponsePieces, encodingHeaders } from './compress-response.ts'
import type { TextFormat } from './endpoint.ts'

const IS_JSON = { 'content-type': 'application/json' }

/** Number of characters of a JSON text that are written at a time. */
const BATCH = 64 * 1024

/** Part of a JSON text, and whether more follows. */
interface Batch {
  readonly text: string
  readonly isLast: boolean
}

/**
 * Sends a value as JSON with status 200. A large value is written in batches, as fast as its client reads
 * them, so that other calls can run in between.
 */
export async function sendJson(
  response: Response,
  headers: ResponseHeaders,
  value: unknown,
  encoding?: Encoding,
): Promise<void> {
  const pieces = jsonPieces(value)
  const first = nextBatch(pieces)
  if (first.isLast) return sendJsonText(response, headers, Buffer.from(first.text), encoding)
  const all = { ...IS_JSON, ...encodingHeaders(encoding), ...headers }
  return sendResponsePieces(response, all, encodeResponsePieces(batches(first, pieces), encoding))
}

/** Sends bytes that are already JSON with status 200. */
export async function sendJsonText(
  response: Response,
  headers: ResponseHeaders,
  given: Buffer,
  encoding?: Encoding,
): Promise<void> {
  const { body, headers: own } = await encodeBody(given, encoding)
  const length = String(body.length)
  response.writeHead(200, { ...IS_JSON, 'content-length': length, ...own, ...headers }).end(body)
}

async function* batches(
  first: Batch,
  pieces: Iterator<string, void>,
): AsyncGenerator<string, void, undefined> {
  let batch = first
  yield batch.text
  while (!batch.isLast) {
    batch = await TURN_BUDGET.work(() => nextBatch(pieces))
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

/**
 * Nesting depth down to which JSON is written in pieces: the response, its data, a list in the data, and the
 * list's elements.
 */
const DEPTH = 4

/**
 * Yields the JSON of a value in pieces, one for each object member and list element; together they are what
 * `JSON.stringify` returns.
 */
export function* jsonPieces(value: unknown, depth = DEPTH): Generator<string, void, undefined> {
  if (depth > 0 && Array.isArray(value)) yield* elements(value, depth - 1)
  else if (depth > 0 && isPlain(value)) yield* members(value, depth - 1)
  else yield JSON.stringify(value)
}

function* elements(list: readonly unknown[], depth: number): Generator<string, void, undefined> {
  let before = '['
  for (const element of list) {
    yield before
    yield* jsonPieces(isWritten(element) ? element : null, depth)
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}

function* members(object: object, depth: number): Generator<string, void, undefined> {
  let before = '{'
  for (const [name, value] of Object.entries(object)) {
    if (!isWritten(value)) continue
    yield `${before}${JSON.stringify(name)}:`
    yield* jsonPieces(value, depth)
    before = ','
  }
  yield before === '{' ? '{}' : '}'
}

function isWritten(value: unknown): boolean {
  return value !== undefined && typeof value !== 'function' && typeof value !== 'symbol'
}

/** Whether a value is a plain object, which has no `toJSON` and no class of its own. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || 'toJSON' in value || isJsonText(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Sends a text response piece by piece, as fast as the client reads it. */
export function sendText(
  response: Response,
  { type, filename, isEndless }: Omit<TextFormat, 'filename'> & { readonly filename?: string | undefined },
  headers: ResponseHeaders,
  text: AsyncIterable<string>,
  accepted?: Encoding,
): Promise<void> {
  const encoding = isEndless ? 'identity' : accepted
  const own = {
    'content-type': type,
    ...(filename !== undefined && { 'content-disposition': `attachment; filename="${filename}"` }),
    ...(isEndless && { 'x-accel-buffering': 'no' }),
    ...encodingHeaders(encoding),
  }
  return sendResponsePieces(response, { ...own, ...headers }, encodeResponsePieces(text, encoding))
}

/** Yields a text as a single piece. */
export async function* wholeText(text: string): AsyncGenerator<string, void, undefined> {
  yield await Promise.resolve(text)
}
