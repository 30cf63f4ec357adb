import { areFilteredEnds } from '@sluice/wire/end-reasons'
import { NO_USAGE } from '@sluice/wire/usage'
import { closeJson } from '@sluice/wire/json/json-outline'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import type { ReplyFacts } from '@sluice/wire/reply-facts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import { answerOrigin, continuedCall } from './answer-origin.ts'
import type { ChargeBasis } from './price-usage.ts'
import type { ResponseEnding, LastingResponse, WholeReply } from './dialects/answer-reader.ts'
import { type Failure, failureInAnswer, failureWithoutResponse, FILTERED_ANSWER } from './failure.ts'
import { ruleOf } from './failure-table.ts'
import { ResponseHandler } from './response-handler.ts'

/** Maximum bytes of the responses of one call that are kept in memory until the call is charged. */
const MAX_BYTES = 64 * 1024 * 1024

/** Cause of the failure of a response that is an error. */
const WITH_200 = 'error with status 200'
/** Maximum bytes that are read of a response that has not arrived completely. */
const MAX_PARTIAL_BYTES = 4 * 1024 * 1024

/** Handles a response that is not a stream: holds it until its charge is durable, then sends it. */
export class WholeResponse extends ResponseHandler {
  readonly #bytes = new ChunkList()
  /** Bytes of earlier responses, if the request was sent in several parts. */
  #earlierBytes = 0
  /**
   * The response's facts, and what cancels its check. Set while the external services of a feature check the
   * response, which has arrived completely.
   */
  #checked: { readonly facts: ReplyFacts; readonly stop: AbortController } | undefined
  #read = (bytes: Buffer): WholeReply => this.target.request.reply(bytes)

  onData(chunk: Buffer): void {
    if (this.state === 'over') return
    this.call.noteFirstByte()
    this.#bytes.add(chunk)
    const length = this.#earlierBytes + this.#bytes.length
    this.holdBack(length)
    if (length <= MAX_BYTES) return
    this.upstream.cancel()
    this.onFailure(failureWithoutResponse('answer too large'))
  }

