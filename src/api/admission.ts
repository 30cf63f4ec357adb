import { GatewayError } from '../errors.ts'
import type { Overload } from '../limits/overload.ts'
import { RefusalsInTurn } from '../limits/refusals-in-turn.ts'
import type { Visit } from './endpoint.ts'

// Nobody hears it: it is what the log says.
const LEFT = new GatewayError('overloaded', 'the caller left while its call waited')

/**
 * Where calls come in: each begins at once or when its turn comes, or is refused before anything is read of
 * it.
 */
export class Admission {
  readonly #overload: Overload
  readonly #mostCalls: () => number
  readonly #refusals = new RefusalsInTurn()
  readonly #ended = (): void => this.#overload.ended()

  /** `mostCalls` may be under way at one time. */
  constructor(overload: Overload, mostCalls: () => number) {
    this.#overload = overload
    this.#mostCalls = mostCalls
  }

  /** Calls `begin` or `refuse`, now or later. `open` visits are under way, this one included. */
  enter(visit: Visit, open: number, begin: () => void, refuse: (error: GatewayError) => void): void {
    const { begunMs, response } = visit
    const overload = this.#overload
    const refusal = overload.refusal(begunMs, open, this.#mostCalls())
    if (refusal) return this.#refusals.say(() => refuse(refusal))
    if (overload.begins(begunMs)) {
      response.onClosed(this.#ended)
      return begin()
    }
    overload.wait({
      sinceMs: begunMs,
      begin: () => {
        if (response.isLost) {
          refuse(LEFT)
          return false
        }
        response.onClosed(this.#ended)
        begin()
        return true
      },
    })
  }
}
