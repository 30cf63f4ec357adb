import { LRUCache } from 'lru-cache'
import { type Fields, asFields, asList, asString } from './fields.ts'
import { extended } from './prompt-cache.ts'
import { tokensOf } from './tokens.ts'

const MAX_RESPONSES = 5000

/** What a later request is compared with. */
interface Fingerprint {
  readonly account: string
  /** Settings and parts in the order in which they are compared, by the reason that a change is. */
  readonly parts: ReadonlyMap<string, string>
  /** Digests of the conversation up to each message, and the tokens up to there. */
  readonly messages: readonly { readonly digest: string; readonly tokens: number }[]
  readonly tokens: number
  /** Settings that are part of a prompt, but of no reason. */
  readonly settings: string
  readonly hasCompaction: boolean
}

/** A request of either provider, and how much of it was read from the cache. */
export interface Diagnosed {
  readonly account: string
  readonly model: string
  readonly body: Fields
  /** Messages or items, those of continued responses included. */
  readonly messages: readonly Fields[]
  readonly transcript: string
  readonly read: number
}

/** Remembers requests, and reports why one could not reuse what an earlier one had cached. */
export class CacheDiagnostics {
  readonly #seen = new LRUCache<string, Fingerprint>({ max: MAX_RESPONSES })

  /** The member `diagnostics` of messages; null unless the request asks for it and there is a miss. */
  ofMessages(id: string, request: Diagnosed): Fields | null {
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

  /** The member `prompt_cache_diagnostics` of responses; undefined unless the request asks for it. */
  ofResponses(id: string, request: Diagnosed): Fields | undefined {
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
    // Another account's responses are as unknown as those that never were.
    return found?.account === account ? found : 'unknown'
  }
}

function fingerprint(request: Diagnosed, parts: Readonly<Record<string, unknown>>): Fingerprint {
  const { account, body, messages, transcript } = request
  let digest = ''
  let characters = 0
  return {
    account,
    parts: new Map(Object.entries(parts).map(([reason, value]) => [reason, extended('', unmarked(value))])),
    messages: messages.map((message) => {
      const text = unmarked(message)
      digest = extended(digest, text)
      characters += text.length
      return { digest, tokens: tokensOf(characters) }
    }),
    tokens: tokensOf(transcript.length),
    settings: unmarked([body.tool_choice, body.thinking]),
    hasCompaction: messages.some(({ type }) => asString(type).startsWith('compaction')),
  }
}

/** Returns the first change, and the tokens before it; undefined if the earlier request is a prefix of this one. */
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

/** Renders a value without its breakpoints, which move from turn to turn; a text equals one block of text. */
export function unmarked(value: unknown): string {
  return JSON.stringify(value ?? null, (name, member: unknown) => {
    if (name === 'cache_control' || name === 'prompt_cache_breakpoint') return undefined
    return name === 'content' && typeof member === 'string' ? [{ type: 'text', text: member }] : member
  })
}
