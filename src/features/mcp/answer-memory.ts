import type { Call } from '../../call/call.ts'
import { responseMemory } from '../../call/response-memory.ts'
import type { ResponseMemory } from '../../limits/request-memory.ts'
import { untilAborted } from '../../upstreams/until-aborted.ts'
import { ServerFailure, type TakeMemory } from './server-transport.ts'

/** The server has answered, and no memory for the answer became free within the timeout. */
export class NoMemory extends Error {}

/** Memory for the answer of a server, until the client has read it. */
export class AnswerMemory {
  readonly #call: Call
  readonly #memory: ResponseMemory
  #received = 0

  constructor(call: Call) {
    this.#call = call
    this.#memory = responseMemory(call)
  }

  /** Waits until there is memory. Rejects with `NoMemory` in place of `server_timeout`. */
  readonly take: TakeMemory = async (bytes, signal) => {
    this.#received += bytes
    this.#memory.resize(this.#received)
    if (!this.#memory.isShort) return
    try {
      await untilAborted(this.#memory.whenEnough(), signal)
    } catch (error) {
      throw error instanceof ServerFailure ? new NoMemory() : error
    }
  }

  /** Returns the memory, once the client has read what was sent. */
  release(): void {
    this.#call.response.whenRead(() => this.#memory.resize(0))
  }
}
