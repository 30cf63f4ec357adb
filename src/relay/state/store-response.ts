import { randomBytes } from 'node:crypto'
import type { StoredResponse } from '../../domain/stored-response.ts'
import { promptTokens, type Usage } from '@sluice/wire/usage'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { inputItems } from '@sluice/wire/responses'
import { dataOf } from '@sluice/wire/sse/frame-splitter'
import type { Call } from '../call.ts'
import type { WholeReply, Tap } from '../dialects/dialect.ts'
import { DelegatingTap } from './delegating-tap.ts'
import type { ResponseStore } from './response-store.ts'
import type { AttemptRequest, ChannelPlan, Target } from '../request-stages.ts'

/** How a converted response is kept. */
export interface Keeping {
  readonly responses: ResponseStore
  /** The request without the items of the response that it continues. */
  readonly scan: ScannedObject
  readonly previousId: string | null
  readonly retentionMs: number
}

/** The request for a channel whose response the gateway keeps. */
export function keptRequest(request: ChannelPlan, keeping: Keeping): ChannelPlan {
  return {
    ...request,
    async prepare(passThrough, requester): Promise<AttemptRequest> {
      const prepared = await request.prepare(passThrough, requester)
      const input = inputItems(keeping.scan, (prefix) => `${prefix}_${randomBytes(16).toString('hex')}`)
      return {
        ...prepared,
        tap: (...given) => new KeepingTap(prepared.tap(...given), input, keeping),
        reply: (bytes) => keptReply(prepared.reply(bytes), input, keeping),
      }
    },
  }
}

function keptReply(reply: WholeReply, input: string, keeping: Keeping): WholeReply {
  let body: Buffer | undefined
  const encode = (charged: Usage): Buffer => (body ??= reply.body(charged))
  return {
    facts: reply.facts,
    body: encode,
    keep: async (target, call, charging) => {
      const keepingSignatures = reply.keep?.(target, call, charging)
      const charged = await charging
      await keepingSignatures
      await keep({ input, response: encode(charged).toString() }, charged, { target, call }, keeping)
    },
  }
}

/** Tap of a converted stream; its final event contains the response to be kept. */
class KeepingTap extends DelegatingTap<Tap> {
  readonly #input: string
  readonly #keeping: Keeping
  #final: Buffer | undefined

  constructor(inner: Tap, input: string, keeping: Keeping) {
    super(inner)
    this.#input = input
    this.#keeping = keeping
  }

  /** Final frames are numbered, so they must be created only once. */
  override finalBytes(charged: Usage): Buffer {
    return (this.#final ??= this.inner.finalBytes(charged))
  }

  async keep(target: Target, call: Call, charging: Promise<Usage>): Promise<void> {
    const keepingSignatures = this.inner.keep?.(target, call, charging)
    const charged = await charging
    await keepingSignatures
    const last = this.finalBytes(charged).toString().trimEnd().split('\n\n').at(-1) ?? ''
    const event = scanObject(Buffer.from(dataOf(`${last}\n\n`) ?? '{}'))
    const node = event.span('response')?.node
    if (node === undefined) return
    const content = { input: this.#input, response: event.textOf(node) }
    await keep(content, charged, { target, call }, this.#keeping)
  }
}

async function keep(
  content: NonNullable<StoredResponse['content']>,
  charged: Usage,
  { target, call }: { readonly target: Target; readonly call: Call },
  { responses, previousId, retentionMs }: Keeping,
): Promise<void> {
  const createdMs = Date.now()
  await responses.keep({
    id: String(scanObject(Buffer.from(content.response)).value('id')),
    userId: call.hold.account.user.id,
    model: call.plan.request.model,
    group: call.plan.group.name,
    channel: target.channel.name,
    keyTag: responses.keyTag(target.key.value),
    upstreamId: '',
    tokens: promptTokens(charged) + charged.output,
    previousId,
    createdMs,
    expiresMs: createdMs + retentionMs,
    content,
    callId: null,
    rate: null,
  })
}
