import type { Channel } from '../domain/records/channel.ts'
import { MAX_RETRY_AFTER_MS } from './retry-after.ts'

/** Milliseconds for which an account at fault is not used. */
const FAULT_MS = 60_000
/** Milliseconds of the first rest of an account that has reached a limit without stating its end. */
const MIN_LIMIT_MS = 1_000
/** Maximum milliseconds to which such rests double. */
const MAX_LIMIT_MS = 60_000
/** Maximum number of remembered rests; beyond it, the oldest is forgotten. */
const MAX_RESTS = 10_000
/** Stands for all models of a key. */
export const ALL_MODELS = ''

/**
 * Why an account rests: it has reached a limit of its provider, or it is at fault, so that no call can succeed
 * until the operator acts.
 */
export const REST_KINDS = ['limited', 'key_refused', 'account_fault', 'account_lacks_model'] as const
export type RestKind = (typeof REST_KINDS)[number]

/** A time for which a key of a channel is not used, for one upstream model or for all. */
export interface Rest {
  readonly kind: RestKind
  /** End of the rest, in milliseconds of a monotonic clock. */
  readonly endMs: number
  /** When the account first failed, in Unix milliseconds. */
  readonly sinceMs: number
  /** The cause of the failure, as one of a few fixed words that the metrics also use. */
  readonly cause: string
}

/** The account that a call uses: a key of a channel, for an upstream model. */
export interface Account {
  readonly channel: string
  readonly key: string
  /** The upstream's name of the model; `ALL_MODELS` for all models of the key. */
  readonly model: string
}

/**
 * A rest that has started or ended on this node, to be sent to the other nodes. Undefined `rest` means that it
 * has ended.
 */
export interface RestChange extends Account {
  readonly rest: Rest | undefined
}

/** A failure for which an account rests. */
export interface RestingFailure extends Pick<Rest, 'kind' | 'cause'> {
  /** Milliseconds for which the provider demands a rest; undefined if it states none. */
  readonly statedMs?: number | undefined
}

interface KeptRest extends Rest, Account {
  /** Start of the rest, in milliseconds of a monotonic clock. */
  readonly startedMs: number
  /** Milliseconds of the last rest whose length the provider did not state; 0 if there was none. */
  readonly lengthMs: number
  /** Whether a call is finding out if the rest is really over. */
  isTried: boolean
}

/**
 * Accounts of providers that rest, because they have reached a limit or are at fault. A rest that is over is
 * remembered until a call succeeds, and a single call at a time tries the account. `docs/operations.md: Channels that fail`.
 */
export class AccountRests {
  /** All rests, the one that was changed first comes first. */
  readonly #kept = new Set<KeptRest>()
  /** The same by channel, key and model. They are named by text, so that they survive a reload. */
  readonly #byChannel = new Map<string, Map<string, Map<string, KeptRest>>>()
  /** Called when a rest starts or ends; undefined if there are no other nodes. */
  onChange: ((change: RestChange) => void) | undefined

  /** Whether no account rests. */
  get isEmpty(): boolean {
    return this.#kept.size === 0
  }

