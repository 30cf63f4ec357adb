import { randomUUIDv7 } from 'node:crypto'
import { Request } from '@sluice/http1'
import { withoutModelLimits } from '../../../call/key-permissions.ts'
import type { Caller } from '../../../accounts/authentication/caller.ts'
import { Unaffordable } from '../../../accounts/ledger/quota-refusal.ts'
import type { Settings } from '../../../domain/settings.ts'
import { asGatewayError, GatewayError } from '../../../errors.ts'
import type { Headers } from '../../../http/request.ts'
import { MemoryAllocation, type RequestMemory } from '../../../limits/request-memory.ts'
import { RunningAnswer } from '../../../call/answers/running-answer.ts'
import type { Body } from '../../../call/body-reader.ts'
import { moderationsDialect } from '../../../call/dialects/moderations/client-dialect.ts'
import { parseRequest, scanRequest } from '../../../call/parse-request.ts'
import { ReadingFeatures } from '../../../call/reading-features.ts'
import type { ParsedRequest } from '../../../call/request-stages.ts'
import type { CallRecord, IncomingCall } from '../../../call/incoming-call.ts'
import type { Relay } from '../../../call/relay.ts'
import type { Routes } from '../../../call/routing.ts'
import { CheckRefused, type ModerationRequest, checkMemoryError } from './service-checks.ts'
import { ServiceFailure } from './service.ts'

/** Maximum size of a moderation model's answer in bytes. */
const MAX_ANSWER_BYTES = 1_048_576
const NO_FEATURES = new ReadingFeatures([])
const DIALECTS = { json: moderationsDialect } as const
const HEADERS: Headers = Object.freeze({ 'content-type': 'application/json' })

/** Makes calls of the gateway itself. */
export type OwnCalls = Pick<Relay, 'routing' | 'makeOwn'>

/**
 * Moderates texts with models of the gateway. Such a call is routed, charged and recorded like a client's;
 * but it is not guarded and does not count against request limits. It is free unless the guard charges the
 * caller.
 */
export class GuardModerations {
  readonly #memory: RequestMemory
  readonly #calls: () => OwnCalls

  constructor({ memory }: { readonly memory: RequestMemory }, calls: () => OwnCalls) {
    this.#memory = memory
    this.#calls = calls
  }

  /**
   * Resolves to the JSON of the model's answer. Rejects with `ServiceFailure`, or with `CheckRefused` if the
   * caller cannot pay.
   */
  async moderate({ model, texts, settings, caller, isCharged, signal }: ModerationRequest): Promise<unknown> {
    const owner = { client: caller.user.id, key: caller.token.id }
    const answer = new RunningAnswer({
      memory: this.#memory,
      owner,
      maxBytes: MAX_ANSWER_BYTES,
      staysWithoutClients: () => true,
    })
    const { recorder } = answer
    const stop = (): void => recorder.destroy()
    signal.addEventListener('abort', stop)
    const memory = new BodyMemory(this.#memory, new MemoryAllocation(owner))
    const record: CallRecord = { model, stream: false }
    try {
      if (signal.aborted) throw new ServiceFailure('it was cancelled')
      const body = memory.body(Buffer.from(JSON.stringify({ model, input: texts })))
      const now = performance.now()
      const incoming: IncomingCall = {
        id: randomUUIDv7(),
        request: new Request(HEAD, SOURCE),
        response: recorder,
        record,
        startedMs: Date.now(),
        startedAt: now,
      }
      await this.#make(body, incoming, { caller, settings, isCharged })
      return await jsonOf(answer)
    } catch (error) {
      if (error instanceof ServiceFailure) throw error
      if (error instanceof Unaffordable) throw new CheckRefused(error)
      const known = asGatewayError(error)
      if (known?.code === 'overloaded') throw new CheckRefused(known)
      // The call waited for quota until its signal was aborted. This must not be treated as a service
      // failure, which might let the texts pass.
      if (isCharged && signal.aborted && record.attempts === undefined) throw new CheckRefused(notInTime())
      throw new ServiceFailure(`its call failed${known ? ` (${known.code})` : ''}`, { cause: error })
    } finally {
      signal.removeEventListener('abort', stop)
      recorder.destroy()
      answer.release()
      memory.release()
    }
  }

  async #make(
    body: Body,
    incoming: IncomingCall,
    {
      caller: asked,
      settings,
      isCharged,
    }: { readonly caller: Caller; readonly settings: Settings; readonly isCharged: boolean },
  ): Promise<void> {
    const reader = {
      caller: asked,
      settings,
      hold: body.hold,
      holdCopies: body.holdCopies,
      readStore: noReads,
      features: NO_FEATURES,
    }
    const read = scanRequest(DIALECTS, body)
    const parsed = await parseRequest(read, HEADERS, reader)
    const request = isCharged ? parsed : unpaid(parsed)
    const { caller, routes } = this.#routes(settings, asked, request, isCharged)
    await this.#calls().makeOwn(
      {
        dialect: moderationsDialect,
        body,
        caller,
        settings,
        request,
        routes,
        read,
        reader,
        mayNotWait: true,
      },
      incoming,
    )
  }

  /** Finds channels for a moderation in the caller's group; if the caller is not charged, in any group. */
  #routes(
    settings: Settings,
    caller: Caller,
    request: ParsedRequest,
    isCharged: boolean,
  ): { readonly caller: Caller; readonly routes: Routes } {
    const own = caller.token.group === '' ? caller.user.group : caller.token.group
    const groups = isCharged ? [own] : [...new Set([own, ...settings.groups.keys()])]
    let refusal: unknown
    for (const group of groups) {
      const asking = inGroup(caller, group)
      try {
        const called = { name: request.model, stream: false }
        const routes = this.#calls().routing.resolve(settings, asking, called, moderationsDialect, true)
        return { caller: asking, routes }
      } catch (error) {
        refusal ??= error
      }
    }
    throw refusal
  }
}

