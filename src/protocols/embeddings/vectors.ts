import { promptTokens, type Usage } from '../../domain/usage.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import type { ReplyFacts } from '../reply-facts.ts'
import type { Vectors } from '../texts-to-embed.ts'
import { type RawVector, VectorReader } from '../vector-reader.ts'
import { embeddingsFacts } from './facts.ts'
import type { VectorForm } from './request.ts'
import { toBase64, toNumbers } from './vector.ts'

/** The vector in this form; as it came, where it has it already or holds no numbers. */
export function inForm({ form, text }: RawVector, wanted: VectorForm): Buffer {
  if (wanted === undefined || wanted === form) return text
  const ascii = text.toString('latin1')
  const written = wanted === 'base64' ? base64Of(ascii) : toNumbers(ascii.slice(1, -1))
  return written === undefined ? text : Buffer.from(written, 'latin1')
}

function base64Of(list: string): string | undefined {
  try {
    const numbers: unknown = JSON.parse(list)
    const isVector = Array.isArray(numbers) && numbers.every((one) => typeof one === 'number')
    return isVector ? `"${toBase64(numbers)}"` : undefined
  } catch {
    return undefined
  }
}

/** Reads a whole response: its facts, and its vectors in the order of their texts. */
export function readVectors(bytes: Buffer): { readonly facts: ReplyFacts; readonly vectors: Vectors } {
  const found: string[] = []
  const reader = new VectorReader('embedding', {
    onVector: (vector) => found.push(inForm(vector, 'numbers').toString('latin1')),
    onOther: () => {},
  })
  reader.push(bytes)
  reader.end()
  const outline = reader.outline ?? ''
  const data = parseRecord(outline)?.['data']
  const indexOf = (at: number): number => {
    const index = Array.isArray(data) ? asRecord(data[at])?.['index'] : undefined
    return typeof index === 'number' ? index : at
  }
  const vectors = found
    .map((vector, at) => [indexOf(at), vector] as const)
    .sort(([a], [b]) => a - b)
    .map(([, vector]) => vector)
  return { facts: embeddingsFacts(outline), vectors }
}

/** Writes a response piece by piece, with vectors in the form that the client asked for. */
export class VectorsWriter {
  readonly #form: VectorForm
  readonly #model: string
  #count = 0

  constructor(form: VectorForm, model: string) {
    this.#form = form
    this.#model = model
  }

  /** The piece with the next vector. */
  write(vector: RawVector): Buffer {
    const index = this.#count++
    const before = index === 0 ? '{"object":"list","data":[' : ','
    return Buffer.concat([
      Buffer.from(`${before}{"object":"embedding","index":${index},"embedding":`),
      inForm(vector, this.#form),
      END_OF_VECTOR,
    ])
  }

  /** The last piece. */
  end(charged: Usage): Buffer {
    const tokens = promptTokens(charged)
    const usage = JSON.stringify({ prompt_tokens: tokens, total_tokens: tokens })
    return Buffer.from(`],"model":${JSON.stringify(this.#model)},"usage":${usage}}`)
  }
}

const END_OF_VECTOR = Buffer.from('}')
