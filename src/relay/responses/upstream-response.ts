import { TransportError } from '@sluice/http1'
import type { StoredResponse } from '../../domain/stored-response.ts'
import { GatewayError } from '../../errors.ts'
import { OperatorHold } from '../../accounts/ledger/operator-hold.ts'
import type { StoreRead } from '../../limits/store-reads.ts'
import type { RenamedIds } from '@sluice/wire/responses'
import { exchangePieces } from '../../upstreams/exchange-pieces.ts'
import type { UpstreamClient } from '../../upstreams/upstream-client.ts'
import { failureOfStatus } from '../failure.ts'
import type { ResponseAccount } from './response-account.ts'
import type { IncomingCall } from '../request-stages.ts'

/** Maximum bytes of a response that is read as a whole, and of an error. */
const MAX_BYTES = 64 * 1024 * 1024
const MAX_ERROR_BYTES = 1024 * 1024
/** Copies of a response that is read as a whole: its pieces, its text, and the parsed objects. */
const COPIES = 3
/** Query parameters that are forwarded; others might have a meaning only at an upstream. */
const PASSED_ON = ['include', 'include[]', 'limit', 'order', 'after'] as const
const NOTHING = Buffer.alloc(0)
/** The dialect of all these requests. */
const SPOKEN = { protocol: 'responses' } as const

/** Body of a response as it arrives. */
export type Pieces = AsyncGenerator<Buffer, void, undefined>

/** A request for a response that an upstream stores. */
interface AskedUpstream {
  readonly incoming: IncomingCall
  readonly reading: StoreRead
  readonly response: StoredResponse
  readonly ids: RenamedIds
  readonly query: URLSearchParams
}

/** The upstream of a response. */
interface Upstream {
  readonly upstreams: UpstreamClient
  readonly account: ResponseAccount
}

/** Resolves to the whole body of a response. Memory for it is allocated as it arrives. */
export async function readAtUpstream(
  upstream: Upstream,
  asked: AskedUpstream,
  method: 'GET' | 'DELETE' | 'POST',
  below: string,
): Promise<Buffer> {
  const { bytes } = await readBeginning(asked, await openAtUpstream(upstream, asked, method, below))
  return bytes
}

/** Beginning of a body, and the pieces after it; undefined if that was all. */
export interface Begun {
  readonly bytes: Buffer
  readonly rest: Pieces | undefined
}

/**
 * Reads a body up to the piece that exceeds `wholeBytes`; memory is allocated as it arrives. Without
 * `wholeBytes` the whole body is read, and it is an error if it exceeds `MAX_BYTES`.
 */
export async function readBeginning(
  { reading }: Pick<AskedUpstream, 'reading'>,
  pieces: Pieces,
  wholeBytes = Number.POSITIVE_INFINITY,
): Promise<Begun> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    while (length <= wholeBytes) {
      const { done, value } = await pieces.next()
      if (done) return { bytes: Buffer.concat(chunks), rest: undefined }
      await reading.hold(COPIES * value.length)
      chunks.push(value)
      length += value.length
      if (length > MAX_BYTES) throw failed()
    }
  } catch (error) {
    await pieces.return()
    throw error
  }
  return { bytes: Buffer.concat(chunks), rest: pieces }
}

/** Resolves to the body of a successful response as it arrives. Rejects with the error for the client. */
export async function openAtUpstream(
  { upstreams, account }: Upstream,
  asked: AskedUpstream,
  method: 'GET' | 'DELETE' | 'POST',
  below: string,
): Promise<Pieces> {
  const { incoming, response } = asked
  const { channel } = account
  incoming.record.channel = channel.name
  incoming.response.needsUpstream()
  const hold = freeHold(asked)
  const path = `/responses/${encodeURIComponent(response.upstreamId)}${below}${passedOn(asked.query)}`
  const came = await exchangePieces(
    upstreams,
    { hold, ...account },
    { method, protocol: 'responses', path, headers: ['accept', 'application/json'], body: NOTHING },
    channel.timeouts.total,
  ).catch(unanswered)
  hold.settle()
  const { status, pieces, retryAfter } = came
  if (status >= 200 && status <= 299) return answered(pieces)
  const failure = failureOfStatus(
    { channel, client: 'responses', request: SPOKEN },
    status,
    asked.ids.inProse(await beginning(pieces)),
    retryAfter,
  )
  throw failure.refusal ?? failed()
}

/** Hold for requests that are not charged. */
function freeHold({ incoming, response }: AskedUpstream): OperatorHold {
  return new OperatorHold({
    id: incoming.id,
    model: response.model,
    channel: response.channel,
    started_ms: incoming.startedMs,
  })
}

/** The query for an upstream: known parameters and those in `more`. */
export function passedOn(query: URLSearchParams, more: readonly string[] = []): string {
  const passed = new URLSearchParams()
  for (const name of [...PASSED_ON, ...more])
    for (const value of query.getAll(name)) passed.append(name, value)
  return passed.size === 0 ? '' : `?${passed.toString()}`
}

/** The body of a response. If it breaks off, the error is converted to one for the client. */
async function* answered(pieces: Pieces): Pieces {
  try {
    yield* pieces
  } catch (error) {
    unanswered(error)
  }
}

async function beginning(pieces: Pieces): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const piece of pieces) {
      chunks.push(piece)
      length += piece.length
      if (length > MAX_ERROR_BYTES) break
    }
  } catch (error) {
    if (!(error instanceof TransportError)) throw error
  }
  return Buffer.concat(chunks)
}

function unanswered(error: unknown): never {
  if (!(error instanceof TransportError)) throw error
  throw new GatewayError('upstream_error', 'the channel that made this response did not answer')
}

function failed(): GatewayError {
  return new GatewayError('upstream_error', 'the channel that made this response failed')
}
