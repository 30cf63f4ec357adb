import type { Usage } from '@sluice/wire/usage'
import type { CallKind } from '../endpoints.ts'
import { CACHE_BREAKS } from '../cache-break.ts'
import { CALL_NOTES, TRANSPORTS, type SettlementReason } from '../call-outcome.ts'
import type { FailureCause } from '../failure-cause.ts'
import type { Provenance } from '../stored-response.ts'
import {
  type FieldType,
  flagType,
  nullableType,
  plainTextType,
  oneOfType,
  integerType,
} from './field-types.ts'
import { type FieldNamesWith, declareRecord, type Row, type Values } from './record.ts'
import { USAGE_COUNTS } from './usage-counts.ts'

const text = plainTextType()
const integer = integerType()

/**
 * Settled calls: the rows of the usage log. In responses and the CSV export, the columns of
 * `src/management/usage/usage-object.ts` come first; the other fields follow in this order. `docs/ledger.md`.
 */
export const USAGE = declareRecord(
  'usage_log',
  {
    /**
     * UUIDv7 of the call, also the id of its hold, and the `x-request-id` of its response. That of a turn on a WebSocket
     * has the id of the upgrade, a point and a number.
     */
    id: { type: text, key: 'primary key' },
    ended_ms: { type: integer, shown: false },
    user_id: { type: integer },
    token_id: { type: integer },
    /** The model that answered: the requested one or one of its fallbacks. */
    model: { type: text, as: 'model_name' },
    requested_model: {
      type: text,
      about:
        'The model that the client requested, where a fallback may have answered; empty in the estimate for a lost node',
    },
    group: { type: text, column: 'group_name' },
    /** The charge in quota units. */
    quota: { type: integer },
    duration_ms: { type: integer },
    /** Milliseconds from the start of the call to the first byte of the response; null if there was none. */
    first_byte_ms: { type: nullableType(integer), default: null },
    stream: { type: flagType, as: 'is_stream' },
    reason: { type: text as FieldType<SettlementReason, string> },
    /** Whether the client received any part of the response. Only such calls count as requests. */
    delivered: { type: flagType, column: 'requests', default: true, shown: false },
    price_version: { type: text },
    price_incomplete: {
      type: flagType,
      default: false,
      about:
        'The request offered a tool, or the provider served a tier of service, that no price is known for',
    },
    service_tier: {
      type: text,
      default: '',
      about: 'The tier of service that the provider served; empty if nothing was served',
    },
    requested_service_tier: {
      type: text,
      default: '',
      about: 'The tier of service that the client requested; empty if it named none',
    },
    region: {
      type: text,
      default: '',
      about: 'Where the provider worked, or the location or region of the channel; empty if it is not known',
    },
    cache_saved: {
      type: integer,
      default: 0,
      about: 'Quota units that the tokens read from a prompt cache would have cost more as plain input',
    },
    cache_surcharge: {
      type: integer,
      default: 0,
      about: 'Quota units that the tokens written to a prompt cache cost beyond plain input',
    },
    session: {
      type: text,
      default: '',
      about: '16 hex digits that stand for the user and the session; empty if the call has no session',
    },
    cache_break: {
      type: oneOfType(['', ...CACHE_BREAKS], 'a reason'),
      default: '',
      about:
        'Why the call read less than half of what the previous call of its session had left in a prompt cache; else empty',
    },
    cache_verdict: {
      type: text,
      default: '',
      about: 'JSON: what the provider reports about its prompt cache; empty unless the channel asks for it',
    },
    cache: {
      type: oneOfType(['', 'hit'], 'hit or nothing'),
      default: '',
      about: 'hit: the answer was kept from an equal call, or shared with one under way; else empty',
    },
    hit_saved: {
      type: integer,
      default: 0,
      about: 'Quota units that a hit cost less than the call whose answer it got',
    },
    note: {
      type: oneOfType(['', ...CALL_NOTES], 'a note'),
      default: '',
      about:
        'cut_arguments: the provider reported a proper end, but the arguments of a tool call were cut off; unknown_end: the reason that the provider reported for the end of its answer is not known; guard_blocked: a guard blocked the answer; usage_implausible: the reported usage is not believed, and the call is charged what it held; else empty',
    },
    guards: {
      type: text,
      default: '',
      about: 'The verdicts of guards, as `x-gateway-guards` has them; empty if none has checked the call',
    },
    cause: {
      type: text as FieldType<FailureCause | '', string>,
      default: '',
      about: 'Why the call failed; empty if it came to its end or the client left',
    },
    error_status: {
      type: nullableType(integer),
      default: null,
      about: 'HTTP status of the answer to a failed call; null if there was none',
    },
    /** The error that the client got, as the JSON of a `StoredError`; null if it got none. */
    error: { type: nullableType(text), default: null, shown: false },
    kind: {
      type: text as FieldType<CallKind, string>,
      about: 'The endpoint; empty in the estimate for a lost node',
    },
    transport: {
      type: oneOfType(TRANSPORTS, 'a transport'),
      default: 'http',
      about: 'Whether the call came as an HTTP request, or as a turn on a WebSocket',
    },
    batch: {
      type: text,
      default: '',
      about: 'Id of the batch whose line the call was made for; empty for other calls',
    },
    custom_id: {
      type: text,
      default: '',
      about: 'What the client calls the line of the batch; empty likewise',
    },
    batch_saved: {
      type: integer,
      default: 0,
      about: 'Quota units that the call cost less at the tier batch than at the standard tier',
    },
    /** Channel that answered, not necessarily the first one tried. */
    channel: { type: text, shown: 'admin' },
    upstream_model: { type: text, shown: 'admin' },
    /** All attempts at upstreams, as a JSON list of `AttemptEntry`; null if the first attempt succeeded. */
    attempts: { type: nullableType(text), default: null, shown: false },
    /** Facts that have no column of their own, as the JSON of `CallExtraFacts`; null if there are none. */
    particulars: { type: nullableType(text), default: null, shown: false },
  },
  USAGE_COUNTS,
)

