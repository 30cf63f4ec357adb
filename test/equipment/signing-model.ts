import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Behaviour } from './behaviour.ts'
import type { Received } from './scripted-upstream.ts'

/**
 * A part of a reply: a signed thought, an encrypted one, a text, or a call of the tool `look`. Some providers
 * sign calls and the ends of texts, and do not accept thoughts.
 */
export type SignedPart =
  | { readonly thought: string; readonly signature: string }
  | { readonly summary: string }
  | { readonly redacted: string }
  | { readonly text: string }
  | { readonly end: ''; readonly signature: string }
  | { readonly call: string; readonly signature?: string }

type PartKind = 'think' | 'summarise' | 'redact' | 'say' | 'sign-end' | 'call' | 'sign-call'

/** What a model that signs needs to know about a provider's protocol. */
export interface SigningWire {
  /** The member of a request that contains the history. */
  readonly history: string
  /** The model's replies to one question: three steps with three calls. */
  readonly steps: readonly (readonly PartKind[])[]
  /** The assistant's parts in a request, in order. */
  partsIn(request: Record<string, unknown>): readonly SignedPart[]
  /** What is missing in a request, for example the setting for thinking; undefined if nothing is missing. */
  lacks(request: Record<string, unknown>): string | undefined
  whole(parts: readonly SignedPart[], id: string): string
  frames(parts: readonly SignedPart[], id: string): readonly string[]
}

/**
 * A model that answers each question in three steps with three calls. It refuses a request that does not send
 * back all it has said and signed, byte for byte and at the same position, or that begins with other bytes
 * than the previous request.
 */
export class SigningModel {
  readonly #wire: SigningWire
  readonly #said: SignedPart[] = []
  #replies = 0
  /** The history of the last request, as JSON text without its end. */
  #cached = ''
  /** Refusals so far. */
  readonly refusals: string[] = []

  constructor(wire: SigningWire) {
    this.#wire = wire
  }

  /** Signatures given so far. */
  get signatures(): number {
    return this.#said.filter((part) => 'signature' in part || 'redacted' in part).length
  }

  /** Answers a request. */
  readonly decide = (received: Received): Behaviour => {
    const request = JSON.parse(received.text) as Record<string, unknown>
    const came = this.#wire.partsIn(request)
    const history = JSON.stringify(request[this.#wire.history]).slice(0, -1)
    const isCached = history.startsWith(this.#cached)
    this.#cached = history
    const lacking = isCached ? this.#wire.lacks(request) : 'the prompt cache is lost'
    if (lacking !== undefined || !isDeepStrictEqual(came, this.#said)) {
      const shown = (parts: readonly SignedPart[]): string =>
        JSON.stringify(parts.map((part) => Object.values(part).map((text) => text.slice(0, 24))))
      const message = lacking ?? `expected ${shown(this.#said)}, got ${shown(came)}`
      this.refusals.push(message)
      return { kind: 'status', status: 400, body: JSON.stringify({ error: { message } }) }
    }
    const parts = this.#reply()
    this.#said.push(...parts.filter((part) => !('summary' in part)))
    const id = `reply_${this.#replies}`
    if (received.path.includes(':stream') || request['stream'] === true)
      return { kind: 'stream', ending: 'no done', frames: this.#wire.frames(parts, id) }
    return { kind: 'whole', body: this.#wire.whole(parts, id) }
  }

  #reply(): SignedPart[] {
    const { steps } = this.#wire
    const number = this.#replies++
    const sign = (): string => randomBytes(number === 0 ? 150_000 : 60).toString('base64')
    return (steps[number % steps.length] ?? []).map((kind, index): SignedPart => {
      const name = `${number}_${index}_${randomBytes(4).toString('hex')}`
      switch (kind) {
        case 'think':
          return { thought: `I think ${name}.`, signature: sign() }
        case 'summarise':
          return { summary: `I look at ${name}.` }
        case 'redact':
          return { redacted: randomBytes(90).toString('base64') }
        case 'say':
          return { text: `Words ${name}. ` }
        case 'sign-end':
          return { end: '', signature: sign() }
        case 'call':
          return { call: `call_${name}` }
        case 'sign-call':
          return { call: `call_${name}`, signature: sign() }
      }
    })
  }
}