  /** Whether a key should not be used for an upstream model now. */
  isResting(channel: string, key: string, model: string, nowMs: number): boolean {
    if (this.#kept.size === 0) return false
    const byModel = this.#byChannel.get(channel)?.get(key)
    return (
      byModel !== undefined && (rests(byModel.get(ALL_MODELS), nowMs) || rests(byModel.get(model), nowMs))
    )
  }

  /**
   * The rest of a key for an upstream model, or for all of them, that has not ended; undefined if there is
   * none.
   */
  restOf(channel: string, key: string, model: string, nowMs: number): Rest | undefined {
    const byModel = this.#byChannel.get(channel)?.get(key)
    const found = [byModel?.get(ALL_MODELS), byModel?.get(model)]
    return found.find((one) => one !== undefined && one.endMs > nowMs)
  }

  /**
   * The rest of a key to be shown: the one for all models, otherwise the one for a model that ends last.
   * Undefined if there is none.
   */
  shownRest(channel: string, key: string, nowMs: number): (Rest & { readonly model: string }) | undefined {
    const byModel = this.#byChannel.get(channel)?.get(key)
    const found = [...(byModel?.values() ?? [])].filter(({ endMs }) => endMs > nowMs)
    return found.find(({ model }) => model === ALL_MODELS) ?? found.toSorted((a, b) => b.endMs - a.endMs)[0]
  }

  /** Number of a channel's keys that rest for a model or for all models. */
  countResting({ name, keys }: Pick<Channel, 'name' | 'keys'>, nowMs: number): number {
    if (this.#kept.size === 0) return 0
    return keys.filter((key) => this.shownRest(name, key, nowMs)).length
  }

  /**
   * Why no key of a channel can be used: the fault of the key that failed last; undefined if one may work. A
   * fault counts until a call with its key succeeds.
   */
  faultOf({ name, keys, models, model_mapping }: FaultedChannel): Rest | undefined {
    const byKey = this.#kept.size === 0 ? undefined : this.#byChannel.get(name)
    if (!byKey) return undefined
    let last: KeptRest | undefined
    for (const key of keys.length === 0 ? [''] : keys) {
      const byModel = byKey.get(key)
      if (!byModel) return undefined
      const ofAll = byModel.get(ALL_MODELS)
      const faults = ofAll ? [ofAll] : models.map((model) => byModel.get(model_mapping.get(model) ?? model))
      for (const fault of faults) {
        if (!fault || fault.kind === 'limited') return undefined
        if (!last || fault.startedMs > last.startedMs) last = fault
      }
    }
    return last
  }

  /**
   * Starts the rest of an account that has failed. `askedMs` is when its request was sent, on the monotonic
   * clock.
   */
  start(account: Account, { kind, cause, statedMs }: RestingFailure, nowMs: number, askedMs: number): void {
    const before = this.#find(account)
    const isSame = before?.kind === kind
    const stated = statedMs === undefined ? undefined : Math.min(statedMs, MAX_RETRY_AFTER_MS)
    let lengthMs = isSame ? before.lengthMs : 0
    let endMs = nowMs + (stated ?? 0)
    if (kind === 'limited' && stated === undefined) {
      // Answers to requests that were sent before the rest ended say nothing new.
      if (isSame && askedMs < before.endMs) return this.#release(before)
      lengthMs = Math.min(Math.max(lengthMs * 2, MIN_LIMIT_MS), MAX_LIMIT_MS)
      endMs = nowMs + lengthMs
    } else if (kind !== 'limited') endMs = nowMs + Math.max(stated ?? 0, FAULT_MS)
    else if (isSame) endMs = Math.max(endMs, before.endMs)
    const sinceMs = before?.sinceMs ?? Date.now()
    this.#keep({ ...account, kind, cause, endMs, sinceMs, startedMs: nowMs, lengthMs, isTried: false })
  }

  /**
   * Begins an attempt with an account. If its rest is over, other calls avoid the account until the attempt
   * shows whether it works. Returns a function that ends the attempt; undefined if the account did not rest.
   */
  begin({ channel, key, model }: Account): (() => void) | undefined {
    const byModel = this.#kept.size === 0 ? undefined : this.#byChannel.get(channel)?.get(key)
    if (!byModel) return undefined
    const tried = [byModel.get(ALL_MODELS), byModel.get(model)].filter((one) => one !== undefined)
    for (const one of tried) one.isTried = true
    return () => {
      for (const one of tried) this.#release(one)
    }
  }

  /**
   * Ends the rests of an account with which a call has succeeded. `askedMs` is when the request was sent, on
   * the monotonic clock: a response to a request from before a rest does not end it.
   */
  succeeded({ channel, key, model }: Account, askedMs: number): void {
    const byModel = this.#kept.size === 0 ? undefined : this.#byChannel.get(channel)?.get(key)
    if (!byModel) return
    for (const one of [byModel.get(ALL_MODELS), byModel.get(model)])
      if (one && one.startedMs <= askedMs) this.#end(one)
  }

  endOfKey(channel: string, key: string): void {
    for (const one of this.#byChannel.get(channel)?.get(key)?.values() ?? []) this.#end(one)
  }

  /**
   * Applies a change that another node has sent. A rest from another node is limited to the same maximum as
   * one that starts on this node.
   */
  apply({ rest, ...account }: RestChange, nowMs: number): void {
    const before = this.#find(account)
    if (!rest) {
      if (before) this.#forget(before)
      return
    }
    const endMs = Math.min(rest.endMs, nowMs + MAX_RETRY_AFTER_MS)
    const lengthMs = Math.max(before?.lengthMs ?? 0, Math.min(endMs - nowMs, MAX_LIMIT_MS))
    this.#add({ ...account, ...rest, endMs, startedMs: nowMs, lengthMs, isTried: false })
  }

  /** Yields all rests, for a node that has just joined. */
  *list(): Iterable<RestChange> {
    for (const { channel, key, model, kind, endMs, sinceMs, cause } of this.#kept)
      yield { channel, key, model, rest: { kind, endMs, sinceMs, cause } }
  }

  #find({ channel, key, model }: Account): KeptRest | undefined {
    return this.#byChannel.get(channel)?.get(key)?.get(model)
  }

  #release(one: KeptRest): void {
    one.isTried = false
  }

  #keep(one: KeptRest): void {
    this.#add(one)
    const { channel, key, model, kind, endMs, sinceMs, cause } = one
    this.onChange?.({ channel, key, model, rest: { kind, endMs, sinceMs, cause } })
  }

  #end(one: KeptRest): void {
    this.#forget(one)
    const { channel, key, model } = one
    this.onChange?.({ channel, key, model, rest: undefined })
  }

  #add(one: KeptRest): void {
    const before = this.#find(one)
    if (before) this.#forget(before)
    this.#kept.add(one)
    const byKey = getOrAdd(this.#byChannel, one.channel)
    getOrAdd(byKey, one.key).set(one.model, one)
    if (this.#kept.size <= MAX_RESTS) return
    for (const oldest of this.#kept) {
      this.#forget(oldest)
      break
    }
  }

  #forget(one: KeptRest): void {
    if (!this.#kept.delete(one)) return
    const byKey = this.#byChannel.get(one.channel)
    const byModel = byKey?.get(one.key)
    byModel?.delete(one.model)
    if (byModel?.size === 0) byKey?.delete(one.key)
    if (byKey?.size === 0) this.#byChannel.delete(one.channel)
  }
}

/** The parts of a channel that decide whether all its keys are at fault. */
type FaultedChannel = Pick<Channel, 'name' | 'keys' | 'models' | 'model_mapping'>

function rests(one: KeptRest | undefined, nowMs: number): boolean {
  return one !== undefined && (one.isTried || one.endMs > nowMs)
}

function getOrAdd<Key, Inner>(maps: Map<string, Map<Key, Inner>>, name: string): Map<Key, Inner> {
  const known = maps.get(name)
  if (known) return known
  const added = new Map<Key, Inner>()
  maps.set(name, added)
  return added
}
