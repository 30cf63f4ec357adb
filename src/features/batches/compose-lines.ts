import { setTimeout as delay } from 'node:timers/promises'
import { Response } from '@sluice/http1'
import { applyEdits } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { Caller } from '../../accounts/authentication/caller.ts'
import { LineReserve } from '../../accounts/ledger/batch-hold.ts'
import type { OpenHold } from '../../accounts/ledger/open-hold.ts'
import { DISCARDING_CONNECTION, NO_TRAITS } from '../../call/answers/answer-recorder.ts'
import type { ComposedCall } from '../../call/later-calls.ts'
import type { Relay } from '../../call/relay.ts'
import type { ChannelPlan, Plan } from '../../call/request-stages.ts'
import type { Settings } from '../../domain/settings.ts'
import { type Batch, callIdOfLine, LINE_ENDPOINTS } from './batch.ts'
import type { FoundLine } from './line-finder.ts'
import { type LineAnswer, type LineCallServices, onOneLine, requestOfLine } from './line-call.ts'

/** Number of times that a request is made again if there was no room for it, and the time between them in milliseconds. */
const TRIES = 5
const RETRY_MS = 1_000

/** Fields that name a tier of service or ask for a stream, which lines of batches do not have. */
export const TIER_FIELDS = ['service_tier', 'serviceTier', 'speed'] as const
const REMOVED_FIELDS = [...TIER_FIELDS, 'stream', 'stream_options'] as const
const NOTHING = new Map<string, string>()

/** What is needed to make the requests of a batch. */
export interface ComposingServices extends Pick<LineCallServices, 'renderError'> {
  readonly relay: Pick<Relay, 'later'>
}

/** The request of a line for a channel, or the error that the line gets. */
export type ComposedLine =
  | { readonly call: ComposedCall; readonly body: Buffer }
  | { readonly error: LineAnswer }

/** Makes the request of a line for the channel that is chosen. Nothing is sent. */
export async function composeLine(
  { relay, renderError }: ComposingServices,
  {
    batch,
    caller,
    settings,
    hold,
  }: {
    readonly batch: Batch
    readonly caller: Caller
    readonly settings: Settings
    readonly hold: OpenHold
  },
  line: FoundLine,
  choose: (plan: Plan) => ChannelPlan | undefined,
): Promise<ComposedLine> {
  const { path } = batch.facts
  for (let tried = 1; ; tried += 1)
    try {
      const reserve = new LineReserve(hold, line.amount)
      const call = await relay.later.compose(
        LINE_ENDPOINTS[path],
        {
          ...requestOfLine(batch, line),
          response: new Response(DISCARDING_CONNECTION, NO_TRAITS),
          startedMs: batch.createdMs,
          startedAt: performance.now(),
          inBatch: 'request',
          holdFor: (amount, facts) => reserve.holdUntilAnswered(amount, facts),
        },
        caller,
        settings,
        choose,
      )
      return { call, body: withoutRemovedFields(call.request.body as Buffer) }
    } catch (error) {
      const id = callIdOfLine(batch, line.number)
      const { status, body, headers } = renderError(path, error, id)
      const mayRecover = (status === 503 || status === 429) && headers['x-should-retry'] !== 'false'
      if (mayRecover && tried < TRIES) {
        await delay(RETRY_MS, undefined, { ref: false })
        continue
      }
      const answer = { id, status, body: onOneLine(body), dropped: [], row: undefined, retryMs: undefined }
      return { error: { ...answer, isShortOfMemory: false } }
    }
}

/** The body, as it was composed for a channel, without what lines of batches do not have. */
export function withoutRemovedFields(body: Buffer): Buffer {
  const scan = scanObject(body, RESPONSE_LIMITS)
  const remove = REMOVED_FIELDS.filter((name) => scan.has(name))
  return remove.length === 0 ? body : applyEdits(body, scan, { remove, replace: NOTHING })
}

/** The fields of a tier of service that the client sent. */
export function tierFieldsIn(body: Buffer): readonly string[] {
  const scan = scanObject(body)
  return TIER_FIELDS.filter((name) => scan.has(name))
}
