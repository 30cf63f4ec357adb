import { asRecord } from '@sluice/wire/json/record'
import { randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import { OperatorHold } from '../accounts/ledger/operator-hold.ts'
import { parseIsoDay } from '../domain/model-retirement.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Settings } from '../domain/settings.ts'
import { modelsRequest } from '../management/channels/test-request.ts'
import { entriesOfList, nameOfEntry } from '../management/channels/read-model-list.ts'
import type { Store } from '../store/store.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { requestWholeResponse } from '../upstreams/exchange.ts'
import type { ModelRetirements } from '../upstreams/model-retirements.ts'
import type { UpstreamClient } from '../upstreams/upstream-client.ts'

/**
 * Milliseconds after the start until model lists are first read, because a gateway that starts has more
 * urgent work.
 */
const FIRST_MS = 2_000
const TICK_MS = 1_000
/** Milliseconds between two readings of an upstream's model list. */
const READ_MS = 86_400_000
/** Milliseconds until a list that could not be read is tried again. */
const RETRY_MS = 3_600_000
const TIMEOUT_MS = 10_000
/** Maximum size of a model list in bytes; the lists of public vendors have less than a million. */
const MAX_BODY_BYTES = 4_194_304
/** Maximum number of model lists that are read at the same time. */
const MAX_AT_ONCE = 16
/** Maximum number of shutdown dates that are stored for an upstream. */
const MAX_ENDS = 2_000
/** Maximum number of a channel's keys that are tried for one reading. */
const MAX_KEYS = 3

/** Services that reading lists needs. */
interface ListServices {
  readonly settings: () => Settings
  readonly ends: ModelRetirements
  readonly store: Pick<Store, 'write'>
  readonly upstreams: UpstreamClient
  readonly metrics: Pick<Metrics, 'add'>
  readonly log: Pick<Logger, 'debug' | 'warn'>
  /** Called after shutdown dates were stored. */
  readonly onStored: () => Promise<void>
}

/**
 * Reads the field `shutdown_date` in the model lists of upstreams, shortly after the start and then once a
 * day for each channel. `docs/operations.md: Models that end`.
 */
export class ModelListReader {
  readonly #services: ListServices
  /** The last reading of each list, by channel and base URL; `atMs` is in Unix milliseconds. */
  readonly #last = new Map<string, { readonly atMs: number; readonly isRead: boolean }>()
  readonly #underWay = new Set<string>()
  readonly #startedMs = performance.now()
  readonly #timer: NodeJS.Timeout

  constructor(services: ListServices) {
    this.#services = services
    this.#timer = setInterval(() => this.#tick(Date.now()), TICK_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #tick(nowMs: number): void {
    const { options, channels } = this.#services.settings()
    if (!options.model_dates || performance.now() - this.#startedMs < FIRST_MS) return
    const listed = channels.filter(({ provider }) => provider === 'generic')
    const names = new Set(listed.map(nameOf))
    for (const name of this.#last.keys()) if (!names.has(name)) this.#last.delete(name)
    for (const channel of listed) {
      const name = nameOf(channel)
      if (this.#underWay.size >= MAX_AT_ONCE) return
      if (this.#underWay.has(name) || !this.#isDue(name, nowMs)) continue
      void this.#readOnce(channel, name)
    }
  }

  // Whether it is time to read a list. If the system clock was set back, it is unknown how long ago the last
  // reading was, so the list is read.
  #isDue(name: string, nowMs: number): boolean {
    const last = this.#last.get(name)
    if (!last) return true
    return nowMs < last.atMs || nowMs - last.atMs >= (last.isRead ? READ_MS : RETRY_MS)
  }

  async #readOnce(channel: Channel, name: string): Promise<void> {
    const { log, metrics } = this.#services
    this.#underWay.add(name)
    let isRead = false
    try {
      const body = await this.#bodyOf(channel)
      const listed = body && shutdownDates(body)
      if (listed) await this.#store(channel, listed)
      isRead = listed !== undefined
      if (!isRead) log.debug({ channel: channel.name }, 'a model list cannot be read; nothing changes')
    } catch (error) {
      log.warn(
        { err: error, channel: channel.name },
        'ends of models were not stored; tried again in an hour',
      )
    } finally {
      metrics.add('modelLists', 1, isRead ? 'read' : 'failed')
      this.#underWay.delete(name)
      this.#last.set(name, { atMs: Date.now(), isRead })
    }
  }

  /** Reads the model list with the first key that the upstream does not refuse; undefined if none works. */
  async #bodyOf(channel: Channel): Promise<Buffer | undefined> {
    const keys = channel.keys.length === 0 ? [''] : channel.keys.slice(0, MAX_KEYS)
    for (const value of keys) {
      const hold = new OperatorHold(randomUUIDv7())
      const bounds = { maxBytes: MAX_BODY_BYTES, timeoutMs: Math.min(TIMEOUT_MS, channel.timeouts.total) }
      const to = { hold, channel, key: { value } }
      const came = await requestWholeResponse(this.#services.upstreams, to, modelsRequest(channel), bounds)
      hold.settle()
      if ('failure' in came) return undefined
      if (came.status >= 200 && came.status <= 299) return came.body
      if (came.status !== 401 && came.status !== 403) return undefined
    }
    return undefined
  }

  async #store(channel: Channel, listed: ReadonlyMap<string, string | null>): Promise<void> {
    const { ends: known, store, onStored } = this.#services
    const { source, ends: before } = known.listedAt(channel)
    let count = before.size
    const news = [...listed].flatMap(([model, on]) => {
      const isKnown = before.has(model)
      if ((before.get(model)?.on ?? null) === on || (!isKnown && ++count > MAX_ENDS)) return []
      return { model, on }
    })
    if (news.length === 0) return
    await store.write('storeModelRetirements', { source, nowMs: Date.now(), ends: news })
    await onStored()
  }
}

// The name contains the base URL, so that a changed URL causes a new reading, but other changes do not.
function nameOf({ name, base_url: baseUrl }: Channel): string {
  return JSON.stringify([name, baseUrl])
}

/**
 * The shutdown day of each model in a list; null for a model without one. Models with an unreadable date are
 * left out. Undefined if the body is not a list.
 */
function shutdownDates(body: Buffer): Map<string, string | null> | undefined {
  const list = entriesOfList(body)
  if (!list) return undefined
  const dates = new Map<string, string | null>()
  for (const entry of list) {
    const name = nameOfEntry(entry)
    const stated = asRecord(entry)?.['shutdown_date'] ?? null
    const on = stated === null ? null : parseIsoDay(stated)
    if (name !== undefined && on !== undefined) dates.set(name, on)
  }
  return dates
}
