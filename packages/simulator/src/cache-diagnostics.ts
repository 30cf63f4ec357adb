import { LRUCache } from 'lru-cache'
import { type Fields, asFields, asList, asString } from './fields.ts'
import { extendDigest } from './prompt-cache.ts'
import { estimateTokens } from './tokens.ts'

const MAX_RESPONSES = 5000

/** What is remembered of a request, to compare a later request with it. */
interface Fingerprint {
  readonly account: string
  /**
   * Digests of settings and parts, in the order of comparison, by the reason that is reported if they
   * changed.
   */
  readonly parts: ReadonlyMap<string, string>
  /** For each message, the digest of the conversation up to it, and the number of tokens. */
  readonly messages: readonly { readonly digest: string; readonly tokens: number }[]
  readonly tokens: number
  /**
   * Settings of a prompt for which there is no specific reason: if one changes, the reason is reported as unavailable.
   */
  readonly settings: string
  readonly hasCompaction: boolean
}

/** A request to be compared, and the number of its tokens that were read from the cache. */
export interface DiagnosedRequest {
  readonly account: string
  readonly model: string
  readonly body: Fields
  /** Messages or items, including those of the responses that this request continues. */
  readonly messages: readonly Fields[]
  readonly transcript: string
  readonly read: number
}

/** Remembers requests, and reports why one could not reuse what an earlier one had cached. */
export class CacheDiagnostics {
  readonly #seen = new LRUCache<string, Fingerprint>({ max: MAX_RESPONSES })

  /**
   * The value of `diagnostics` in a response of the messages protocol; null unless the request asks for it
   * and the cache was missed.
   */
  ofMessages(id: string, request: DiagnosedRequest): Fields | null {
    const { body } = request
    const now = fingerprint(request, {
      model_changed: [request.model, body.speed ?? 'standard'],
      tools_changed: asList(body.tools),
      system_changed: body.system,
    })
    const before = this.#before(asFields(body.diagnostics).previous_message_id, request.account)
    this.#seen.set(id, now)
    if (before === undefined) return null
    if (before === 'unknown') return { cache_miss_reason: { type: 'previous_message_not_found' } }
    const changed = changeSince(before, now, 'messages_changed')
    if (changed)
      return {
        cache_miss_reason: {
          type: changed.reason,
          cache_missed_input_tokens: Math.max(before.tokens - changed.reusable, 0),
        },
      }
    return before.settings === now.settings ? null : { cache_miss_reason: { type: 'unavailable' } }
  }

  /**
   * The value of `prompt_cache_diagnostics` in a response of the responses protocol; undefined unless the
   * request asks for it.
   */
  ofResponses(id: string, request: DiagnosedRequest): Fields | undefined {
    const { body } = request
    const text = asFields(body.text)
    const now = fingerprint(request, {
      model_changed: request.model,
      service_tier_changed: body.service_tier ?? 'auto',
      prompt_cache_key_changed: body.prompt_cache_key ?? null,
      tools_changed: asList(body.tools),
      text_format_changed: text.format ?? null,
      reasoning_effort_changed: asFields(body.reasoning).effort ?? null,
      verbosity_changed: text.verbosity ?? null,
    })
    const before = this.#before(asFields(body.prompt_cache_options).comparison_response_id, request.account)
    this.#seen.set(id, now)
    if (before === undefined) return undefined
    if (before === 'unknown') return { type: 'comparison_response_not_found' }
    const changed = changeSince(before, now, 'input_changed')
    if (!changed) return { type: request.read > 0 ? 'cache_hit' : 'unavailable' }
    const isCompacted = changed.reason === 'input_changed' && now.hasCompaction && !before.hasCompaction
    return {
      type: 'cache_miss',
      reason: isCompacted ? 'context_compacted' : changed.reason,
      cache_missed_tokens: Math.max(now.tokens - changed.reusable, 0),
      comparison_reusable_tokens: changed.reusable,
    }
  }

  #before(id: unknown, account: string): Fingerprint | 'unknown' | undefined {
    if (typeof id !== 'string') return undefined
    const found = this.#seen.get(id)
    // A response of another account is reported as unknown, as if it did not exist.
    return found?.account === account ? found : 'unknown'
  }
}

function fingerprint(request: DiagnosedRequest, parts: Readonly<Record<string, unknown>>): Fingerprint {
  const { account, body, messages, transcript } = request
  let digest = ''
  let characters = 0
  return {
    account,
    parts: new Map(
      Object.entries(parts).map(([reason, value]) => [reason, extendDigest('', withoutBreakpoints(value))]),
    ),
    messages: messages.map((message) => {
      const text = withoutBreakpoints(message)
      digest = extendDigest(digest, text)
      characters += text.length
      return { digest, tokens: estimateTokens(characters) }
    }),
    tokens: estimateTokens(transcript.length),
    settings: withoutBreakpoints([body.tool_choice, body.thinking]),
    hasCompaction: messages.some(({ type }) => asString(type).startsWith('compaction')),
  }
}

/**
 * Returns the first difference, and the number of tokens before it; undefined if this request begins with the
 * whole earlier one.
 */
function changeSince(
  before: Fingerprint,
  now: Fingerprint,
  otherwise: string,
): { readonly reason: string; readonly reusable: number } | undefined {
  for (const [reason, digest] of now.parts)
    if (before.parts.get(reason) !== digest) return { reason, reusable: 0 }
  const at = before.messages.findIndex(({ digest }, index) => now.messages[index]?.digest !== digest)
  return at < 0 ? undefined : { reason: otherwise, reusable: before.messages[at - 1]?.tokens ?? 0 }
}

/**
 * Renders a value without cache breakpoints, which move from turn to turn. A plain text is treated like a
 * list with one text.
 */
export function withoutBreakpoints(value: unknown): string {
  return JSON.stringify(value ?? null, (name, member: unknown) => {
    if (name === 'cache_control' || name === 'prompt_cache_breakpoint') return undefined
    return name === 'content' && typeof member === 'string' ? [{ type: 'text', text: member }] : member
  })
}
