import { randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import type { Channel } from '../domain/records/channel.ts'
import type { Settings } from '../domain/settings.ts'
import { OperatorHold } from '../accounts/ledger/operator-hold.ts'
import { chooseCheapTest, testRequest } from '../management/channels/test-request.ts'
import type { ChannelHealth } from '../upstreams/channel-health.ts'
import { requestWholeResponse } from '../upstreams/exchange.ts'
import type { KeyRings } from '../upstreams/key-ring.ts'
import type { UpstreamClient } from '../upstreams/upstream-client.ts'

/** Timeout of a test request in milliseconds. */
const TIMEOUT_MS = 30_000
const MAX_BODY_BYTES = 65_536

/** Services that probes need. */
interface ProbeServices {
  readonly settings: () => Settings
  readonly health: ChannelHealth
  readonly keyRings: KeyRings
  readonly upstreams: UpstreamClient
  readonly log: Pick<Logger, 'info' | 'warn'>
}

/**
 * While a channel's circuit breaker is open, sends it test requests at the interval in its setting `probe`,
 * until it answers. The tests never generate images or speech, and nobody is charged for them.
 * `docs/operations.md: Channels that fail`.
 */
export class ChannelProbes {
  readonly #services: ProbeServices
  /** Time of the last test by channel name, or of the moment when the circuit breaker was first seen open. */
  readonly #lastMs = new Map<string, number>()
  readonly #underWay = new Set<string>()
  readonly #timer: NodeJS.Timeout

  constructor(services: ProbeServices) {
    this.#services = services
    this.#timer = setInterval(() => this.#tick(performance.now()), 1_000).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #tick(nowMs: number): void {
    for (const channel of this.#services.settings().channels) {
      const { name, probe: probeMs } = channel
      if (probeMs === null || this.#underWay.has(name)) continue
      if (!this.#services.health.isOpen(channel, nowMs)) {
        this.#lastMs.delete(name)
        continue
      }
      const lastMs = this.#lastMs.get(name)
      if (lastMs === undefined) this.#lastMs.set(name, nowMs)
      else if (nowMs - lastMs >= probeMs) void this.#probe(channel)
    }
  }

  async #probe(channel: Channel): Promise<void> {
    const { settings, health, keyRings, upstreams, log } = this.#services
    const { name, timeouts } = channel
    const tested = chooseCheapTest(channel, '', settings().models)
    this.#underWay.add(name)
    using counted = health.begin(channel)
    const hold = new OperatorHold(randomUUIDv7())
    try {
      const key = keyRings.rotated(channel)[0] ?? { value: '' }
      const timeoutMs = Math.min(TIMEOUT_MS, timeouts.total)
      const bounds = { maxBytes: MAX_BODY_BYTES, timeoutMs }
      const request = testRequest(channel, tested)
      const came = await requestWholeResponse(upstreams, { hold, channel, key }, request, bounds)
      if (hasAnswered(came)) {
        counted.succeeded()
        log.info({ channel: name }, 'a channel in cooldown has answered a probe: it is asked again')
      } else counted.failed(performance.now())
    } catch (error) {
      log.warn({ err: error, channel: name }, 'a channel could not be probed; tried again')
    } finally {
      hold.settle()
      this.#lastMs.set(name, performance.now())
      this.#underWay.delete(name)
    }
  }
}

// An error about the request or the key counts as an answer too, because it shows that the server works.
function hasAnswered(came: Awaited<ReturnType<typeof requestWholeResponse>>): boolean {
  if ('failure' in came) return false
  return came.status < 500 && came.status !== 408
}
