import type { Caller } from '../../accounts/authentication/caller.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import { GatewayError } from '../../errors.ts'
import { answerHeaders } from '../../http/answer-headers.ts'
import type { StoreReads } from '../../limits/store-reads.ts'
import type { BatchApi } from './batch.ts'

/** Bytes of memory that are reserved while a content is sent part by part. */
export const PARTS_BYTES = 1_048_576
const MIN_EXPIRY_SECONDS = 3_600

/** Waits until the user may read the database, and until memory for what is read is free. */
export async function beginReading(
  reads: StoreReads,
  { response }: IncomingCall,
  caller: Caller,
  bytes = 0,
): Promise<void> {
  const reading = reads.of(caller.user.id)
  response.onClosed(() => reading.end())
  // If the client left before `onClosed` was called, its listener is not called.
  if (response.isAborted) reading.end()
  await reading.begin()
  if (bytes > 0) await reading.hold(bytes)
}

/** The milliseconds after which a file expires that a request states as an anchor and seconds; `keepMs` if it states neither. */
export function expiryMs(name: string, anchor: unknown, seconds: unknown, keepMs: number): number {
  if (anchor === undefined && seconds === undefined) return keepMs
  if (anchor !== 'created_at') throw invalid(`${name}[anchor]: expected "created_at"`)
  const max = Math.floor(keepMs / 1_000)
  if (!Number.isInteger(seconds) || Number(seconds) < MIN_EXPIRY_SECONDS || Number(seconds) > max)
    throw invalid(`${name}[seconds]: expected ${MIN_EXPIRY_SECONDS} to ${max}`)
  return Number(seconds) * 1_000
}

export function seconds(ms: number): number {
  return Math.floor(ms / 1_000)
}

export function readQuery({ request: { url } }: IncomingCall): URLSearchParams {
  const at = url.indexOf('?')
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1))
}

export function orderIn(query: URLSearchParams): 'asc' | 'desc' {
  const given = query.get('order') ?? 'desc'
  if (given !== 'asc' && given !== 'desc') throw invalid('order: expected asc or desc')
  return given
}

export function limitIn(query: URLSearchParams, max: number, usual: number): number {
  const given = query.get('limit')
  if (given === null) return usual
  const limit = /^\d{1,6}$/.test(given) ? Number(given) : 0
  if (limit < 1 || limit > max) throw invalid(`limit: expected 1 to ${max}`)
  return limit
}

export function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 64))
}

export function invalid(message: string): GatewayError {
  return new GatewayError('invalid_request', message)
}

export function answer({ id, response }: IncomingCall, value: object, api: BatchApi = 'openai'): void {
  if (response.isAborted) return
  const body = Buffer.from(JSON.stringify(value))
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  const all = {
    ...answerHeaders(id, api === 'messages' ? 'messages' : 'chat'),
    ...headers,
    'content-length': String(body.length),
  }
  response.writeHead(200, all).end(body)
}
