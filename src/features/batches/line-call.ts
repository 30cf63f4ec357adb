import type { Caller } from '../../accounts/authentication/caller.ts'
import { LineReserve } from '../../accounts/ledger/batch-hold.ts'
import { settledCall } from '../../accounts/ledger/ledger.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import { RunningAnswer } from '../../call/answers/running-answer.ts'
import { composedRequest } from '../../call/composed-request.ts'
import type { Relay } from '../../call/relay.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import type { RequestMemory } from '../../limits/request-memory.ts'
import { retryAfterMs } from '../../upstreams/retry-after.ts'
import { type Batch, callIdOfLine, LINE_ENDPOINTS } from './batch.ts'
import { isAnswered } from './batch-results.ts'
import type { BatchRun } from './batch-run.ts'
import type { FoundLine } from './line-finder.ts'

/** Maximum size of the answer to a line in bytes. */
const MAX_ANSWER_BYTES = 64 * 1_048_576

/** What a line that ends as an error costs and saves. */
const FREE = { quota: 0, batch_saved: 0, cache_saved: 0, cache_surcharge: 0 } as const

/** An error as the client of a batch gets it. */
export interface RenderedLineError {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** Services that calls for lines need. */
export interface LineCallServices {
  readonly relay: Pick<Relay, 'call' | 'later'>
  readonly memory: RequestMemory
  /** Renders an error in the API of the batch. */
  readonly renderError: (path: Batch['facts']['path'], error: unknown, id: string) => RenderedLineError
}

/** How a call for a line ended. */
export interface LineAnswer {
  readonly id: string
  readonly status: number
  readonly body: Buffer
  readonly dropped: readonly string[]
  /** The row by which the call is charged; undefined if it was refused before it began. */
  readonly row: SettledCall | undefined
  /** Milliseconds after which the same call may succeed; undefined if it would fail again, or has succeeded. */
  readonly retryMs: number | undefined
  /** Whether there was no memory for the line or its answer. */
  readonly isShortOfMemory: boolean
}

/**
 * Makes the call of a line itself. It has the limits, guards and rows of a call of a client, and the prices of the submission;
 * its hold is taken out of that of the batch, and its charge is left to the caller.
 */
export function callForLine(
  services: LineCallServices & { readonly settings: () => Settings },
  run: Pick<BatchRun, 'batch' | 'sealed'>,
  caller: Caller,
  line: FoundLine,
  reserve: LineReserve,
): Promise<LineAnswer> {
  const { batch } = run
  const { path } = batch.facts
  const settings = run.sealed(services.settings())
  // The budgets are those of the batch's hold, so of the period of the submission.
  const begun = { startedMs: Date.now(), startedAt: performance.now(), isBehind: true } as const
  const holdFor: IncomingCall['holdFor'] = (amount, facts) => reserve.holdFor(amount, facts)
  return answerOf(services, { batch, caller, line, reserve, holdFor, ...begun }, (incoming) =>
    services.relay.call(LINE_ENDPOINTS[path], incoming, caller, settings),
  )
}

/** A call for a line. */
interface LineCall
  extends Pick<IncomingCall, 'holdFor' | 'inBatch' | 'isBehind' | 'startedMs' | 'startedAt'> {
  readonly batch: Batch
  readonly caller: Caller
  readonly line: FoundLine
  readonly reserve: LineReserve
}

/** The request of a line as if a client had sent it. */
export function requestOfLine(
  { id, facts: { path, headers }, createdMs }: Pick<Batch, 'id' | 'facts' | 'createdMs'>,
  { number, body }: FoundLine,
): Pick<IncomingCall, 'id' | 'request' | 'record'> {
  return {
    id: callIdOfLine({ id, createdMs }, number),
    // Lines neither read nor fill the answer cache.
    request: composedRequest(path, { ...headers, 'cache-control': 'no-store' }, body, {
      remoteAddress: '',
      bytesRead: 0,
    }),
    record: {},
  }
}

/** Resolves to the answer that a call for a line gets, with its charge. */
export async function answerOf(
  { memory, renderError }: Pick<LineCallServices, 'memory' | 'renderError'>,
  { batch, caller, line, reserve, ...call }: LineCall,
  make: (incoming: IncomingCall) => Promise<void>,
): Promise<LineAnswer> {
  const { path } = batch.facts
  const answer = new RunningAnswer({
    memory,
    owner: { client: caller.user.id, key: caller.token.id },
    maxBytes: MAX_ANSWER_BYTES,
    staysWithoutClients: () => true,
  })
  const { recorder } = answer
  reserve.settlement = undefined
  try {
    const request = requestOfLine(batch, line)
    const { id } = request
    let failure: RenderedLineError | undefined
    let body = Buffer.alloc(0)
    let status = 0
    let dropped: readonly string[] = []
    // False if the call was answered, but its answer cannot be kept.
    let isKept = true
    let isTooLarge = false
    try {
      await make({ ...request, ...call, response: recorder })
      isKept = false
      const end = await answer.end
      if (end.kind !== 'complete') throw new GatewayError('upstream_error', 'the answer broke off')
      if (!end.pieces) {
        isTooLarge = end.bytes > MAX_ANSWER_BYTES
        throw isTooLarge ? tooLarge() : noMemory()
      }
      status = end.head.status
      body = onOneLine(Buffer.concat(end.pieces))
      dropped = namesIn(end.head.headers['x-gateway-dropped'])
      isKept = true
    } catch (error) {
      failure = renderError(path, error, id)
      status = failure.status
      body = onOneLine(failure.body)
    }
    const settled = reserve.settlement as LineReserve['settlement']
    const charged = settled && {
      ...settledCall(settled.hold, settled.settlement),
      batch: batch.id,
      custom_id: line.customId,
    }
    // Errors cost nothing, although calls that end like this may be charged.
    const row = charged && !isAnswered({ status }) ? { ...charged, ...FREE } : charged
    // An error that a provider has billed is not asked for again.
    const isFree = !isKept || !charged?.quota
    const retryMs = failure && isFree && !isTooLarge ? retryMsOf(failure) : undefined
    const isShortOfMemory = failure?.status === 503 && !isTooLarge && (!isKept || !row)
    return { id, status, body, dropped, row, retryMs, isShortOfMemory }
  } finally {
    recorder.destroy()
    answer.release()
  }
}

function tooLarge(): GatewayError {
  return new GatewayError('upstream_error', `the answer is larger than ${MAX_ANSWER_BYTES} bytes`)
}

function noMemory(): GatewayError {
  const message = 'there is no memory for the answer at the moment; try again'
  return new GatewayError('overloaded', message, { retryAfter: 1 })
}

/** Lines of results must not contain line ends, which JSON has only between its tokens. Throws if it is not JSON. */
export function onOneLine(body: Buffer): Buffer<ArrayBuffer> {
  const text = body.toString()
  try {
    JSON.parse(text)
  } catch (cause) {
    throw new GatewayError('upstream_error', 'the answer is not JSON', { cause })
  }
  return Buffer.from(/[\r\n]/.test(text) ? text.replaceAll(/[\r\n]+/g, ' ') : text)
}

function namesIn(header: string | undefined): readonly string[] {
  return header === undefined ? [] : header.split(', ')
}

function retryMsOf({ status, headers }: RenderedLineError): number | undefined {
  if ((status !== 429 && status < 500) || headers['x-should-retry'] === 'false') return undefined
  return retryAfterMs(headers['retry-after'], Date.now()) ?? 0
}
