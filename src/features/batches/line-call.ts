import type { Caller } from '../../accounts/authentication/caller.ts'
import { LineReserve } from '../../accounts/ledger/batch-hold.ts'
import { settledCall } from '../../accounts/ledger/ledger.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import { RunningAnswer } from '../../call/answers/running-answer.ts'
import { composedRequest } from '../../call/composed-request.ts'
import type { Relay } from '../../call/relay.ts'
import type { IncomingCall } from '../../call/request-stages.ts'
import { GatewayError } from '../../errors.ts'
import type { RequestMemory } from '../../limits/request-memory.ts'
import { type Batch, callIdOfLine, LINE_ENDPOINTS } from './batch.ts'
import type { BatchLine } from './batch-store.ts'

/** Maximum size of the answer to a line in bytes. */
const MAX_ANSWER_BYTES = 64 * 1_048_576

/** An error as the client of a batch gets it. */
export interface RenderedLineError {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** Services that calls for lines need. */
export interface LineCallServices {
  readonly relay: Pick<Relay, 'call'>
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
}

/**
 * Makes the call of a line itself. It has the limits, prices, guards and rows of a call of a client; its hold is taken out of
 * that of the batch, and its charge is left to the caller.
 */
export async function callForLine(
  { relay, memory, renderError }: LineCallServices,
  batch: Batch,
  caller: Caller,
  line: BatchLine,
  reserve: LineReserve,
): Promise<LineAnswer> {
  const { path, headers } = batch.facts
  const id = callIdOfLine(batch, line.number)
  const answer = new RunningAnswer({
    memory,
    owner: { client: caller.user.id, key: caller.token.id },
    maxBytes: MAX_ANSWER_BYTES,
    staysWithoutClients: () => true,
  })
  const { recorder } = answer
  reserve.settlement = undefined
  try {
    const incoming: IncomingCall = {
      id,
      // Lines neither read nor fill the answer cache.
      request: composedRequest(path, { ...headers, 'cache-control': 'no-store' }, line.body, {
        remoteAddress: '',
        bytesRead: 0,
      }),
      response: recorder,
      record: {},
      startedMs: Date.now(),
      startedAt: performance.now(),
      holdFor: (amount, facts) => reserve.holdFor(amount, facts),
    }
    let failure: RenderedLineError | undefined
    let body = Buffer.alloc(0)
    let status = 0
    let dropped: readonly string[] = []
    try {
      await relay.call(LINE_ENDPOINTS[path], incoming, caller)
      const end = await answer.end
      if (end.kind !== 'complete') throw new GatewayError('upstream_error', 'the answer broke off')
      if (!end.pieces)
        throw new GatewayError('upstream_error', `the answer is larger than ${MAX_ANSWER_BYTES} bytes`)
      status = end.head.status
      body = onOneLine(Buffer.concat(end.pieces))
      dropped = namesIn(end.head.headers['x-gateway-dropped'])
    } catch (error) {
      failure = renderError(path, error, id)
      status = failure.status
      body = onOneLine(failure.body)
    }
    const settled = reserve.settlement as LineReserve['settlement']
    const row = settled && settledCall(settled.hold, settled.settlement)
    // What was charged is not asked again.
    const isFree = !row || row.quota === 0
    return { id, status, body, dropped, row, retryMs: failure && isFree ? retryMsOf(failure) : undefined }
  } finally {
    recorder.destroy()
    answer.release()
  }
}

/** Lines of results must not contain line ends, which JSON has only between its tokens. Throws if it is not JSON. */
function onOneLine(body: Buffer): Buffer<ArrayBuffer> {
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
  const after = Number(headers['retry-after'])
  return Number.isFinite(after) && after > 0 ? after * 1_000 : 0
}
