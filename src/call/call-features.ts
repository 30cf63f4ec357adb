import type { MediaPart } from '@sluice/wire/conversation'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Shape } from '@sluice/wire/shape/define-shape'
import type { Usage } from '@sluice/wire/usage'
import type { Channel } from '../domain/records/channel.ts'
import type { Settlement } from '../domain/records/usage.ts'
import type { GatewayError } from '../errors.ts'
import type { UpstreamKey } from '../upstreams/key-ring.ts'
import type { RunningCall } from './running-call.ts'
import type {
  AnsweredCall,
  AttemptWatcher,
  CallFeature,
  FeatureColumns,
  OrderedKeys,
  RelayedStream,
  SettledCall,
} from './feature.ts'
import type { MediaPlace } from './media-fetcher.ts'
import type { Plans } from './plan.ts'
import type { ChargeBasis } from './price-usage.ts'
import type { AttemptRequest, AttemptTarget, ChannelPlan, Plan } from './request-stages.ts'

/**
 * The features of one call with their states, of which those that do not take part have none. Each function is a moment of
 * `CallFeature`. The loops count, because `for … of` allocates an iterator, and they contain no function, because that
 * would allocate a scope for each feature.
 */
export class CallFeatures {
  readonly #features: readonly CallFeature<unknown>[]
  readonly #states: readonly unknown[]

  constructor(features: readonly CallFeature<unknown>[], states: readonly unknown[]) {
    this.#features = features
    this.#states = states
  }

  plan(plans: Plans): Plans | Promise<Plans> {
    let planned: Plans | Promise<Plans> = plans
    for (let at = 0; at < this.#features.length; at++) {
      if (this.#states[at] === undefined || !this.#features[at]?.plan) continue
      planned = planned instanceof Promise ? this.#planLater(at, planned) : this.#planAt(at, planned)
    }
    return planned
  }

  async #planLater(at: number, planned: Promise<Plans>): Promise<Plans> {
    return this.#planAt(at, await planned)
  }

