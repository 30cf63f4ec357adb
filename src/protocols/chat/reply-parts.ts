import type { ReplyEvent } from '../reply.ts'
import { asRecord } from '../json/record.ts'
import { CallParts } from './call-parts.ts'
import type { Fields } from '../field.ts'

/** Index of a `function_call`, which has none. */
const LEGACY_INDEX = -1

/**
 * Converts a chat reply, whole or in deltas, to parts. Chat does not delimit them, so one ends and another
 * begins when the kind changes.
 */
export class ReplyParts {
  /** Whether the model refused to answer. */
  refused = false
  readonly #emit: (event: ReplyEvent) => void
  readonly #calls: CallParts
  #replyId = ''
  #nextIndex = 0
  /** Text or thinking that grows. */
  #growing: { readonly kind: 'text' | 'thinking'; readonly index: number } | undefined

  constructor(emit: (event: ReplyEvent) => void) {
    this.#emit = emit
    this.#calls = new CallParts({
      emit,
      begin: () => {
        this.#endGrowing()
        return this.#nextIndex++
      },
      mintId: (part) => `call_${this.#replyId.replaceAll(/[^\w-]/g, '_')}_${part}`,
    })
  }

  get calledTools(): boolean {
    return this.#calls.hasCalls
  }

  /** Sets the reply's id, of which ids of calls without one are made, so that ids of two turns differ. */
  setReplyId(id: string): void {
    this.#replyId = id
  }

  /** Reads a message or a delta: thinking first, then content, then calls. */
  read(message: Fields): void {
    const thought = message['reasoning_content'] || message['reasoning']
    if (typeof thought === 'string' && thought !== '') this.grow('thinking', thought)
    else this.#readDetails(message['reasoning_details'])
    this.#readContent(message['content'])
    this.#readRefusal(message['refusal'])
    const transcript = asRecord(message['audio'])?.['transcript']
    if (typeof transcript === 'string') this.grow('text', transcript)
    const calls = message['tool_calls']
    if (Array.isArray(calls)) for (const call of calls) this.#readCall(asRecord(call))
    const legacy = asRecord(message['function_call'])
    if (legacy && (legacy['name'] || legacy['arguments']))
      this.#readCall({ index: LEGACY_INDEX, function: legacy })
  }

  /** Adds text or thinking. */
  grow(kind: 'text' | 'thinking', text: string): void {
    if (text === '') return
    if (this.#growing?.kind !== kind) {
      this.#endGrowing()
      this.#calls.endComplete()
      this.#growing = { kind, index: this.#nextIndex++ }
      this.#emit({ kind: 'part-start', index: this.#growing.index, part: { kind } })
    }
    this.#emit({ kind, index: this.#growing.index, text })
  }

  /** Adds arguments to the call under an index. */
  growCall(index: number, text: string): void {
    this.#calls.readArguments(index, text)
  }

  /** Ends all open parts. */
  end(): void {
    this.#endGrowing()
    this.#calls.endAll()
  }

  #readCall(call: Fields | undefined): void {
    if (call) this.#calls.read(call)
  }

  /** Reads text, or parts with text and thinking, which may be text or parts again. */
  #readContent(content: unknown): void {
    if (typeof content === 'string') return this.grow('text', content)
    if (!Array.isArray(content)) return undefined
    for (const value of content) {
      const part = asRecord(value)
      if (!part) continue
      if (part['thinking'] !== undefined) this.#readThoughts(part['thinking'])
      else if (typeof part['text'] === 'string') this.grow('text', part['text'])
      else this.#readRefusal(part['refusal'])
    }
    return undefined
  }

  #readThoughts(thinking: unknown): void {
    const thoughts = Array.isArray(thinking) ? thinking.map((part) => asRecord(part)?.['text']) : [thinking]
    for (const thought of thoughts) if (typeof thought === 'string') this.grow('thinking', thought)
  }

  #readRefusal(refusal: unknown): void {
    if (typeof refusal !== 'string' || refusal === '') return
    this.refused = true
    this.grow('text', refusal)
  }

  /** Reads the thinking of providers that send it only here. */
  #readDetails(details: unknown): void {
    if (!Array.isArray(details)) return
    for (const detail of details) {
      const thought = asRecord(detail)?.['text'] ?? asRecord(detail)?.['summary']
      if (typeof thought === 'string') this.grow('thinking', thought)
    }
  }

  #endGrowing(): void {
    if (this.#growing) this.#emit({ kind: 'part-end', index: this.#growing.index })
    this.#growing = undefined
  }
}
