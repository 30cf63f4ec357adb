import { hash } from 'node:crypto'
import type { RedisClientType } from '@redis/client'
import { RedisConnection, type RedisConnectionHandlers } from '../redis/redis-connection.ts'
import { RedisScript } from '../redis/script.ts'
import { GENERATION_FUNCTIONS } from './generation-script.ts'
import type { CountedLimit } from './limit-counter.ts'
import { type ShareResponse, type ShareRequest, slotsOf } from './share-messages.ts'
import type { PlacePeers, PlaceReport } from './place-peers.ts'
import { PLACE_SCRIPT } from './place-script.ts'
import { SHARE_SCRIPT } from './share-script.ts'
import type { Peers } from './peers.ts'
import { readPlaceResponse, readShareResponse, readHeartbeat } from './redis-responses.ts'
import { ServerClock } from './server-clock.ts'

/** Times that a node gives the server, and the other nodes, in milliseconds. */
export interface PeerTimes {
  /** Timeout of an exchange; the request that waits for it waits slightly longer at most. */
  readonly exchangeMs: number
  /** Timeout of connecting, and of each other command; then the connection is closed. */
  readonly connectionMs: number
  /**
   * Age below which a new generation is not relied on: within it, all nodes notice, and report their use
   * again.
   */
  readonly refillingMs: number
}
const TIMES: PeerTimes = { exchangeMs: 40, connectionMs: 1_000, refillingMs: 600 }
/** Interval of reports of places without news: by them a node notices that its places were lost. */
const REFRESH_MS = 1_000
/**
 * Number of hashes that the windows of one limit are spread over: with a million windows each hash still
 * keeps Redis' compact encoding.
 */
const HASH_COUNT = 16_384

/** Script of a heartbeat. KEYS: none; the generation. Returns the time and the generation. */
const HEARTBEAT_SCRIPT = `${GENERATION_FUNCTIONS}
return { nowMs, readGeneration() }
`

/** Settings of the peers in Redis. */
export interface RedisPeersOptions {
  readonly url: string
  /** Prefix of all keys: nodes with the same one share their limits. */
  readonly namespace: string
  /** Name of this node, and the names of all nodes that run. */
  readonly node: string
  readonly names: () => readonly string[]
  /** Called when the server becomes reachable, and when it no longer is, with a reason. */
  readonly onReachability: (isReachable: boolean, reason?: string) => void
  /** Other times than the default ones, for nodes on machines that may be late. */
  readonly times?: PeerTimes
}

/** Peers through a Redis server. Responses are validated, so that a faulty server cannot raise a limit. */
export class RedisPeers implements Peers, PlacePeers {
  readonly #options: RedisPeersOptions
  readonly #times: PeerTimes
  readonly #connection: RedisConnection
  readonly #heartbeatScript = new RedisScript(HEARTBEAT_SCRIPT)
  readonly #shareScript = new RedisScript(SHARE_SCRIPT)
  readonly #placeScript = new RedisScript(PLACE_SCRIPT)
  readonly #generationKey: string
  #generation: string | undefined
  readonly #clock = new ServerClock()
  /** End of the time in which the generation is new. */
  #refillingUntilMs = Number.NEGATIVE_INFINITY
  /** Set while the server answers within the timeout. */
  #isResponsive = false
  #wasReachable: boolean | undefined

  constructor(options: RedisPeersOptions) {
    this.#options = options
    this.#times = options.times ?? TIMES
    this.#generationKey = `${options.namespace}:memory`
    const handlers: RedisConnectionHandlers = {
      onConnected: (client) => this.#shareScript.load(client),
      heartbeat: (client) => this.#heartbeat(client),
      onLost: (reason) => this.#onLost(reason),
    }
    this.#connection = new RedisConnection(options.url, handlers, this.#times.connectionMs)
  }

  /** Resolves when the first attempt to connect has ended, successful or not. */
  get firstAttempt(): Promise<void> {
    return this.#connection.firstAttempt
  }

  get isReachable(): boolean {
    return this.#isResponsive && this.#connection.client !== undefined
  }

  get isRefilling(): boolean {
    return performance.now() <= this.#refillingUntilMs
  }

