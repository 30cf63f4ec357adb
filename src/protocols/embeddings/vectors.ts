import { promptTokens, type Usage } from '../../domain/usage.ts'
import { asRecord } from '../json/record.ts'
import type { Vectors } from '../texts-to-embed.ts'
import { vectorSpans, withoutVectors } from '../vector-spans.ts'
import type { VectorForm } from './request.ts'
import { toBase64, toNumbers } from './vector.ts'

/** Reads the vectors of a valid response, in the order of their texts. */
export function decodeVectors(bytes: Buffer): Vectors {
  const spans = vectorSpans(bytes, 'embedding')
  const data = withoutVectors(bytes, spans)?.['data']
  const vectors = spans.map(({ form, start, end }) => {
    const text = bytes.toString('latin1', start, end)
    return form === 'numbers' ? text : (toNumbers(text.slice(1, -1)) ?? '[]')
  })
  const indexOf = (at: number): number => {
    const index = Array.isArray(data) ? asRecord(data[at])?.['index'] : undefined
    return typeof index === 'number' ? index : at
  }
  return vectors
    .map((vector, at) => [indexOf(at), vector] as const)
    .sort(([a], [b]) => a - b)
    .map(([, vector]) => vector)
}

/** Writes a response with vectors in the form that the client asked for. */
export function encodeVectors(vectors: Vectors, form: VectorForm, model: string, charged: Usage): Buffer {
  const data = vectors.map((vector, index) => {
    const embedding = form === 'base64' ? `"${toBase64(JSON.parse(vector) as number[])}"` : vector
    return `{"object":"embedding","index":${index},"embedding":${embedding}}`
  })
  const tokens = promptTokens(charged)
  const usage = JSON.stringify({ prompt_tokens: tokens, total_tokens: tokens })
  return Buffer.from(
    `{"object":"list","data":[${data.join(',')}],"model":${JSON.stringify(model)},"usage":${usage}}`,
  )
}
