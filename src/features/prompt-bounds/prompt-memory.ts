import { createSecretKey, hash, type KeyObject } from 'node:crypto'
import { ConversationDigests, type DigestSeed } from '@sluice/wire/conversation-digests'
import { promptTokens } from '@sluice/wire/usage'
import type { Channel } from '../../domain/records/channel.ts'
import type { Options } from '../../domain/options.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type ChargedBalances, isSmallHold } from '../../accounts/ledger/charged-balances.ts'
import type { Unaffordable } from '../../accounts/ledger/quota-refusal.ts'
import type { RunningCall } from '../../call/running-call.ts'
import { type Plans, withPromptBound } from '../../call/plan.ts'
import type { ChargeBasis } from '../../call/price-usage.ts'
import type { ChannelPlan, Plan, SentConversation } from '../../call/request-stages.ts'
import type { DigestSearch, DigestStore, FoundDigest } from '../../call/digests/digest-store.ts'

export interface PromptMemoryServices {
  readonly store: DigestStore
  /** Secret key of the digests: 32 bytes. */
  readonly key: Buffer
  readonly metrics: Metrics
}

/** The services, and the key in the forms in which digests use it. */
interface DigestServices extends PromptMemoryServices {
  readonly digestKey: KeyObject
  readonly seedKey: string
  /**
   * 32 bits derived from the key. The marks of digests (their first 32 bits, by which they are found) are
   * computed with it.
   */
  readonly markKey: number
}

/**
 * Maximum bytes per token that are plausible. A provider that reports fewer tokens for a text is not
 * believed.
 */
const MAX_BYTES_PER_TOKEN = 32

/** The prompts of larger requests are always remembered. */
const MAX_FORGOTTEN_BYTES = 65_536
/** A hold that takes less than this share of what is left may be larger than necessary. */
const SMALL_SHARE = 1 / 64

/**
 * Remembers how many tokens prompts had. A conversation that continues one of them then reserves quota only
 * for these tokens and what was appended. `docs/ledger.md: Continued conversations`.
 */
export class PromptMemory {
  readonly #services: DigestServices

  constructor(services: PromptMemoryServices) {
    const { key } = services
    const seedKey = key.toString('hex')
    const markKey = first32Bits(hash('sha256', `mark ${seedKey}`, 'hex'))
    this.#services = { ...services, digestKey: createSecretKey(key), seedKey, markKey }
  }

  /**
   * Returns the prompts of a call; undefined if their token counts are neither looked up nor remembered. `amount`: the
   * quota units that the call holds if nothing is known about its prompts.
   */
  of(userId: number, [first]: Plans, payer: ChargedBalances, amount: number): CallPrompts | undefined {
    const { options } = first.settings
    if (options.remember_prompts === 0 || amount === 0) return undefined
    const { request, body } = first
    if (
      request.charging === 'free' ||
      request.responses?.isBackground ||
      request.namesPrompt ||
      (request.responses?.contextTokens ?? 0) > 0
    )
      return undefined
    if (body.length <= MAX_FORGOTTEN_BYTES && isSmallHold(payer, amount, SMALL_SHARE)) return undefined
    return new CallPrompts(this.#services, userId, first.request.model, options)
  }
}

/** What is known about a prompt as one channel receives it. */
interface KnownPrompt {
  /** Upper bound on the prompt's tokens, from an earlier call; undefined if none is known. */
  readonly bound: number | undefined
  /**
   * Digest of the whole conversation, and the size of its text in bytes. The body itself is not kept in
   * memory.
   */
  readonly whole?: { readonly digest: Buffer; readonly textBytes: number }
}

const UNKNOWN: KnownPrompt = { bound: undefined }

/** The prompts of one call, one for each channel that may receive it. */
export class CallPrompts {
  readonly #services: DigestServices
  readonly #userId: number
  readonly #model: string
  readonly #options: Options
  readonly #known = new Map<ChannelPlan, KnownPrompt>()
  /** Upper bound on the tokens of the prompt for which quota is reserved at the prices of all models. */
  #heldBound = Number.POSITIVE_INFINITY
  /** Larger bounds for which quota is reserved at the prices of one model. */
  readonly #raisedBounds = new Map<Plan, number>()

  constructor(services: DigestServices, userId: number, model: string, options: Options) {
    this.#services = services
    this.#userId = userId
    this.#model = model
    this.#options = options
  }

