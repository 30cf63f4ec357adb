import type { ReplyEvent } from '../reply.ts'
import { asRecord } from '../json/record.ts'
import { CallParts } from './call-parts.ts'
import type { Fields } from '../field.ts'

/** A call in `function_call`, which has no index, is under this one. */
const LEGACY_INDEX = -1

/**
 * Makes parts of what a chat answer says, whole or in deltas: chat has no frames around its parts, so that
 * one begins and another ends where the kind changes.
 */
export class ReplyParts {
  /** The model said that it will not answer. */
  refused = false
  readonly #emit: (event: ReplyEvent) => void
  readonly #calls: CallParts
  #replyId = ''
  #nextIndex = 0
  /** The text or the thought that grows. */
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

  /** Ids of calls that have none are made of the reply's, so that those of two turns differ. */
  setReplyId(id: string): void {
    this.#replyId = id
  }

  /** A whole message, or a delta. What it thinks comes before what it says, and its calls at the end. */
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

  /** More text or more thought. */
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

  /** More arguments for the call under an index. */
  growCall(index: number, text: string): void {
    this.#calls.readArguments(index, text)
  }

  /** Ends what is open. */
  end(): void {
    this.#endGrowing()
    this.#calls.endAll()
  }

  #readCall(call: Fields | undefined): void {
    if (call) this.#calls.read(call)
  }

  /** Text, or parts with text and thoughts, which may be text or parts again. */
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

  /** Thoughts of providers that put them nowhere else. */
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