/** Fields of a settled call that are not in its usage row; they change balances and sums. */
export const SETTLEMENT_FIELDS = declareRecord('', {
  /** Names of the budgets that the call is charged to, as one text (`budgetList`). */
  budgets: { type: text },
})

const {
  id,
  user_id,
  token_id,
  model,
  requested_model,
  channel,
  group,
  stream,
  price_version,
  kind,
  session,
} = USAGE.fields

/**
 * A hold: quota reserved while a call runs, with the facts that are needed to charge the call after a crash.
 */
export const HOLD = declareRecord('holds', {
  id,
  /** Id of the gateway process that will settle the hold. After a crash, the next process settles it. */
  owner: { type: text },
  token_id: { ...token_id, key: 'references tokens (id)' },
  user_id: { ...user_id, key: 'references users (id)' },
  /** The reserved quota units. */
  amount: { type: integer },
  /** Expected cost of the prompt in quota units; after a crash, at least this much is charged. */
  prompt_amount: { type: integer },
  /** Cost of the output so far in quota units, when progress was last recorded. */
  progress_amount: { type: integer, default: 0 },
  started_ms: { type: integer },
  /** The model that is called first. */
  model,
  channel,
  group,
  stream,
  price_version,
  kind,
  /** Names of the budgets in which quota is reserved, as one text (`budgetList`). */
  budgets: SETTLEMENT_FIELDS.fields.budgets,
  requested_model,
  session,
})

type UsageFields = typeof USAGE.fields
type WithDefault = FieldNamesWith<UsageFields, 'default'>

/** A settled call with all values of its usage row. */
export type SettledCall = Omit<Values<UsageFields>, WithDefault> & {
  readonly [Name in WithDefault]?: Values<UsageFields>[Name] | undefined
} & Values<typeof SETTLEMENT_FIELDS.fields> & {
    readonly delivered: boolean
    readonly usage: Usage
    /**
     * The hold out of which that of the call was taken, and by how many quota units it shrinks with the settlement. Absent if
     * the call had a separate hold.
     */
    readonly part?: { readonly hold: string; readonly amount: number } | undefined
    /** Which provider account created the response; undefined if clients cannot refer to anything in it. */
    readonly provenance?: Provenance | undefined
  }

/** Names of a call's user and API key, kept even after they are deleted. */
export interface UserAndTokenNames {
  readonly username: string
  readonly token_name: string
}

/** Id of a call's channel, which stays the same if the channel is renamed; 0 without a channel. */
interface CalledChannel {
  readonly channel_id: number
}

/** A settled call in the usage log. */
export type UsageEntry = Values<UsageFields> & Pick<SettledCall, 'usage'> & UserAndTokenNames & CalledChannel

/** A call as responses show it, either from the usage log or just settled. */
export type ShownCall = Pick<SettledCall, keyof UsageFields | 'usage'> &
  UserAndTokenNames &
  CalledChannel & {
    /** Address and SHA-256 of the call's content in the content log; absent if none is kept. */
    readonly content?: { readonly address: string; readonly sha256: string } | undefined
  }

/** Seconds from the start of a call to the first byte of its response; undefined if there was no response. */
export function secondsToFirstByte({ first_byte_ms }: Pick<Settlement, 'first_byte_ms'>): number | undefined {
  return first_byte_ms === undefined || first_byte_ms === null ? undefined : first_byte_ms / 1000
}

/** Whether a call got a response. */
export function hasResponse({ first_byte_ms }: Pick<UsageEntry, 'first_byte_ms'>): boolean {
  return first_byte_ms !== null
}

/** Fields by which a list of calls can be sorted. */
export const CALL_ORDERS = ['created_at', 'quota', 'duration_ms', 'first_byte_ms'] as const

export type UsageLogRow = Row<UsageFields> & Row<typeof USAGE_COUNTS>

export type HoldRow = Row<typeof HOLD.fields>

/** The hold of a call that continues at the provider in the background, without its client. */
export type ParkedHold = Values<typeof HOLD.fields>

/** Hold to be created. */
export type HoldOpening = Omit<ParkedHold, 'progress_amount'>

/** Facts about a call when it begins, stored with its hold so that the call can be charged after a crash. */
export type HoldFacts = Omit<HoldOpening, 'owner' | 'token_id' | 'user_id' | 'amount' | 'budgets'>

/** How a call ended, and what it costs. The other values of its usage row come from its hold. */
export type Settlement = Omit<
  SettledCall,
  Exclude<keyof ParkedHold, 'model' | 'channel' | 'group'> | 'duration_ms' | 'part'
>