  #planAt(at: number, plans: Plans): Plans | Promise<Plans> {
    return this.#features[at]?.plan?.(this.#states[at], plans) ?? plans
  }

  /** What the feature with this moment has to know when the answer comes later; undefined if it takes no part. */
  suspended(): string | undefined {
    const at = this.#features.findIndex((one) => one.suspended !== undefined)
    const state = this.#states[at]
    return state === undefined ? undefined : this.#features[at]?.suspended?.(state)
  }

  admitted(call: RunningCall): void {
    for (let at = 0; at < this.#features.length; at++)
      if (this.#states[at] !== undefined) this.#features[at]?.admitted?.(this.#states[at], call)
  }

  async tried(call: RunningCall, plan: Plan, candidate: ChannelPlan): Promise<GatewayError | undefined> {
    for (let at = 0; at < this.#features.length; at++) {
      const feature = this.#features[at]
      const refusal =
        this.#states[at] !== undefined &&
        feature?.tried &&
        (await feature.tried(this.#states[at], call, plan, candidate))
      if (refusal) return refusal
    }
    return undefined
  }

  adapt(call: RunningCall, request: AttemptRequest, channel: Channel): AttemptRequest {
    let adapted = request
    for (let at = 0; at < this.#features.length; at++)
      if (this.#states[at] !== undefined)
        adapted = this.#features[at]?.adapt?.(this.#states[at], call, adapted, channel) ?? adapted
    return adapted
  }

  async adapted(call: RunningCall, request: AttemptRequest, channel: Channel): Promise<AttemptRequest> {
    let adapted = request
    for (let at = 0; at < this.#features.length; at++) {
      const feature = this.#features[at]
      if (this.#states[at] !== undefined && feature?.adapted)
        adapted = await feature.adapted(this.#states[at], call, adapted, channel)
    }
    return adapted
  }

  keys(plan: Plan, candidate: ChannelPlan, upstreamModel: string, keys: readonly UpstreamKey[]): OrderedKeys {
    let isSpent = false
    let ordered = keys
    for (let at = 0; at < this.#features.length; at++) {
      if (this.#states[at] === undefined) continue
      const next = this.#features[at]?.keys?.(this.#states[at], plan, candidate, upstreamModel, ordered)
      if (next?.length === 0) isSpent = true
      else if (next) ordered = next
    }
    return { keys: ordered, isSpent }
  }

  attempted(call: RunningCall, target: AttemptTarget): AttemptWatcher | undefined {
    let watcher: AttemptWatcher | undefined
    for (let at = 0; at < this.#features.length; at++) {
      if (this.#states[at] === undefined) continue
      const next = this.#features[at]?.attempted?.(this.#states[at], call, target)
      if (next) watcher = watcher ? both(watcher, next) : next
    }
    return watcher
  }

  relaying(call: RunningCall, nowMs: number, stream: RelayedStream): boolean {
    let isKept = false
    for (let at = 0; at < this.#features.length; at++)
      if (
        this.#states[at] !== undefined &&
        this.#features[at]?.relaying?.(this.#states[at], call, nowMs, stream)
      )
        isKept = true
    return isKept
  }

  head(call: RunningCall, headers: Record<string, string>): void {
    for (let at = 0; at < this.#features.length; at++)
      if (this.#states[at] !== undefined) this.#features[at]?.head?.(this.#states[at], call, headers)
  }

  /** Whether a feature checks the files that are fetched for the request. */
  get checksFetched(): boolean {
    return this.#takesPart('fetched')
  }

  async fetched(call: RunningCall, file: MediaPart, place: MediaPlace): Promise<MediaPart> {
    let part = file
    for (let at = 0; at < this.#features.length; at++)
      if (this.#states[at] !== undefined)
        part = (await this.#features[at]?.fetched?.(this.#states[at], call, part, place)) ?? part
    return part
  }

  /** Whether a feature checks what tools answer. */
  get checksResults(): boolean {
    return this.#takesPart('result')
  }

  /** Resolves to undefined if the answer must not be sent. */
  async result(call: RunningCall, answer: ScannedObject, shape: Shape): Promise<ScannedObject | undefined> {
    let checked: ScannedObject | undefined = answer
    for (let at = 0; checked && at < this.#features.length; at++) {
      const feature = this.#features[at]
      if (this.#states[at] !== undefined && feature?.result)
        checked = await feature.result(this.#states[at], call, checked, shape)
    }
    return checked
  }

  /** Whether a feature changes texts of errors. */
  get changesErrors(): boolean {
    return this.#takesPart('errorText')
  }

  errorText(text: string, isRecorded = false): string {
    let changed = text
    for (let at = 0; at < this.#features.length; at++)
      if (this.#states[at] !== undefined)
        changed = this.#features[at]?.errorText?.(this.#states[at], changed, isRecorded) ?? changed
    return changed
  }

  row(): FeatureColumns {
    let columns: FeatureColumns | undefined
    for (let at = 0; at < this.#features.length; at++) {
      if (this.#states[at] === undefined || !this.#features[at]?.row) continue
      columns = Object.assign(columns ?? {}, this.#features[at]?.row?.(this.#states[at]))
    }
    return columns ?? NO_COLUMNS
  }

  #takesPart(moment: 'fetched' | 'errorText' | 'result'): boolean {
    for (let at = 0; at < this.#features.length; at++)
      if (this.#states[at] !== undefined && this.#features[at]?.[moment]) return true
    return false
  }

  failed(call: RunningCall, error: Error): void {
    for (let at = 0; at < this.#features.length; at++)
      if (this.#states[at] !== undefined) this.#features[at]?.failed?.(this.#states[at], call, error)
  }

  answered(
    call: RunningCall,
    target: AttemptTarget,
    usage: Usage,
    basis: ChargeBasis | undefined,
    isReported: boolean,
  ): FeatureColumns | Promise<FeatureColumns> {
    let answer: AnsweredCall | undefined
    let waiting: Promise<unknown> | undefined
    for (let at = 0; at < this.#features.length; at++) {
      if (this.#states[at] === undefined || !this.#features[at]?.answered) continue
      answer ??= { target, usage, basis, isReported, row: {} }
      const told = this.#features[at]?.answered?.(this.#states[at], call, answer)
      if (told) waiting = waiting ? Promise.all([waiting, told]) : told
    }
    const columns = answer?.row ?? NO_COLUMNS
    return waiting ? afterwards(waiting, columns) : columns
  }

  settled(
    call: RunningCall,
    target: AttemptTarget | undefined,
    settlement: Settlement,
    basis: ChargeBasis | undefined,
  ): void {
    let end: SettledCall | undefined
    for (let at = 0; at < this.#features.length; at++) {
      if (this.#states[at] === undefined || !this.#features[at]?.settled) continue
      end ??= { target, settlement, basis }
      this.#features[at]?.settled?.(this.#states[at], call, end)
    }
  }

  closed(call: RunningCall): void {
    for (let at = 0; at < this.#features.length; at++)
      if (this.#states[at] !== undefined) this.#features[at]?.closed?.(this.#states[at], call)
  }
}

async function afterwards(waiting: Promise<unknown>, columns: FeatureColumns): Promise<FeatureColumns> {
  await waiting
  return columns
}

const NO_COLUMNS: FeatureColumns = {}

/** Combines the callbacks of an attempt. */
export function both(first: AttemptWatcher, second: AttemptWatcher): AttemptWatcher {
  return {
    head(head) {
      first.head?.(head)
      second.head?.(head)
    },
    received(chunk) {
      first.received?.(chunk)
      second.received?.(chunk)
    },
    over() {
      first.over?.()
      second.over?.()
    },
  }
}
