import type { Content, EmbeddingComparison } from './answer.ts'

/** The maximum number of texts whose embeddings are compared with each other. */
const MAX_COMPARED = 6

/** The response of an images endpoint. */
interface Pictures {
  readonly data?: readonly { readonly b64_json?: string; readonly url?: string }[]
  readonly output_format?: string
}

/** Adds the pictures of a response to the content. */
export function readImages(content: Content, value: object): Content {
  const { data = [], output_format: format = 'png' } = value as Pictures
  const pictures = data.flatMap(({ b64_json: bytes, url }) =>
    bytes === undefined ? (url ?? []) : `data:image/${format};base64,${bytes}`,
  )
  return { ...content, pictures }
}

/** Speech is not JSON, so a JSON response adds nothing to the content. */
export function readSpeech(content: Content): Content {
  return content
}

/** Adds the embeddings of a response to the content. */
export function readEmbeddings(content: Content, value: object): Content {
  const { data = [] } = value as { readonly data?: readonly { readonly embedding?: unknown }[] }
  const vectors = data.map(({ embedding }) => (Array.isArray(embedding) ? embedding.map(Number) : []))
  return { ...content, vectors: compareVectors(vectors) }
}

/** The cosines of all pairs of vectors. */
export function compareVectors(vectors: readonly (readonly number[])[]): EmbeddingComparison {
  const few = vectors.slice(0, MAX_COMPARED)
  const cosines = few.flatMap((one, first) =>
    few.slice(first + 1).map((other, place) => ({
      texts: [first + 1, first + place + 2] as const,
      cosine: dot(one, other) / Math.sqrt(dot(one, one) * dot(other, other)) || 0,
    })),
  )
  return { dimensions: vectors[0]?.length ?? 0, cosines }
}

function dot(one: readonly number[], other: readonly number[]): number {
  return one.reduce((sum, number, place) => sum + number * (other[place] ?? 0), 0)
}