  get nodes(): number {
    return Math.max(1, this.#options.names().length)
  }

  get refreshMs(): number {
    return REFRESH_MS
  }

  get generation(): string | undefined {
    return this.#generation === undefined ? undefined : `${this.#generation} ${this.#clock.steps}`
  }

  exchange(counted: CountedLimit, request: ShareRequest): Promise<ShareResponse | 'stale'> {
    const { key, field } = this.#locate(counted)
    const { widthMs, ahead } = slotsOf(request.windowMs)
    const { known, slot, used, returned, kept, added, need, want, max, windowMs } = request
    const numbers = [known, slot, used, returned, kept, need, want, this.nodes, ...added.flat()]
    const args = [field, windowMs, widthMs, ahead, max, this.#generation ?? '', ...numbers]
    return this.#send(this.#shareScript, [key, this.#generationKey], args, (value) =>
      readShareResponse(value, request),
    )
  }

  async exchangePlaces(subject: string, report: PlaceReport): Promise<number | 'stale'> {
    const { held, want, reported = -1, max } = report
    const { namespace, node, names } = this.#options
    const keys = [`${namespace}:calls:${subject}`, this.#generationKey]
    const others = names().filter((name) => name !== node)
    const args = [this.#generation ?? '', node, held, want, reported, max, ...others]
    const response = await this.#send(this.#placeScript, keys, args, (value) =>
      readPlaceResponse(value, report),
    )
    return response === 'stale' ? response : response.granted
  }

  async #send<Result extends object>(
    script: RedisScript,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (value: unknown) => Result | { generation: string },
  ): Promise<Result | 'stale'> {
    const client = this.#connection.client
    if (!client) throw new Error('there is no connection')
    const running = script.run(client, keys, args.map(String))
    try {
      const response = read(await withTimeout(running, this.#times.exchangeMs))
      if ('generation' in response) {
        if (this.#generation !== undefined && response.generation !== this.#generation)
          this.#startRefilling(response.generation)
        this.#generation = response.generation
        return 'stale'
      }
      return response
    } catch (error) {
      // Nobody else should wait for the server before it has answered a heartbeat.
      this.#isResponsive = false
      this.#connection.checkNow()
      throw error
    }
  }

  /** Closes the connection. */
  close(): Promise<void> {
    return this.#connection.close()
  }

  async #heartbeat(client: RedisClientType): Promise<void> {
    const sentMs = performance.now()
    const { nowMs, generation } = readHeartbeat(
      // The scripts find the generation in the same place.
      await this.#heartbeatScript.run(client, [this.#generationKey, this.#generationKey], []),
    )
    this.#clock.observe(nowMs, sentMs)
    if (this.#generation !== undefined && (generation !== this.#generation || this.isRefilling))
      this.#startRefilling(generation, nowMs)
    this.#generation = generation
    this.#isResponsive = performance.now() - sentMs < this.#times.exchangeMs
    if (!this.#isResponsive || this.#wasReachable === true) return
    this.#wasReachable = true
    this.#options.onReachability(true)
  }

  // Takes the end from the generation's age, so that all nodes rely on it from the same moment. A wrong age
  // can only shorten one refilling.
  #startRefilling(generation: string, serverMs?: number): void {
    const [seconds = 0, microseconds = 0] = generation.split('.').map(Number)
    const ageMs = serverMs === undefined ? 0 : Math.max(0, serverMs - seconds * 1000 - microseconds / 1000)
    const untilMs = performance.now() + Math.max(0, this.#times.refillingMs - ageMs)
    const isSame = generation === this.#generation && this.isRefilling
    this.#refillingUntilMs = isSame ? Math.min(untilMs, this.#refillingUntilMs) : untilMs
  }

  #onLost(reason: string): void {
    this.#isResponsive = false
    if (this.#wasReachable === false) return
    this.#wasReachable = false
    this.#options.onReachability(false, reason)
  }

  // Hashes the subject: an address or a user's name is not for everybody who can read Redis.
  #locate({ name, subject, windowMs }: CountedLimit): { key: string; field: string } {
    const { namespace } = this.#options
    const digest = hash('sha256', `${namespace}\n${name}\n${subject}`, 'buffer')
    const part = digest.readUInt32LE(12) % HASH_COUNT
    return {
      key: `${namespace}:${name.replace(' ', ':')}:${windowMs}:${part}`,
      field: digest.toString('base64url', 0, 9),
    }
  }
}

async function withTimeout<Result>(work: Promise<Result>, limitMs: number): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>()
  const late = new Error(`no response withTimeout ${limitMs} ms`)
  // After a blocked event loop the response may have arrived unread, so it gets one more turn.
  const timer = setTimeout(() => setImmediate(() => reject(late)), limitMs)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
    work.catch(() => {})
  }
}
