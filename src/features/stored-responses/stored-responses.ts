import type { Caller } from '../../accounts/authentication/caller.ts'
import type { LifeCycle } from '../../call/life-cycle.ts'
import type { Relay } from '../../call/relay.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import { REPLAY_DIALECT, replayRequest } from './replay.ts'
import {
  type ResponseRequestServices,
  ResponseRequests,
  type StoredResponseRequest,
} from './response-requests.ts'

const NO_BYTES = Buffer.alloc(0)

/** Services for the endpoints of stored responses. */
export interface StoredResponseEndpoints extends ResponseRequestServices {
  readonly lifeCycle: LifeCycle
  readonly relay: Relay
}

/** The caller's stored responses, by their ids: `docs/api.md: Stored responses`. */
export class StoredResponses {
  readonly #services: StoredResponseEndpoints
  readonly #requests: ResponseRequests

  constructor(services: StoredResponseEndpoints) {
    this.#services = services
    this.#requests = new ResponseRequests(services)
  }

  /** Sends a response as a whole, or its stream again. */
  retrieve(incoming: IncomingCall, caller: Caller, id: string): Promise<void> {
    return this.#underWay(incoming, caller, id, (stored) => this.#retrieve(stored, caller))
  }

  async #retrieve(stored: StoredResponseRequest, caller: Caller): Promise<void> {
    const replay = this.#requests.replayOf(stored)
    if (!replay) return this.#requests.retrieve(stored)
    const { relay } = this.#services
    const { settings, check } = stored
    const { channel } = replay.account
    const request = replayRequest(replay)
    const replayed = { dialect: REPLAY_DIALECT, caller, settings, request, channel }
    try {
      await relay.makeUncharged({ ...replayed, known: check?.begin() }, stored.incoming)
    } finally {
      check?.ended()
    }
  }

  /** Deletes a response, also at its upstream. */
  remove(incoming: IncomingCall, caller: Caller, id: string): Promise<void> {
    return this.#underWay(incoming, caller, id, (stored) => this.#requests.remove(stored))
  }

  /** Sends a page of the items that a response was made from. */
  inputItems(incoming: IncomingCall, caller: Caller, id: string): Promise<void> {
    return this.#underWay(incoming, caller, id, (stored) => this.#requests.inputItems(stored))
  }

  /** Cancels a response that is made in the background. It is no call under way, because it may be what ends one. */
  async cancel(incoming: IncomingCall, caller: Caller, id: string): Promise<void> {
    const settings = this.#services.settings()
    const run = async (call: IncomingCall): Promise<void> => {
      if (call.unlessKept) throw call.unlessKept
      return this.#requests.cancel(await this.#requests.find(call, caller, id))
    }
    const answer = this.#services.lifeCycle.read(incoming, settings)
    const request = { body: { bytes: NO_BYTES }, incoming, caller, settings, isForAnyModel: true } as const
    return answer ? answer(request, run) : run(incoming)
  }

  /** Makes a request for a response of the caller. It is a call under way until its request to the provider has ended. */
  async #underWay(
    incoming: IncomingCall,
    caller: Caller,
    id: string,
    run: (stored: StoredResponseRequest) => Promise<void>,
  ): Promise<void> {
    const leave = await this.#services.limits.begin(caller)
    try {
      await run(await this.#requests.find(incoming, caller, id))
    } finally {
      leave()
    }
  }
}
