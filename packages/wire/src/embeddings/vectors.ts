import { promptTokens, type Usage } from '../usage.ts'
import type { RawVector } from '../vectors.ts'
import type { VectorForm } from './request.ts'
import { toBase64, toNumbers } from './vector.ts'

/**
 * Converts the vector to this format. Returns it unchanged if it already has the format, or if it contains no
 * numbers.
 */
export function inForm({ form, text }: RawVector, wanted: VectorForm): Buffer {
  if (wanted === undefined || wanted === form) return text
  return (wanted === 'base64' ? toBase64(text) : toNumbers(text)) ?? text
}

/** Writes a response piece by piece, with vectors in the format that the client requested. */
export class VectorsWriter {
  readonly #form: VectorForm
  readonly #model: string
  #count = 0

  constructor(form: VectorForm, model: string) {
    this.#form = form
    this.#model = model
  }

  /** Returns the piece with the next vector. */
  write(vector: RawVector): Buffer {
    const index = this.#count++
    const before = index === 0 ? '{"object":"list","data":[' : ','
    return Buffer.concat([
      Buffer.from(`${before}{"object":"embedding","index":${index},"embedding":`),
      inForm(vector, this.#form),
      END_OF_VECTOR,
    ])
  }

  /** Returns the last piece. */
  end(charged: Usage): Buffer {
    const tokens = promptTokens(charged)
    const usage = JSON.stringify({ prompt_tokens: tokens, total_tokens: tokens })
    return Buffer.from(`],"model":${JSON.stringify(this.#model)},"usage":${usage}}`)
  }
}

const END_OF_VECTOR = Buffer.from('}')
