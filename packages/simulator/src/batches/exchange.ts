import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type FaultyProtocol, errorBody } from '../faults.ts'
import { type Fields, asFields } from '../fields.ts'
import { malformed, Refusal } from '../refusal.ts'
import type { BatchControl, Step, StepFault } from './behaviour.ts'

/** A request to one of the APIs for batches, and its response. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly method: string
  /** The path of the request, with the version. */
  readonly path: string
  readonly query: URLSearchParams
  /** The client's key; empty if it gave none. */
  readonly account: string
}

/** What a request is answered with: JSON, or a content in pieces. */
export type Answer =
  | { readonly json: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly pieces: AsyncIterable<Buffer>; readonly contentType: string }

/** A path of an API for batches. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Its groups are passed to `answer`. */
  readonly path: RegExp
  readonly step: Step
  /** Whether it needs no key, because an id in the request stands for one. */
  readonly isOpen?: true
  readonly answer: (
    exchange: Exchange,
    parts: readonly string[],
    fault?: StepFault,
  ) => Promise<Answer> | Answer
}

/** Answers a request if one of the routes is for it, and plays the fault that it meets. */
export async function serveRoutes(
  routes: readonly Route[],
  control: BatchControl,
  protocol: FaultyProtocol,
  exchange: Exchange,
): Promise<boolean> {
  const { method, path, response, request, account } = exchange
  const route = routes.find((one) => one.method === method && one.path.test(path))
  if (!route) return false
  if (account === '' && !route.isOpen) throw new Refusal('missing_key', 'No API key was given')
  const fault = control.take(route.step)
  if (fault?.status !== undefined) {
    request.resume()
    if (!request.complete) await once(request, 'end')
    if (fault.retryAfter !== undefined) response.setHeader('retry-after', String(fault.retryAfter))
    sendJson(response, errorBody(protocol, fault.status), fault.status)
    return true
  }
  const parts = route.path.exec(path)?.slice(1) ?? []
  const answer = await route.answer(exchange, parts.map(decodeURIComponent), fault)
  if (fault?.isLost) response.destroy()
  else if ('json' in answer) {
    for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value)
    sendJson(response, answer.json)
  } else await sendPieces(response, answer.pieces, answer.contentType, fault?.broken)
  return true
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
}

/**
 * Sends a content in pieces. After `broken` of them, half of the next one is sent and the connection is broken.
 * May reject with an AbortError once the client has disconnected.
 */
async function sendPieces(
  response: ServerResponse,
  pieces: AsyncIterable<Buffer>,
  contentType: string,
  broken = Infinity,
): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  response.writeHead(200, { 'content-type': contentType })
  response.flushHeaders()
  let sent = 0
  for await (const piece of pieces) {
    if (response.destroyed) return
    if (sent >= broken) {
      await new Promise((resolve) => response.write(piece.subarray(0, piece.length / 2), resolve))
      break
    }
    sent += 1
    if (!response.write(piece)) await once(response, 'drain', { signal: gone.signal })
  }
  if (broken === Infinity) response.end()
  else response.destroy()
}

/** Reads a small JSON body. */
export async function jsonOf(request: IncomingMessage): Promise<Fields> {
  const pieces: Buffer[] = []
  for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece)
  if (pieces.length === 0) return {}
  try {
    return asFields(JSON.parse(Buffer.concat(pieces).toString()))
  } catch {
    throw malformed('The body of the request is not a JSON object')
  }
}

/** A page of a list that is read by ids: up to `limit` items after one of them, and whether more follow. */
export function pageAfter<Item>(
  items: readonly Item[],
  idOf: (item: Item) => string,
  after: string | null,
  limit: number,
): { readonly page: Item[]; readonly hasMore: boolean } {
  const rest = items.slice(items.findIndex((item) => idOf(item) === after) + 1)
  return { page: rest.slice(0, limit), hasMore: rest.length > limit }
}