  /**
   * Returns the plans with the known upper bound on the prompt's tokens at the first channel. `hold` must be
   * called before another channel is tried.
   */
  tightened(plans: Plans): Plans | Promise<Plans> {
    const channel = plans[0].channels[0]
    if (!channel) return plans
    const known = this.#knownOf(channel)
    return known instanceof Promise
      ? known.then((later) => this.#withBound(plans, later))
      : this.#withBound(plans, known)
  }

  /**
   * Raises the hold (reserved quota) of a call so that it covers the prompt at a channel. Resolves to the
   * refusal if that is impossible; the channel must then not be tried.
   */
  async hold(call: RunningCall, plan: Plan, channel: ChannelPlan): Promise<Unaffordable | undefined> {
    const known = await this.#knownOf(channel)
    const bound = known.bound ?? Number.POSITIVE_INFINITY
    if (bound <= (this.#raisedBounds.get(plan) ?? this.#heldBound)) return undefined
    const raised = withPromptBound(plan, bound)
    const refusal = await call.hold.raiseTo(raised.estimate.amount, {
      waitMs: this.#options.hold_wait,
      isOver: () => call.response.isAborted || call.isStopped,
    })
    if (refusal) return refusal
    this.#raisedBounds.set(plan, bound)
    call.switchModel(raised)
    return undefined
  }

  /** Remembers how many tokens a provider reported for the prompt, at the end of its answer. */
  remember(
    channel: ChannelPlan,
    { isComplete, reported }: Pick<ChargeBasis, 'isComplete' | 'reported'>,
  ): void {
    if (!isComplete || !reported || reported.promptIsUnknown) return
    const tokens = promptTokens(reported)
    const whole = this.#known.get(channel)?.whole
    if (!whole || !isPlausible(tokens, whole.textBytes)) return
    const { remember_prompts: ms, remember_prompts_max: most } = this.#options
    this.#services.store.remember(this.#userId, whole.digest, tokens, { ms, most })
  }

  #withBound(plans: Plans, { bound }: KnownPrompt): Plans {
    this.#services.metrics.add('promptsKnown', 1, bound === undefined ? 'none' : 'found')
    if (bound === undefined) return plans
    this.#heldBound = bound
    const [first, ...others] = plans
    return [withPromptBound(first, bound), ...others.map((plan) => withPromptBound(plan, bound))]
  }

  #knownOf(channel: ChannelPlan): KnownPrompt | Promise<KnownPrompt> {
    const known = this.#known.get(channel)
    if (known) return known
    const sent = channel.conversation?.()
    return sent instanceof Promise
      ? sent.then((later) => this.#lookUp(channel, later))
      : this.#lookUp(channel, sent)
  }

  #lookUp(plan: ChannelPlan, sent: SentConversation | undefined): KnownPrompt | Promise<KnownPrompt> {
    if (!sent || sent.form.isUnforeseeable?.(sent.scan)) return this.#note(plan, UNKNOWN)
    const { scan, form, upstreamModel: model } = sent
    const seed = this.#seedOf(plan, sent)
    const digests = new ConversationDigests(scan, form, { key: this.#services.digestKey, seed, model })
    const { turns } = digests
    if (turns === 0) return this.#note(plan, UNKNOWN)
    const turnAt = (index: number): number => turns - index
    const digest = digests.digest(turns)
    const whole = { digest, textBytes: digests.textBytes(turns) }
    const knownBy = (found: FoundDigest | undefined): KnownPrompt =>
      this.#note(plan, { whole, bound: found && digests.bound(turnAt(found.index), found.value) })
    const longestFirst: DigestSearch = {
      owner: this.#userId,
      count: turns,
      mark: (index) => digests.mark(turnAt(index)),
      digest: (index) => (index === 0 ? digest : digests.digest(turnAt(index))),
    }
    const found = this.#services.store.find(longestFirst, ({ index, value }) =>
      isPlausible(value, digests.textBytes(turnAt(index))),
    )
    return found instanceof Promise ? found.then(knownBy) : knownBy(found)
  }

  #note(plan: ChannelPlan, known: KnownPrompt): KnownPrompt {
    this.#known.set(plan, known)
    return known
  }

  #seedOf({ channel }: ChannelPlan, { dialect, upstreamModel, headers }: SentConversation): DigestSeed {
    const { pass_through: passThrough } = this.#options
    const facts = JSON.stringify([this.#userId, this.#model, dialect, upstreamModel, headers, passThrough])
    const { digest, mark } = channelSeed(channel)
    const { seedKey, markKey } = this.#services
    return { text: `${seedKey}${digest}${facts}`, mark: markOf(facts, mark ^ markKey) }
  }
}

/** Whether a text of this size may have this many tokens. */
function isPlausible(tokens: number, textBytes: number): boolean {
  return Number.isSafeInteger(tokens) && tokens > 0 && tokens * MAX_BYTES_PER_TOKEN >= textBytes
}

/**
 * A hash of a channel, which makes the digests of its prompts differ from those of other channels, and its
 * first 32 bits.
 */
interface ChannelSeed {
  readonly digest: string
  readonly mark: number
}

const SEEDS = new WeakMap<Channel, ChannelSeed>()

/** Hashes everything about a channel that may change a prompt, or how the prompt's tokens are counted. */
function channelSeed(channel: Channel): ChannelSeed {
  let seed = SEEDS.get(channel)
  if (!seed) {
    const { name, provider, base_url, api_version, region, project, location, system_prompt, override } =
      channel
    const { allow, disable_store, pass_through, headers } = channel
    const { set, default: usual, remove } = override
    const place = [name, provider, base_url, api_version, region, project, location]
    const edits = [system_prompt, [...set], [...usual], remove, [...allow], disable_store, pass_through]
    const digest = hash('sha256', JSON.stringify([place, edits, [...headers]]), 'hex')
    SEEDS.set(channel, (seed = { digest, mark: first32Bits(digest) }))
  }
  return seed
}

function first32Bits(hex: string): number {
  return Number.parseInt(hex.slice(0, 8), 16)
}

/**
 * Computes a 32-bit FNV-1a hash. The hash is the mark of a conversation. If two conversations have the same
 * mark, which is rare, their digests are compared.
 */
function markOf(text: string, start: number): number {
  let mark = start
  for (let i = 0; i < text.length; i++) mark = Math.imul(mark ^ text.charCodeAt(i), 0x0100_0193)
  return mark
}