/**
 * The same caller, but in this group and allowed to use any model, because the operator has chosen the model.
 */
function inGroup({ token, user }: Caller, group: string): Caller {
  return {
    token: { ...withoutModelLimits(token), group: '', vendor_routes: '' },
    user: { ...user, group },
  }
}

function unpaid(request: ParsedRequest): ParsedRequest {
  return {
    ...request,
    charging: 'unpaid',
    forModel: (name) => unpaid(request.forModel?.(name) ?? request),
  }
}

function notInTime(): GatewayError {
  return new GatewayError('overloaded', 'the check of a guard could not be paid in time; try again', {
    retryAfter: 1,
  })
}

function noReads(): never {
  throw new Error('a moderation reads nothing from the store')
}

async function jsonOf(answer: RunningAnswer): Promise<unknown> {
  const end = await answer.end
  if (end.kind !== 'complete') throw new ServiceFailure('its answer broke off')
  if (end.bytes > MAX_ANSWER_BYTES || !end.pieces)
    throw new ServiceFailure(`its answer is larger than ${MAX_ANSWER_BYTES} bytes`)
  if (end.head.status !== 200) throw new ServiceFailure(`it answered with status ${end.head.status}`)
  try {
    return JSON.parse(Buffer.concat(end.pieces).toString())
  } catch {
    throw new ServiceFailure('it answered with something else than JSON')
  }
}

/** Head of a moderation request, which the gateway makes itself and no client sent. */
const HEAD = {
  method: 'POST',
  url: '/v1/moderations',
  version: '1.1',
  headers: HEADERS,
  hosts: 1,
  keepAlive: false,
} as const
const SOURCE = { bytesRead: 0, remoteAddress: '', updateReading: () => {} } as const

/** Memory of a moderation request, counted in the caller's share. */
class BodyMemory {
  readonly #memory: RequestMemory
  readonly #allocation: MemoryAllocation

  constructor(memory: RequestMemory, allocation: MemoryAllocation) {
    this.#memory = memory
    this.#allocation = allocation
  }

  body(bytes: Buffer): Body {
    const hold = (size: number): void => {
      if (size > 0 && !this.#memory.take(this.#allocation, size)) throw checkMemoryError()
    }
    hold(bytes.length)
    return {
      bytes,
      allocation: this.#allocation,
      hold,
      holdCopies: (size) => {
        hold(size)
        return undefined
      },
      release: () => this.release(),
    }
  }

  release(): void {
    const { bytes } = this.#allocation
    if (bytes > 0) this.#memory.give(this.#allocation, bytes)
  }
}
