import { z } from 'zod'
import type { Channel } from '../domain/records/channel.ts'
import { hmacOf, seal, type Secrets, unseal } from '../store/secrets.ts'
import { REST_KINDS, type RestChange } from '../upstreams/account-rests.ts'
import type { KeyRings } from '../upstreams/key-ring.ts'
import type { LimitsForOtherNodes, ProviderLimits } from '../upstreams/provider-limits.ts'
import type { StatedLimitCount, StatedLimits } from '../upstreams/stated-limits.ts'
import type { Announcer } from './change-feed.ts'

/** Interval at which changes of providers' limits and of rests are announced. */
const INTERVAL_MS = 100
/**
 * Maximum number of announcements per interval, and of changes in one announcement, which must be shorter
 * than 8,000 bytes.
 */
const MAX_ANNOUNCEMENTS = 8
const MAX_NEWS = 16
const MAX_TEXT_LENGTH = 5_500
/**
 * Maximum number of changes that wait to be announced, and of accounts whose latest rest is
 * remembered.
 */
const MAX_WAITING = 10_000
/** Maximum age of an accepted announcement, and so the maximum difference between the clocks of two nodes. */
const MAX_AGE_MS = 30_000
/**
 * Minimum time between two announcements of everything this node knows, which nodes request when they join or
 * reconnect.
 */
const TOLD_AGAIN_MS = 2_000
/** Maximum time in an announcement: the year 2200, in Unix milliseconds. */
const MAX_TIME_MS = 7_258_118_400_000
const MAX_NAME_LENGTH = 300

const PREFIX = 'limits'
const QUESTION = /^limits\? (\S{1,100})$/
const ANNOUNCEMENT = /^limits (\S{1,100}) (\S+)$/

const time = z.int().min(0).max(MAX_TIME_MS)
const name = z.string().max(MAX_NAME_LENGTH)
const amount = z.int().min(0)
/**
 * A rate limit that a provider stated: its total, the remaining amount, and the time of its reset in Unix
 * milliseconds.
 */
const count = z.tuple([amount.nullable(), amount, time.nullable()]).nullable()

/**
 * What a provider stated about a key: channel, tag of the key, model, time, end of a pause, requests, tokens.
 * Times are Unix milliseconds.
 */
const limitNews = z.tuple([z.literal('limit'), name, name, name, time, time.nullable(), count, count])
/**
 * A rest of a key: channel, tag of the key, model (empty for all), kind, time of the change, end (0 if it is
 * over), start, cause. Times are Unix milliseconds.
 */
const restNews = z.tuple([z.literal('rest'), name, name, name, z.enum(REST_KINDS), time, time, time, name])

/** Time of the announcement in Unix milliseconds, and the announced changes. */
const announcement = z.tuple([time, z.array(z.union([limitNews, restNews])).max(MAX_NEWS)])

type News = z.output<typeof announcement>[1][number]
type Count = z.output<typeof count>

export interface LimitFeedOptions {
  /** Identifier of this node. */
  readonly node: string
  /** Identifier of the cluster, the same on all of its nodes. */
  readonly namespace: string
  readonly secrets: Secrets
  readonly announcer: Announcer
  /** Channels of the live configuration; a new list after each change. */
  readonly channels: () => readonly Pick<Channel, 'name' | 'keys'>[]
  readonly limits: ProviderLimits
  readonly keyRings: KeyRings
  /** Called for each announcement without a valid seal of this gateway. */
  readonly onUntrusted: () => void
}

/**
 * Announces to the other nodes what providers state about the rate limits of their keys, and the rests
 * of keys. Announcements are encrypted, and identify keys by an HMAC. An announcement is ignored if it is
 * forged, older than 30 seconds, or not newer than what is known. `docs/configuration.md: Limits of
 * providers`.
 */
export class LimitFeed {
  readonly #options: LimitFeedOptions
  readonly #waiting = new Map<string, () => News>()
  /** Time of the latest change of a rest, by channel, tag of the key and model. */
  readonly #changedMs = new Map<string, number>()
  readonly #timer: NodeJS.Timeout
  readonly #endListening: () => void
  /**
   * Keys of the live configuration by channel and tag. `of` is the list of channels from which the map was
   * computed.
   */
  #tags: { readonly of: readonly unknown[]; readonly keys: ReadonlyMap<string, FoundKey> } | undefined
  /** Whether another node has requested all limits and rests that this node knows. */
  #isAskedForAll = false
  #toldMs = Number.NEGATIVE_INFINITY