  onEnd(): void {
    if (this.state === 'over') return
    const bytes = this.#bytes.take()
    const reply = this.#read(bytes)
    const { facts } = reply
    if (facts.error || !facts.valid) {
      this.#failed(reply)
    } else if (
      this.call.mayReplaceFiltered &&
      this.state === 'waiting' &&
      areFilteredEnds(facts.names?.().reasons ?? []) &&
      facts.text() === ''
    )
      this.onFailure(FILTERED_ANSWER)
    else if (reply.lasting?.continueInBackground) {
      this.close()
      this.settled(this.#deliverBegun(reply, reply.lasting.continueInBackground))
    } else if (this.state === 'draining') this.settleWithoutClient(facts)
    else if (reply.next) {
      const { next } = reply
      this.#earlierBytes += bytes.length
      this.#read = (more) => next.reply(more)
      this.upstream.goOn(next.body)
    } else if (reply.check) this.#check(reply, reply.check)
    else {
      this.close()
      this.settled(this.#deliver(reply))
    }
  }

  // An error within the answer. One with content says nothing about the health of the channel, unless the upstream
  // itself ended it.
  #failed(reply: WholeReply): void {
    const { error, usage, valid } = reply.facts
    if (!error) return this.onFailure(failureWithoutResponse('no answer of its protocol'))
    if (this.state === 'draining') return this.settleWithoutClient(valid ? reply.facts : undefined)
    const hasContent = reply.facts.text() !== ''
    const culprit = error.culprit ?? (hasContent ? 'model' : undefined)
    const failure = failureInAnswer(this.target, { ...error, culprit }, WITH_200)
    const isNative = this.target.request.protocol === this.target.client
    const isHidden = ruleOf(failure).client === 'hidden'
    const isPassedOn = isNative && valid && !isHidden && (hasContent || !error.isStated)
    this.close()
    this.undelivered(isPassedOn ? { ...failure, passOn: () => this.#passOn(reply, failure) } : failure, usage)
  }

  // Another attempt may succeed unless the request itself is the cause, so no later call may get this answer.
  async #passOn(reply: WholeReply, failure: Failure): Promise<void> {
    if (ruleOf(failure).blames !== 'request') this.call.incoming.hasFailed = true
    const checked = reply.check ? await reply.check(new AbortController().signal) : reply
    await this.#deliver(checked)
  }

  // While the response is checked, the client may leave and the call may be
  // stopped.
  #check(reply: WholeReply, check: NonNullable<WholeReply['check']>): void {
    const stop = new AbortController()
    this.#checked = { facts: reply.facts, stop }
    check(stop.signal).then(
      (checked) => {
        if (this.state === 'over' || stop.signal.aborted) return
        this.#checked = undefined
        if (this.state === 'draining') return this.settleWithoutClient(reply.facts)
        this.close()
        this.settled(this.#deliver(checked))
      },
      (error: unknown) => {
        if (!stop.signal.aborted) this.crash(error)
      },
    )
  }

  onFailure(failure: Failure): void {
    if (this.state === 'over') return
    if (this.state === 'draining') this.settleWithoutClient()
    else if (this.#checked) {
      const { facts, stop } = this.#checked
      stop.abort()
      this.close()
      // The provider must be paid for its response, so no other provider is asked.
      this.refused(chargeBasis('complete', facts), { ...failure, kind: 'undeliverable' })
    } else if (failure.isCharged) {
      const basis = this.#basisSoFar('stopped')
      this.close()
      this.refused(basis, failure)
    } else if (this.memory.isShort) {
      const basis = this.#basisSoFar('cut')
      this.close()
      this.refused(basis)
    } else {
      this.close()
      this.undelivered(failure)
    }
  }

  protected override onDraining(): void {
    if (this.#checked) this.settleWithoutClient()
  }

  protected settleWithoutClient(facts = this.#checked?.facts): void {
    this.#checked?.stop.abort()
    const basis = facts ? chargeBasis('client_gone', facts) : this.#basisSoFar('client_gone')
    this.close()
    this.settled(this.call.settlement.settle(this.target, basis, false))
  }

  #basisSoFar(ending: ResponseEnding): ChargeBasis {
    const collected = this.collected?.(ending)
    return collected ?? chargeBasisOfBeginning(this.#bytes.take(), (json) => this.#read(json).facts, ending)
  }

  // `docs/ledger.md: Durability before delivery`: the response is sent once its charge is durable.
  async #deliver(reply: WholeReply): Promise<void> {
    const charging = this.call.settlement.settle(
      this.target,
      chargeBasis('complete', reply.facts),
      true,
      reply,
    )
    const keeping = reply.lasting?.keep?.(answerOrigin(this.call, this.target), charging)
    // Both are awaited at once: `keeping` rejects with `charging`.
    const [charged] = await Promise.all([charging, keeping])
    this.#send(reply.body(charged))
  }

  // The upstream continues in the background. The call's hold (its reserved quota) stays open; it is durable
  // before the client receives the response.
  async #deliverBegun(
    reply: WholeReply,
    goOn: NonNullable<LastingResponse['continueInBackground']>,
  ): Promise<void> {
    const { hold } = this.call
    if (!(await hold.whenDurable()) || !(await goOn(await continuedCall(this.call, this.target))))
      throw (
        hold.writeFailure ??
        new StoreUnavailable('a background call could not be parked', { refusesWrites: true })
      )
    const checked = reply.check ? await this.#checkBegun(reply.check) : reply
    if (checked) this.#send(checked.body(NO_USAGE))
  }

  /** Resolves to a response that continues in the background, as checks let it pass; undefined if the client left. */
  async #checkBegun(check: NonNullable<WholeReply['check']>): Promise<WholeReply | undefined> {
    const gone = new AbortController()
    const forget = this.call.onClientGone(() => gone.abort())
    try {
      return await check(gone.signal)
    } catch (error) {
      if (!gone.signal.aborted) throw error
      return undefined
    } finally {
      forget()
    }
  }

  #send(body: Buffer): void {
    const { response } = this.call
    if (response.isAborted) return
    const headers = this.call.headers(this.contentType, this.target)
    response.writeHead(200, { ...headers, 'content-length': String(body.length) }).end(body)
  }
}

/**
 * Facts for the charge of JSON of which only a beginning has arrived, which `read` reads.
 * `docs/ledger.md: Outcomes`: what had arrived of a response counts, although its JSON is incomplete.
 */
export function chargeBasisOfBeginning(
  begun: Buffer,
  read: (json: Buffer) => ReplyFacts,
  ending: ResponseEnding,
): ChargeBasis {
  const closed = begun.length === 0 ? undefined : closeJson(begun.toString('utf8', 0, MAX_PARTIAL_BYTES))
  let facts: ReplyFacts | undefined
  try {
    facts = closed === undefined ? undefined : read(Buffer.from(closed))
  } catch {
    // A beginning that cannot be read counts as nothing.
  }
  return chargeBasis(ending, facts, false)
}

function chargeBasis(
  ending: ResponseEnding,
  facts: ReplyFacts | undefined,
  isComplete = facts !== undefined,
): ChargeBasis {
  return {
    ending,
    isComplete,
    reported: facts?.usage,
    served: facts?.usage?.served ?? facts?.served,
    diagnosis: facts?.diagnosis,
    hasUnknownEnd: facts?.hasUnknownEnd,
    tools: facts?.tools ?? [],
    names: () => facts?.names?.(),
    arrived: () => facts?.arrived?.(),
    hasText: () => facts !== undefined && facts.text() !== '',
    text: () => facts?.text() ?? '',
  }
}
