import { type Channel, usesWebSockets } from '../../domain/records/channel.ts'
import type { Request } from '../../http/request.ts'
import type { LaneTurn } from './provider-lane.ts'

/** Milliseconds for which a channel that refused an upgrade is not asked for another. */
const REFUSAL_MS = 600_000

/** Which turns are sent over WebSockets of providers. */
export class ProviderSockets {
  readonly #turns = new WeakMap<Request, LaneTurn>()
  /** When channels that refused an upgrade are asked again, by name. */
  readonly #untilMs = new Map<string, number>()
  readonly #nowMs: () => number
  /** The channels in the current configuration: after each change another list. */
  readonly channels: () => readonly Channel[]

  constructor(nowMs: () => number, channels: () => readonly Channel[]) {
    this.#nowMs = nowMs
    this.channels = channels
  }

  /** Notes the turn for which a request stands. */
  note(request: Request, turn: LaneTurn): void {
    this.#turns.set(request, turn)
  }

  /** The turn for which a request stands; undefined for other requests. */
  turnOf(request: Request): LaneTurn | undefined {
    return this.#turns.get(request)
  }

  /** Notes that the channel's provider has refused an upgrade. */
  refused({ name }: Channel): void {
    this.#untilMs.set(name, this.#nowMs() + REFUSAL_MS)
  }

  /** Whether a turn to this channel is sent over a WebSocket. */
  reach(channel: Channel): boolean {
    return usesWebSockets(channel) && (this.#untilMs.get(channel.name) ?? 0) <= this.#nowMs()
  }
}