  constructor(options: LimitFeedOptions) {
    this.#options = options
    const { announcer, limits, keyRings, node } = options
    limits.onNoted = (noted) => this.#addLimit(noted)
    keyRings.rests.onChange = (change) => this.#addRest(change, Date.now())
    this.#endListening = announcer.listen({
      received: (text) => this.#onText(text),
      connected: () => {
        // After a reconnection, other nodes may also have missed announcements of this node.
        this.#isAskedForAll = true
        announcer.announce(`${PREFIX}? ${node}`).catch(() => {})
      },
    })
    this.#timer = setInterval(() => this.#announce(), INTERVAL_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#endListening()
  }

  #add(key: string, news: () => News): void {
    if (this.#waiting.size < MAX_WAITING || this.#waiting.has(key)) this.#waiting.set(key, news)
  }

  #addLimit(noted: LimitsForOtherNodes): void {
    this.#add(`limit ${noted.channel}\0${noted.key}\0${noted.model}`, () => this.#limitNews(noted))
  }

  #addRest(change: RestChange, atMs: number): void {
    const { channel, key, model, rest } = change
    const tag = this.#tagOf(channel, key)
    const of = `${channel}\0${tag}\0${model}`
    this.#noteChange(of, atMs)
    const endMs = rest ? Math.max(1, Math.ceil(Date.now() + rest.endMs - performance.now())) : 0
    const { sinceMs = 0, kind = 'limited' } = rest ?? {}
    const cause = (rest?.cause ?? '').slice(0, MAX_NAME_LENGTH)
    this.#add(`rest ${of}`, () => ['rest', channel, tag, model, kind, atMs, endMs, sinceMs, cause])
  }

  #announce(): void {
    if (this.#isAskedForAll) this.#tellAll()
    for (let sent = 0; sent < MAX_ANNOUNCEMENTS && this.#waiting.size > 0; sent += 1) this.#announceSome()
  }

  #announceSome(): void {
    const { node, secrets, announcer } = this.#options
    const news: News[] = []
    let length = 0
    for (const [key, make] of this.#waiting) {
      const one = make()
      if (!isShort(one)) {
        this.#waiting.delete(key)
        continue
      }
      length += Buffer.byteLength(JSON.stringify(one))
      if (news.length === MAX_NEWS || (news.length > 0 && length > MAX_TEXT_LENGTH)) break
      this.#waiting.delete(key)
      news.push(one)
    }
    const text = JSON.stringify([Date.now(), news] satisfies z.input<typeof announcement>)
    if (text.length > MAX_TEXT_LENGTH + 100) return
    // A failed announcement is not repeated, because the provider's next response states newer numbers.
    announcer.announce(`${PREFIX} ${node} ${seal(secrets, text, this.#place)}`).catch(() => {})
  }

  #onText(text: string): void {
    const { node } = this.#options
    const [, asking] = QUESTION.exec(text) ?? []
    if (asking !== undefined && asking !== node) this.#isAskedForAll = true
    const [, teller, sealed] = ANNOUNCEMENT.exec(text) ?? []
    if (sealed === undefined || teller === node) return
    const opened = this.#opened(sealed)
    const nowMs = Date.now()
    if (!opened || Math.abs(nowMs - opened[0]) > MAX_AGE_MS) return
    for (const one of opened[1]) this.#apply(one, nowMs)
  }

  #opened(sealed: string): z.output<typeof announcement> | undefined {
    const { secrets, onUntrusted } = this.#options
    let text: string
    try {
      text = unseal(secrets, sealed, this.#place)
    } catch {
      onUntrusted()
      return undefined
    }
    // A node of another version may announce other things.
    return announcement.safeParse(parsedJson(text)).data
  }

  #apply(news: News, nowMs: number): void {
    const [kind, channelName, tag] = news
    const found = this.#keys.get(`${channelName}\0${tag}`)
    if (!found) return
    const { channel, key } = found
    const { limits, keyRings } = this.#options
    if (kind === 'limit') {
      const [, , , model, statedMs, restsUntilMs, requests, tokens] = news
      if (statedMs > nowMs + MAX_AGE_MS) return
      const stated: StatedLimits = {
        ...(requests && { requests: countOf(requests) }),
        ...(tokens && { tokens: countOf(tokens) }),
        ...(restsUntilMs !== null && { restsUntilMs }),
      }
      limits.apply(channel, { key, model, stated, statedMs })
      return
    }
    const [, , , model, restKind, atMs, endMs, sinceMs, cause] = news
    const of = `${channelName}\0${tag}\0${model}`
    const knownMs = this.#changedMs.get(of) ?? 0
    // A change that is known from the future is from before the clock was set back.
    if ((atMs <= knownMs && knownMs <= nowMs + MAX_AGE_MS) || atMs > nowMs + MAX_AGE_MS) return
    this.#noteChange(of, atMs)
    const ownMs = performance.now()
    // A rest that is over is still known: the next call tries the account.
    const rest = endMs > 0 ? { kind: restKind, endMs: ownMs + endMs - nowMs, sinceMs, cause } : undefined
    keyRings.rests.apply({ channel: channel.name, key, model, rest }, ownMs)
  }

  #tellAll(): void {
    const nowMs = performance.now()
    if (nowMs - this.#toldMs < TOLD_AGAIN_MS) return
    this.#toldMs = nowMs
    this.#isAskedForAll = false
    const { limits, keyRings } = this.#options
    for (const noted of limits.noted()) this.#addLimit(noted)
    for (const change of keyRings.rests.list()) {
      const { channel, key, model } = change
      const atMs = this.#changedMs.get(`${channel}\0${this.#tagOf(channel, key)}\0${model}`)
      if (atMs !== undefined) this.#addRest(change, atMs)
    }
  }

  #noteChange(name: string, atMs: number): void {
    this.#changedMs.delete(name)
    this.#changedMs.set(name, atMs)
    if (this.#changedMs.size <= MAX_WAITING) return
    for (const oldest of this.#changedMs.keys()) {
      this.#changedMs.delete(oldest)
      break
    }
  }

  #limitNews({ channel, key, model, stated, statedMs }: LimitsForOtherNodes): News {
    const { requests, tokens, restsUntilMs = null } = stated
    const rests = restsUntilMs === null ? null : Math.ceil(restsUntilMs)
    return [
      'limit',
      channel,
      this.#tagOf(channel, key),
      model,
      statedMs,
      rests,
      countNews(requests),
      countNews(tokens),
    ]
  }

  #tagOf(channel: string, key: string): string {
    return hmacOf(this.#options.secrets, 'limited key', `${channel}\0${key}`)
  }

  get #place() {
    return { table: 'limits of providers', row: this.#options.namespace }
  }

  get #keys(): ReadonlyMap<string, FoundKey> {
    const of = this.#options.channels()
    if (this.#tags?.of === of) return this.#tags.keys
    const keys = new Map<string, FoundKey>()
    for (const channel of of)
      for (const key of channel.keys.length === 0 ? [''] : channel.keys)
        keys.set(`${channel.name}\0${this.#tagOf(channel.name, key)}`, { channel, key })
    this.#tags = { of, keys }
    return keys
  }
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

interface FoundKey {
  readonly channel: Pick<Channel, 'name' | 'keys'>
  readonly key: string
}

/**
 * Whether all names in a change are short enough. Because of a longer name, other nodes would refuse the
 * whole announcement.
 */
function isShort(news: News): boolean {
  return news.every((part) => typeof part !== 'string' || part.length <= MAX_NAME_LENGTH)
}

function countNews(stated: StatedLimitCount | undefined): Count {
  if (!stated) return null
  const { limit = null, remaining, resetsMs } = stated
  return [limit, remaining, resetsMs === undefined ? null : Math.ceil(resetsMs)]
}

function countOf([limit, remaining, resetsMs]: NonNullable<Count>): StatedLimitCount {
  return { limit: limit ?? undefined, remaining, resetsMs: resetsMs ?? undefined }
}
