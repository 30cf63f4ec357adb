import type { UserAndTokenNames, SettledCall } from '../../domain/records/usage.ts'
import { type FilterValues, type UsageFilter, filterValueList } from '../../domain/usage-filter.ts'
import { ownUsageObject, usageObject } from './usage-object.ts'

/** Which calls readers want. All readers with the same query get the same events. */
export interface LiveQuery {
  /** Whether rows are shown as administrators see them (`all`), or as users see their own calls (`own`). */
  readonly scope: 'all' | 'own'
  readonly filter: UsageFilter
}

/** The name that identifies a query; equal queries have the same name. */
export function liveQueryKey({ scope, filter }: LiveQuery): string {
  return JSON.stringify([scope, filter])
}

/** The calls of one batch that match a query, for all readers with that query. */
export interface LiveCallBatch {
  readonly calls: readonly { readonly id: string; readonly text: string }[]
  /** Number of further matching calls that are not shown; null if unknown. */
  readonly missed: number | null
}

/** The calls of one batch as JSON texts. Each text is made once for all readers that see the same fields. */
export class RowJsonCache {
  readonly #names: ReadonlyMap<number, UserAndTokenNames>
  readonly #channelIds: ReadonlyMap<string, number>
  readonly #texts = { all: new Map<SettledCall, string>(), own: new Map<SettledCall, string>() }

  /** `names` contains names of users and tokens by token id, `channelIds` ids of channels by channel name. */
  constructor(
    names: ReadonlyMap<number, UserAndTokenNames>,
    channelIds: ReadonlyMap<string, number> = new Map(),
  ) {
    this.#names = names
    this.#channelIds = channelIds
  }

  /** The names of a call's user and API key (token); undefined if the database did not return them. */
  namesOf({ token_id }: SettledCall): UserAndTokenNames | undefined {
    return this.#names.get(token_id)
  }

  textOf(call: SettledCall, { username, token_name }: UserAndTokenNames, scope: LiveQuery['scope']): string {
    const known = this.#texts[scope].get(call)
    if (known !== undefined) return known
    const channel_id = this.#channelIds.get(call.channel) ?? 0
    const named = { ...call, username, token_name, channel_id }
    const text = JSON.stringify(scope === 'all' ? usageObject(named) : ownUsageObject(named))
    this.#texts[scope].set(call, text)
    return text
  }
}

/**
 * Selects the calls that match a query, among those that this process settles. A call that does not match
 * costs only a few comparisons: its names are not read, and no text is made.
 */
export class LiveSource {
  readonly #scope: LiveQuery['scope']
  readonly #matches: (call: SettledCall) => boolean
  readonly #namesMatch: ((names: UserAndTokenNames) => boolean) | undefined
  #candidates: readonly SettledCall[] = []
  #room = 0
  #missed: number | null = 0

  constructor({ scope, filter }: LiveQuery) {
    this.#scope = scope
    this.#matches = matchOf(filter)
    this.#namesMatch = nameMatchOf(filter)
  }

  /**
   * Begins a batch with these calls. `hasLost` is true if there were more calls, which cannot be shown.
   * `room`: maximum number of calls that are shown. Returns the calls whose names must be read.
   */
  begin(calls: readonly SettledCall[], hasLost: boolean, room: number): readonly SettledCall[] {
    const matching = calls.filter(this.#matches)
    this.#room = room
    this.#candidates = this.#namesMatch ? matching : matching.slice(0, this.#room)
    this.#missed = hasLost ? null : matching.length - this.#candidates.length
    return this.#candidates
  }

  /** Ends the batch, and returns the calls to be shown. */
  end(rows: RowJsonCache): LiveCallBatch {
    const calls: { id: string; text: string }[] = []
    let missed = this.#missed
    for (const call of this.#candidates) {
      const names = rows.namesOf(call)
      // Without names it is unknown whether the call matches.
      if (!names) missed = null
      else if (this.#namesMatch?.(names) === false) continue
      else if (calls.length < this.#room)
        calls.push({ id: call.id, text: rows.textOf(call, names, this.#scope) })
      else if (missed !== null) missed += 1
    }
    this.#candidates = []
    return { calls, missed }
  }
}

type CallMatch = (call: SettledCall) => boolean

/** Returns a function that tests whether a call matches the filter, except for the filters on names. */
function matchOf(filter: UsageFilter): CallMatch {
  const { fromMs, beforeMs, reasons, causes } = filter
  const matches: CallMatch[] = FIELDS.flatMap((field) => {
    const wanted = filter[field]
    if (wanted === undefined) return []
    const values: readonly (string | number)[] = filterValueList<string | number>(wanted)
    return [(call: SettledCall) => values.includes(call[field] ?? '')]
  })
  if (fromMs !== undefined) matches.push(({ ended_ms }) => ended_ms >= fromMs)
  if (beforeMs !== undefined) matches.push(({ ended_ms }) => ended_ms < beforeMs)
  if (reasons) matches.push(({ reason }) => reasons.includes(reason))
  if (causes) matches.push(({ cause = '' }) => causes.includes(cause))
  return (call) => matches.every((match) => match(call))
}

/**
 * Returns a function that tests whether the names of a call's user and API key match the filter; undefined if
 * the filter has no names.
 */
function nameMatchOf({
  username,
  token_name,
}: UsageFilter): ((names: UserAndTokenNames) => boolean) | undefined {
  if (username === undefined && token_name === undefined) return undefined
  const has = (wanted: FilterValues<string> | undefined, name: string): boolean =>
    wanted === undefined || filterValueList(wanted).includes(name)
  return (names) => has(username, names.username) && has(token_name, names.token_name)
}

/** Filters that are no fields of a call. Ids of channels have become names, as the API reads them. */
type OtherFilter = 'fromMs' | 'beforeMs' | 'reasons' | 'causes' | 'username' | 'token_name' | 'channel_id'
type FieldFilter = Exclude<keyof UsageFilter, OtherFilter> & keyof SettledCall
/** Fields of a call that must equal one of the filter's values. */
const FIELDS = Object.keys({
  id: true,
  user_id: true,
  token_id: true,
  model: true,
  channel: true,
  group: true,
  service_tier: true,
  region: true,
  session: true,
  batch: true,
  cache_break: true,
} satisfies Record<Exclude<keyof UsageFilter, OtherFilter>, true>) as FieldFilter[]

/** Maximum number of calls that are shown per second. Further ones are reported as missed. */
const CALLS_PER_SECOND = 20
const SECOND_MS = 1_000

/** Counts the calls that were shown in the current second. */
export class CallsPerSecond {
  #beganMs = Number.NEGATIVE_INFINITY
  #shown = 0

  /**
   * Number of further calls that may be shown in the current second. `nowMs` is in milliseconds of a
   * monotonic clock.
   */
  roomAt(nowMs: number): number {
    if (nowMs - this.#beganMs >= SECOND_MS) {
      this.#beganMs = nowMs
      this.#shown = 0
    }
    return CALLS_PER_SECOND - this.#shown
  }

  take(calls: number): void {
    this.#shown += calls
  }
}
